"""The meaning of an exception from Spark for the statement that raised it."""

from __future__ import annotations

import re
from enum import Enum

_CONFLICT = re.compile(
    r"DELTA_(CONCURRENT_|METADATA_CHANGED|PROTOCOL_CHANGED|MAX_COMMIT_RETRIES_EXCEEDED)"
)
_CONFLICT_CLASS = re.compile(
    r"\b(Concurrent(Append|DeleteRead|DeleteDelete|Transaction|Write)"
    r"|MetadataChanged|ProtocolChanged)Exception"
)
# Delta's conditions for versions past the retention, and Spark's for missing files.
_GONE = re.compile(
    r"DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND|DELTA_(VERSION|LOG_FILE)_NOT_FOUND|"
    r"DELTA_CHANGE_DATA_FILE_NOT_FOUND|DELTA_MISSING_CHANGE_DATA|FILE_NOT_EXIST|"
    r"FileNotFoundException"
)
# A concurrent creation was first.
ALREADY_THERE = {
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "TABLE_ALREADY_EXISTS",
    "SCHEMA_ALREADY_EXISTS",
}
# A restored table refuses rows of a catalog with another number of buckets.
BUCKETS_CONSTRAINT = "strata_buckets"
_MISPLACED = re.compile(rf"DELTA_VIOLATE_CONSTRAINT\w*\].{{0,20}}\b{BUCKETS_CONSTRAINT}\b")
_MARK = re.compile(r"strata:(\w+):(.*):strata", re.DOTALL)
_LOST = (
    "Py4JNetworkError",
    "Py4JError",
    "ConnectionError",
    "EOFError",
    "RpcError",
)


class Failure(Enum):
    """The kinds of failure that lead to different next steps."""

    CONFLICT = "another commit came first; nothing was written"
    CANCELLED = "the job was cancelled, perhaps with others of its group"
    RAISED = "a check in the statement refused it; nothing was written"
    LOST = "no answer came, so the statement may still be running"
    REFUSED = "Spark or Delta refused it"


def condition_of(error: BaseException) -> str:
    """Spark's name for the error, or an empty string."""
    getter = getattr(error, "getCondition", None)
    return (getter() or "") if callable(getter) else ""


def first_line(error: BaseException) -> str:
    """The message without the stack of the JVM: that of the innermost cause, if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return causes[-1].removeprefix("Caused by: ")
    return lines[0] if lines else repr(error)


def sql_state_of(error: BaseException) -> str:
    """The SQLSTATE of the error, or an empty string."""
    getter = getattr(error, "getSqlState", None)
    return (getter() or "") if callable(getter) else ""


def classify(error: BaseException) -> Failure:
    """Decides by condition, then SQLSTATE, then text: not every client keeps the condition."""
    condition, text = condition_of(error), str(error)
    # The condition first: the text may quote names that users chose.
    if condition == "USER_RAISED_EXCEPTION":
        return Failure.RAISED
    if _CONFLICT.match(condition) or sql_state_of(error) == "2D521":
        return Failure.CONFLICT
    if condition == "SPARK_JOB_CANCELLED":
        return Failure.CANCELLED
    if condition:
        return Failure.REFUSED
    if _is_lost(error):
        return Failure.LOST
    if "[USER_RAISED_EXCEPTION]" in text:
        return Failure.RAISED
    if _CONFLICT_CLASS.search(text) or _CONFLICT.search(text[:200]):
        return Failure.CONFLICT
    return Failure.CANCELLED if "[SPARK_JOB_CANCELLED]" in text else Failure.REFUSED


def is_gone(error: BaseException) -> bool:
    """Whether versions or files are gone for good."""
    return bool(_GONE.search(condition_of(error)) or _GONE.search(str(error)))


def is_misplaced(error: BaseException) -> bool:
    """Whether the table refused rows in the wrong buckets."""
    return bool(_MISPLACED.search(str(error)))


def _is_lost(error: BaseException) -> bool:
    """True if the connection failed rather than the statement."""
    if type(error).__name__ == "Py4JJavaError":
        return False  # the JVM itself raised it: the statement is over
    if type(error).__name__ == "SparkConnectGrpcException":
        # Exactly this class: errors that the server raised are subclasses.
        return True
    return any(cls.__name__ in _LOST for cls in type(error).__mro__)


def mark(kind: str, key: str) -> str:
    """The SQL expression that raises an error from which `marked` reads kind and key."""
    return f"raise_error(concat('strata:', {kind}, ':', {key}, ':strata'))"


def marked(error: BaseException) -> tuple[str, str] | None:
    """The kind and key that a check named when it refused a statement."""
    getter = getattr(error, "getMessageParameters", None)
    parameters = (getter() or {}) if callable(getter) else {}
    match = _MARK.search(parameters.get("errorMessage", "") or str(error))
    return (match[1], match[2]) if match else None
