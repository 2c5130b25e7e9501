"""Strata: a Spark-native metadata catalog. Which schema does this segment have?"""

from catalog.audit.roller import Gap, RollReport
from catalog.backfill.model import BackfillReport, Quarantined
from catalog.backups.backup import BackupReport
from catalog.backups.restore import RestoreReport
from catalog.backups.rollback import RollbackReport
from catalog.cache.answers import Handle
from catalog.cache.cache import Cache, Poll, Stopped
from catalog.cache.live import LiveCache
from catalog.cache.metrics import CacheMetrics
from catalog.cache.overlay import PlaceName
from catalog.catalog import Catalog
from catalog.config import Settings
from catalog.contracts.keeper import ContractResult
from catalog.contracts.model import Contract
from catalog.delta.runs import Run
from catalog.delta.store import Epoch
from catalog.errors import CatalogError
from catalog.evolution import compatibility, judge, merge, merged, superior, upgrade
from catalog.evolution.diff import diff
from catalog.files.publisher import FileProblem, FilesReport
from catalog.files.storage import Files
from catalog.maintenance.cleanup import CleanupReport
from catalog.maintenance.compaction import MaintainReport
from catalog.model import Breach, DropResult, Offence, PublishResult, Segment, UpgradeReport
from catalog.names.model import NamedSchema, Registered, StillWorks
from catalog.objects.model import Object, StoredObject
from catalog.objects.types import ObjectType, States
from catalog.progress import Step
from catalog.realtime.announcer import StreamAnnouncer
from catalog.retention.report import (
    RefusedRule,
    Retained,
    RetentionFailure,
    RetentionReport,
)
from catalog.schema import Schema
from catalog.settings.model import Setting
from catalog.settings.store import SettingResult
from catalog.sql.stats import Stats
from catalog.tasks.kind import TaskKind, TaskStep, TaskWork
from catalog.tasks.model import Task
from catalog.verify import VerifyReport, Violation

__all__ = [
    "BackfillReport",
    "BackupReport",
    "Breach",
    "Cache",
    "CacheMetrics",
    "Catalog",
    "CatalogError",
    "CleanupReport",
    "Contract",
    "ContractResult",
    "DropResult",
    "Epoch",
    "FileProblem",
    "Files",
    "FilesReport",
    "Gap",
    "Handle",
    "LiveCache",
    "MaintainReport",
    "NamedSchema",
    "Object",
    "ObjectType",
    "Offence",
    "PlaceName",
    "Poll",
    "PublishResult",
    "Quarantined",
    "RefusedRule",
    "Registered",
    "RestoreReport",
    "Retained",
    "RetentionFailure",
    "RetentionReport",
    "RollReport",
    "RollbackReport",
    "Run",
    "Schema",
    "Segment",
    "Setting",
    "SettingResult",
    "Settings",
    "States",
    "Stats",
    "Step",
    "StillWorks",
    "Stopped",
    "StoredObject",
    "StreamAnnouncer",
    "Task",
    "TaskKind",
    "TaskStep",
    "TaskWork",
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
