"""The tasks that there are: `TASKS`, by name. A new one is a `TaskKind` in this table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from catalog.backups.restore import check_vacant
from catalog.settings.known import default_of
from catalog.tasks.kind import Arguments, Results, TaskKind, TaskStep, TaskWork, in_order


def _span(arguments: Arguments, name: str) -> dict[str, Any]:
    """An argument in seconds as the span of time that a verb takes, if it was given."""
    given = arguments.get(f"{name}_seconds")
    return {} if given is None else {name: timedelta(seconds=given)}


def _given(arguments: Arguments, *names: str) -> dict[str, Any]:
    return {name: arguments[name] for name in names if name in arguments}


# --- cleanup, recover -----------------------------------------------------------------------------


def _cleanup(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.cleanup(
        **_span(work.arguments, "grace"),
        **_given(work.arguments, "limit"),
        **work.how,
        progress=work.progress,
    )
    return {
        "version": report.version,
        "restored": len(report.restored),
        "purged": len(report.purged),
        "retired": len(report.retired),
        "conflicts_retried": report.retries,
    }


def _recover(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.operations.recover(
        **_span(work.arguments, "keep"), **work.how, progress=work.progress
    )
    return {
        "version": report.version,
        "aborted": len(report.aborted),
        "decided": len(report.decided),
        "swept": len(report.swept),
        "forgotten": len(report.forgotten),
    }


# --- maintain -------------------------------------------------------------------------------------


def _plan(work: TaskWork) -> Mapping[str, Any]:
    """Which partitions are worth rewriting, the worst first."""
    if not work.arguments.get("optimize", True):
        return {"partitions": []}
    report = work.catalog.maintain(audit=False, vacuum=False, dry_run=True)
    return {"partitions": [[each.kind, each.bucket] for each in report.compacted]}


def _optimize(kind: str, bucket: int) -> TaskStep:
    def run(work: TaskWork) -> Mapping[str, Any]:
        report = work.catalog.maintain(
            audit=False,
            vacuum=False,
            partitions=[(kind, bucket)],
            **work.how,
            progress=work.progress,
        )
        return {
            "version": report.version,
            "partitions_compacted": len(report.compacted),
            "conflicts_retried": report.retries,
        }

    return TaskStep(f"optimize {kind} {bucket}", run)


def _rest(work: TaskWork) -> Mapping[str, Any]:
    """What is left: the small tables beside, the audit, the retention, files nobody needs."""
    report = work.catalog.maintain(
        **_given(work.arguments, "optimize", "audit", "vacuum", "cut_off_pollers"),
        **_span(work.arguments, "retain"),
        **_span(work.arguments, "poller_lag"),
        **work.how,
        progress=work.progress,
    )
    return {
        "version": report.version,
        "files_removed": sum(vacuumed.files or 0 for vacuumed in report.vacuumed),
        "conflicts_retried": report.retries,
    }


def _maintain_steps(arguments: Arguments, results: Results) -> Sequence[TaskStep]:
    planned = results.get("plan", {"partitions": []})["partitions"]
    return (
        TaskStep("plan", _plan),
        *(_optimize(kind, bucket) for kind, bucket in planned),
        TaskStep("vacuum", _rest),
    )


# --- backfill -------------------------------------------------------------------------------------

# So many batches are a step: what a step has stored is stored, so a takeover repeats no work.
_BATCHES = 10


def _fill(number: int) -> TaskStep:
    def run(work: TaskWork) -> Mapping[str, Any]:
        report = work.catalog.backfill(
            **_given(work.arguments, "datasources", "format", "retry_quarantined", "batch"),
            limit=_portion(work.arguments, work.results),
            **work.how,
            progress=work.progress,
        )
        return {
            "version": report.version,
            # Without what is claimed: the next step meets it again.
            "looked_at": report.waiting - report.left - report.claimed,
            "completed": report.completed,
            "overtaken": report.overtaken,
            "claimed": report.claimed,
            "quarantined": len(report.quarantined),
            "resting": report.resting,
            "left": report.left,
            "conflicts_retried": report.retries,
        }

    return TaskStep(f"segments {number}", run)


def _portion(arguments: Arguments, results: Results) -> int | None:
    """How many segments the next step looks at; all of them if they are to be tried again.

    What is in quarantine is due as long as it is to be tried again, so a second step would meet the
    same segments.
    """
    limit: int | None = arguments.get("limit")
    if arguments.get("retry_quarantined"):
        return limit
    portion: int = arguments.get("batch", default_of("backfill.batch")) * _BATCHES
    if limit is None:
        return portion
    looked_at: int = sum(result["looked_at"] for result in results.values())
    return min(portion, limit - looked_at)


def _backfill_steps(arguments: Arguments, results: Results) -> Sequence[TaskStep]:
    steps = len(results)
    last = results.get(f"segments {steps}")
    over = last is not None and (
        arguments.get("retry_quarantined")
        or not last["left"]
        or not last["looked_at"]
        or _portion(arguments, results) == 0
    )
    return [_fill(number + 1) for number in range(steps if over else steps + 1)]


# --- publish-files --------------------------------------------------------------------------------


def _publish_files(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.publish_files(
        work.arguments["datasource"],
        work.arguments["pattern"],
        **_given(work.arguments, "format", "remove_missing", "replace_changed", "batch"),
        **work.how,
        progress=work.progress,
    )
    return {
        "version": report.version,
        "files": report.files,
        "published": report.published,
        "replaced": report.replaced,
        "unchanged": report.unchanged,
        "waiting": report.waiting,
        "changed": len(report.changed),
        "missing": len(report.missing),
        "dropped": report.dropped,
        "broken": len(report.broken),
        "conflicts_retried": report.retries,
    }


# --- backup ---------------------------------------------------------------------------------------


def _choose(work: TaskWork) -> Mapping[str, Any]:
    """Which version is copied: whoever takes over goes on with the same, at the same path.

    A time that is given stands for the same version whenever it is asked.
    """
    if "time" in work.arguments:
        return {}
    return {"version": work.arguments.get("version", work.catalog.version)}


def _copy(work: TaskWork) -> Mapping[str, Any]:
    at = work.arguments.get("time")
    report = work.catalog.backups.create(
        work.arguments["path"],
        version=work.results["choose"]["version"] if at is None else datetime.fromisoformat(at),
        actor=work.actor,
        reason=work.reason,
        progress=work.progress,
    )
    return {"version": report.version, "path": report.path, "rows": report.rows}


# --- rebucket -------------------------------------------------------------------------------------


def _choose_to_move(work: TaskWork) -> Mapping[str, Any]:
    """The version, if there is room for it where it is to go: known before all is copied."""
    check_vacant(work.catalog._context.store.session, work.arguments["target"])
    return _choose(work)


def _restore(work: TaskWork) -> Mapping[str, Any]:
    report = type(work.catalog).restore(
        work.catalog._context.spark,
        work.arguments["path"],
        work.arguments["target"],
        segment_buckets=work.arguments["segment_buckets"],
        actor=work.actor,
        reason=work.reason,
        deadline=work.deadline,
        progress=work.progress,
    )
    return {"location": report.location, "segment_buckets": report.segment_buckets}


def _verify(work: TaskWork) -> Mapping[str, Any]:
    """Whether the new catalog keeps the promises, and whether it has all that this one has."""
    with type(work.catalog).open(
        work.catalog._context.spark, work.arguments["target"], read_only=True
    ) as moved:
        violations = moved.verify(progress=work.progress).violations
    return {
        "violations": sum(each.count for each in violations),
        "versions_since": work.catalog.version - work.results["copy"]["version"],
    }


# --- retain ---------------------------------------------------------------------------------------


def _retain(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.retention.apply(
        **_given(work.arguments, "datasources", "limit"), **work.how, progress=work.progress
    )
    return {
        "version": report.version,
        "retention_archived": report.archived,
        "retention_dropped": report.dropped,
        "retention_overtaken": report.overtaken,
        "retention_failed": report.failed,
        "retention_left": report.left,
        "retention_troubled": report.troubled,
        "conflicts_retried": report.retries,
    }


# --- all of them ----------------------------------------------------------------------------------

_KINDS = (
    TaskKind(
        "cleanup",
        in_order(TaskStep("cleanup", _cleanup)),
        exclusive="cleanup",
        arguments={"grace_seconds": float, "limit": int},
    ),
    TaskKind(
        "recover",
        in_order(TaskStep("recover", _recover)),
        exclusive="recover",
        arguments={"keep_seconds": float},
    ),
    TaskKind(
        "maintain",
        _maintain_steps,
        exclusive="maintain",
        arguments={
            "optimize": bool,
            "audit": bool,
            "vacuum": bool,
            "retain_seconds": float,
            "poller_lag_seconds": float,
            "cut_off_pollers": bool,
        },
    ),
    TaskKind(
        "backfill",
        _backfill_steps,
        exclusive="backfill",
        arguments={
            "limit": int,
            "datasources": list,
            "format": str,
            "retry_quarantined": bool,
            "batch": int,
        },
        latest=frozenset({"claimed", "left", "resting"}),
        found=frozenset({"quarantined"}),
    ),
    TaskKind(
        "publish-files",
        in_order(TaskStep("publish files", _publish_files)),
        arguments={
            "datasource": str,
            "pattern": str,
            "format": str,
            "remove_missing": bool,
            "replace_changed": bool,
            "batch": int,
        },
        required=frozenset({"datasource", "pattern"}),
        found=frozenset({"broken"}),
    ),
    TaskKind(
        "backup",
        in_order(TaskStep("choose", _choose), TaskStep("copy", _copy)),
        exclusive="backup",
        arguments={"path": str, "version": int, "time": str},
        required=frozenset({"path"}),
    ),
    TaskKind(
        "rebucket",
        in_order(
            TaskStep("choose", _choose_to_move),
            TaskStep("copy", _copy),
            TaskStep("restore", _restore),
            TaskStep("verify", _verify),
        ),
        exclusive="rebucket",
        arguments={"path": str, "target": str, "segment_buckets": int},
        required=frozenset({"path", "target", "segment_buckets"}),
        found=frozenset({"violations", "versions_since"}),
    ),
    TaskKind(
        "retain",
        in_order(TaskStep("retain", _retain)),
        exclusive="retain",
        arguments={"datasources": list, "limit": int},
        found=frozenset({"retention_failed", "retention_troubled"}),
    ),
)
TASKS: dict[str, TaskKind] = {kind.name: kind for kind in _KINDS}
