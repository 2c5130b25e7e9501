"""Merging and comparing schemas, and data of one in another; only DataFrames need a session."""

from catalog.evolution.compatibility import Mode, compatibility, judge
from catalog.evolution.merge import merge, merged, superior
from catalog.evolution.upgrade import upgrade

__all__ = ["Mode", "compatibility", "judge", "merge", "merged", "superior", "upgrade"]
