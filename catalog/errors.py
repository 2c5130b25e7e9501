"""One tree of errors: each leaf is a situation that a caller can act on."""

from __future__ import annotations

from typing import Any, ClassVar


class CatalogError(Exception):
    """Base of everything that Strata raises on purpose.

    `condition` is a stable name for programs, `values` holds the offending values, and `retryable`
    says whether the same call can succeed later without being changed.
    """

    condition: ClassVar[str] = "CATALOG_ERROR"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message)
        self.message = message
        self.values = values

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.values)


def _rebuild(cls: type[CatalogError], message: str, values: dict[str, Any]) -> CatalogError:
    return cls(message, **values)


# --- input that can never work -------------------------------------------------------------------


class InvalidInput(CatalogError, ValueError):
    """An argument breaks a rule; nothing was written."""

    condition = "INVALID_INPUT"


class InvalidSchema(InvalidInput):
    """A schema is empty, malformed, or has a type or a column name that cannot be kept."""

    condition = "INVALID_SCHEMA"


class InvalidSegment(InvalidInput):
    """A segment's id, counts, location or interval break a rule."""

    condition = "INVALID_SEGMENT"


class DuplicateSegment(InvalidInput):
    """One batch holds the same segment id twice with different content."""

    condition = "DUPLICATE_SEGMENT"


class InvalidObject(InvalidInput):
    """An object's key, body or links break a rule."""

    condition = "INVALID_OBJECT"


class InvalidType(InvalidInput):
    """A declaration of a type of objects breaks a rule."""

    condition = "INVALID_TYPE"


class InvalidName(InvalidInput):
    """The name of a schema breaks a rule."""

    condition = "INVALID_NAME"


class InvalidEpoch(InvalidInput):
    """An epoch is not a whole number above zero."""

    condition = "INVALID_EPOCH"


class InvalidSetting(InvalidInput):
    """There is no such setting, or it cannot have this value."""

    condition = "INVALID_SETTING"


class InvalidLocation(InvalidInput):
    """A catalog location is neither a path nor a schema name."""

    condition = "INVALID_LOCATION"


class AmbiguousFingerprint(InvalidInput):
    """The beginning of a fingerprint fits more than one schema."""

    condition = "AMBIGUOUS_FINGERPRINT"


# --- what is at the location ---------------------------------------------------------------------


class CatalogNotFound(CatalogError):
    """There is no catalog at the location, and the call may not create one."""

    condition = "CATALOG_NOT_FOUND"


class NotACatalog(CatalogError):
    """Something is at the location, but it is not a table that this library may write."""

    condition = "NOT_A_CATALOG"


class CatalogReplaced(CatalogError):
    """Another table has taken the place of the one that was opened; nothing was written."""

    condition = "CATALOG_REPLACED"


class LayoutTooNew(CatalogError):
    """The table was laid out by a newer release."""

    condition = "LAYOUT_TOO_NEW"


class UpgradeNeeded(CatalogError):
    """The table has an older layout: it can be read, and written after `upgrade`."""

    condition = "UPGRADE_NEEDED"


class ReadOnly(CatalogError):
    """The catalog was opened with `read_only=True`."""

    condition = "READ_ONLY"


class RetentionTooShort(CatalogError):
    """Maintenance would remove what a poller may still need; nothing was removed."""

    condition = "RETENTION_TOO_SHORT"


class UnsuitableSession(CatalogError):
    """The Spark session refuses a setting that the catalog relies on, or lacks Delta."""

    condition = "UNSUITABLE_SESSION"


# --- backups --------------------------------------------------------------------------------------


class BackupNotFound(CatalogError, LookupError):
    """There is no complete backup at the path; nothing was written."""

    condition = "BACKUP_NOT_FOUND"


class BrokenBackup(CatalogError):
    """A backup does not hold what its manifest says, or cannot be read; nothing was written."""

    condition = "BROKEN_BACKUP"


class PathOccupied(CatalogError):
    """The path for a backup, or the location for a restore, holds something else already."""

    condition = "PATH_OCCUPIED"


class RestoreUnfinished(CatalogError):
    """A restore into the location was begun and not completed; nothing can be read there yet."""

    condition = "RESTORE_UNFINISHED"


# --- what is in the catalog ----------------------------------------------------------------------


class SchemaConflict(CatalogError):
    """Columns of the same name have types without a common one."""

    condition = "SCHEMA_CONFLICT"


class WouldLose(CatalogError):
    """Data of one schema cannot be given in another without losing some of it."""

    condition = "WOULD_LOSE"


class Unreadable(CatalogError):
    """Segments cannot be read: their location, their format or their schema is not known."""

    condition = "UNREADABLE"


class BrokenFile(CatalogError):
    """A data file does not say what its schema is: it is gone, damaged, or of an unknown kind."""

    condition = "BROKEN_FILE"


class UnreadableFiles(CatalogError):
    """Spark cannot read any files at all: something is wrong with the job, not with the files."""

    condition = "UNREADABLE_FILES"
    retryable = True


class SegmentConflict(CatalogError):
    """A segment id is already published with other content; nothing was written."""

    condition = "SEGMENT_CONFLICT"


class FingerprintCollision(CatalogError):
    """A fingerprint is stored with another definition; nothing was written."""

    condition = "FINGERPRINT_COLLISION"


class UnknownSchema(CatalogError, LookupError):
    """No schema has this fingerprint, or beginning of one."""

    condition = "UNKNOWN_SCHEMA"


class CorruptSchema(CatalogError):
    """What is stored under a fingerprint is a schema with another one, or no schema."""

    condition = "CORRUPT_SCHEMA"


class VersionNotFound(CatalogError, LookupError):
    """The version or time asked for is not, or no longer, in the table's history."""

    condition = "VERSION_NOT_FOUND"


class LoadInterrupted(CatalogError):
    """Another caller's load of a schema, which this call waited for, was interrupted."""

    condition = "LOAD_INTERRUPTED"
    retryable = True


class NotLoaded(CatalogError):
    """The cache has not loaded anything yet, so it cannot say what is there."""

    condition = "NOT_LOADED"
    retryable = True


class NotInSnapshot(CatalogError, LookupError):
    """The snapshot that was asked does not hold the segment, or not its schema."""

    condition = "NOT_IN_SNAPSHOT"


class SchemaVersionMismatch(CatalogError):
    """A segment has another schema than the caller expected, after polls too."""

    condition = "SCHEMA_VERSION_MISMATCH"
    retryable = True


class ContractViolation(CatalogError):
    """Segments break the contract of their datasource; nothing was written."""

    condition = "CONTRACT_VIOLATION"


class UnknownObject(CatalogError, LookupError):
    """No object has this key."""

    condition = "UNKNOWN_OBJECT"


class UnknownName(CatalogError, LookupError):
    """No schema has this name, or the name has no such version."""

    condition = "UNKNOWN_NAME"


class IncompatibleSchema(CatalogError):
    """A schema may not follow the versions before it under its name; nothing was written."""

    condition = "INCOMPATIBLE_SCHEMA"


class NumberTaken(CatalogError):
    """A version of a named schema has one schema here and another there; nothing was written."""

    condition = "NUMBER_TAKEN"


class ObjectInUse(CatalogError):
    """An object cannot be removed while others link to it; nothing was written."""

    condition = "OBJECT_IN_USE"


class RuleViolation(CatalogError):
    """A change would leave objects that break a rule of their types; nothing was written.

    `values` has the `rule`, the `key` of the object, and the `operation` that waits for its epoch
    if the rule would break when that is applied.
    """

    condition = "RULE_VIOLATION"


# --- operations ----------------------------------------------------------------------------------


class UnknownOperation(CatalogError, LookupError):
    """No operation has this id."""

    condition = "UNKNOWN_OPERATION"


class OperationDecided(CatalogError):
    """The operation was published, aborted or made ready already, and not as this call wants."""

    condition = "OPERATION_DECIDED"


class PartConflict(CatalogError):
    """A part contradicts what the operation has staged already; nothing was written."""

    condition = "PART_CONFLICT"


class PartsMissing(CatalogError):
    """Not all parts of the operation are staged, or their number is not known yet."""

    condition = "PARTS_MISSING"
    retryable = True


class ClaimConflict(CatalogError):
    """An operation that is not decided yet claims a key; nothing was written."""

    condition = "CLAIM_CONFLICT"
    retryable = True


class EpochNotNewer(CatalogError):
    """An operation can only be published at an epoch above the stable one."""

    condition = "EPOCH_NOT_NEWER"


class EpochOrder(CatalogError):
    """An operation would overtake another one that comes before it on the same key."""

    condition = "EPOCH_ORDER"


class EpochRegression(CatalogError):
    """The stable epoch never goes down."""

    condition = "EPOCH_REGRESSION"


class NothingPending(CatalogError, LookupError):
    """No open operation has changes of this key to publish."""

    condition = "NOTHING_PENDING"


# --- tasks ---------------------------------------------------------------------------------------


class UnknownTask(CatalogError, LookupError):
    """No task has this id, or this name."""

    condition = "UNKNOWN_TASK"


class TaskBusy(CatalogError):
    """Somebody else runs the task, or one that excludes it; nothing was done."""

    condition = "TASK_BUSY"
    retryable = True


class TaskLost(CatalogError):
    """The task was cancelled, or taken over by somebody else: this owner can write no more."""

    condition = "TASK_LOST"
    retryable = True


class TaskEnded(CatalogError):
    """The task is over already, and not as this call wants."""

    condition = "TASK_ENDED"


# --- what happened to a commit -------------------------------------------------------------------


class GaveUp(CatalogError):
    """The deadline passed while waiting or between tries; nothing was written."""

    condition = "GAVE_UP"
    retryable = True


class CacheBehind(CatalogError):
    """The commit happened, but a cache has not reached its version; `result` is the answer."""

    condition = "CACHE_BEHIND"
    retryable = True


class CommitFailed(CatalogError):
    """Spark or Delta refused a statement, not for a conflict; nothing was written."""

    condition = "COMMIT_FAILED"


class OutcomeUnknown(CatalogError):
    """Nobody can say whether the commit happened. The same call again settles it."""

    condition = "OUTCOME_UNKNOWN"
    retryable = True
