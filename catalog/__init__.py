"""Strata: a Spark-native metadata catalog. Which schema does this segment have?"""

from catalog.audit.roller import Gap, RollReport
from catalog.backfill.report import BackfillReport, Quarantined
from catalog.cache.broadcast import Handle
from catalog.cache.cache import Cache, Poll, Stopped
from catalog.cache.live import LiveCache
from catalog.cache.metrics import CacheMetrics
from catalog.cache.places import PlaceName
from catalog.catalog import Catalog, UpgradeReport
from catalog.cleanup import CleanupReport
from catalog.config import Settings
from catalog.errors import CatalogError
from catalog.evolution import compatibility, judge, merge, merged, superior, upgrade
from catalog.evolution.diff import diff
from catalog.files.opening import Files
from catalog.maintain import MaintainReport
from catalog.model import DropResult, PublishResult, Segment
from catalog.objects.model import Object, StoredObject
from catalog.progress import Step
from catalog.publish.files import FileProblem, FilesReport
from catalog.realtime.stream import StreamAnnouncer
from catalog.schema import Schema
from catalog.settings.keeper import SettingResult
from catalog.settings.resolving import Setting
from catalog.stats import Stats
from catalog.table.runs import Run
from catalog.verify import VerifyReport, Violation

__all__ = [
    "BackfillReport",
    "Cache",
    "CacheMetrics",
    "Catalog",
    "CatalogError",
    "CleanupReport",
    "DropResult",
    "FileProblem",
    "Files",
    "FilesReport",
    "Gap",
    "Handle",
    "LiveCache",
    "MaintainReport",
    "Object",
    "PlaceName",
    "Poll",
    "PublishResult",
    "Quarantined",
    "RollReport",
    "Run",
    "Schema",
    "Segment",
    "Setting",
    "SettingResult",
    "Settings",
    "Stats",
    "Step",
    "Stopped",
    "StoredObject",
    "StreamAnnouncer",
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
