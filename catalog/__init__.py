"""Strata: a Spark-native metadata catalog. Which schema does this segment have?"""

from catalog.cache.broadcast import Handle
from catalog.cache.cache import Cache, Poll
from catalog.catalog import Catalog, UpgradeReport
from catalog.cleanup import CleanupReport
from catalog.config import Settings
from catalog.errors import CatalogError
from catalog.model import DropResult, PublishResult, Segment
from catalog.schema import Schema
from catalog.verify import VerifyReport, Violation

__all__ = [
    "Cache",
    "Catalog",
    "CatalogError",
    "CleanupReport",
    "DropResult",
    "Handle",
    "Poll",
    "PublishResult",
    "Schema",
    "Segment",
    "Settings",
    "UpgradeReport",
    "VerifyReport",
    "Violation",
]
