"""Strata: a Spark-native metadata catalog. Which schema does this segment have?"""

from catalog.cache.broadcast import Handle
from catalog.cache.cache import Cache, Poll
from catalog.catalog import Catalog, UpgradeReport
from catalog.cleanup import CleanupReport
from catalog.config import Settings
from catalog.errors import CatalogError
from catalog.evolution import compatibility, judge, merge, merged, superior, upgrade
from catalog.evolution.diff import diff
from catalog.maintain import MaintainReport
from catalog.model import DropResult, PublishResult, Segment
from catalog.progress import Step
from catalog.schema import Schema
from catalog.stats import Stats
from catalog.table.runs import Run
from catalog.verify import VerifyReport, Violation

__all__ = [
    "Cache",
    "Catalog",
    "CatalogError",
    "CleanupReport",
    "DropResult",
    "Handle",
    "MaintainReport",
    "Poll",
    "PublishResult",
    "Run",
    "Schema",
    "Segment",
    "Settings",
    "Stats",
    "Step",
    "UpgradeReport",
    "VerifyReport",
    "Violation",
    "compatibility",
    "diff",
    "judge",
    "merge",
    "merged",
    "superior",
    "upgrade",
]
