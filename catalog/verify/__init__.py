"""Checks the promises on a live catalog and reports each violation with some of its rows.

At one version the rows are checked by queries. Over a range of versions the change feed is read and
replayed, so that every version in between is checked too.
"""

from catalog.verify.model import VerifyReport, Violation
from catalog.verify.verifier import Verifier

__all__ = ["Verifier", "VerifyReport", "Violation"]
