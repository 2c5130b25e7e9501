"""Checks the promises on a live catalog and names what it finds.

At one version the rows are checked as they stand, by queries. Over a range of versions the change
feed is read and replayed, so that every version in between is checked too.
"""

from catalog.verify.report import VerifyReport, Violation
from catalog.verify.verifier import Verifier

__all__ = ["Verifier", "VerifyReport", "Violation"]
