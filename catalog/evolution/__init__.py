"""Merging and comparing schemas, and data of one in another; only DataFrames need a session."""

from catalog.evolution.compatibility import (
    ColumnChange,
    Compatibility,
    Judgement,
    Mode,
    compatibility,
    judge,
)
from catalog.evolution.merge import Conflict, Merged, Policy, merge, merged, superior
from catalog.evolution.upgrade import upgrade

__all__ = [
    "ColumnChange",
    "Compatibility",
    "Conflict",
    "Judgement",
    "Merged",
    "Mode",
    "Policy",
    "compatibility",
    "judge",
    "merge",
    "merged",
    "superior",
    "upgrade",
]
