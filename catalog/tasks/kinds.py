"""The tasks that have names: `TASKS`. A new one is a `TaskKind` in this table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from catalog.backups.restore import check_vacant
from catalog.model import Reported
from catalog.settings.model import default_of
from catalog.tasks.kind import Arguments, Results, TaskKind, TaskStep, TaskWork, in_order


def _span(arguments: Arguments, name: str) -> dict[str, Any]:
    """An argument in seconds as the duration that a verb takes, if it was given."""
    given = arguments.get(f"{name}_seconds")
    return {} if given is None else {name: timedelta(seconds=given)}


def _given(arguments: Arguments, *names: str) -> dict[str, Any]:
    return {name: arguments[name] for name in names if name in arguments}


def _recorded(report: Reported, *names: str) -> Mapping[str, Any]:
    """What a step records of a report: the version and all figures, or only these values."""
    known = {**report.facts(), **report.figures()}
    return {name: known[name] for name in names or ("version", *report.figures())}


# --- cleanup, recover -----------------------------------------------------------------------------


def _cleanup(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.cleanup(
        **_span(work.arguments, "grace"),
        **_given(work.arguments, "limit"),
        **work.how,
        progress=work.progress,
    )
    return _recorded(report)


def _recover(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.operations.recover(
        **_span(work.arguments, "keep"), **work.how, progress=work.progress
    )
    return _recorded(report)


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
        return _recorded(report, "version", "partitions_compacted", "conflicts_retried")

    return TaskStep(f"optimize {kind} {bucket}", run)


def _rest(work: TaskWork) -> Mapping[str, Any]:
    """The rest of maintenance: side tables, audit, retention properties, VACUUM."""
    report = work.catalog.maintain(
        **_given(work.arguments, "optimize", "audit", "vacuum", "cut_off_pollers"),
        **_span(work.arguments, "retain"),
        **_span(work.arguments, "poller_lag"),
        **work.how,
        progress=work.progress,
    )
    return _recorded(report, "version", "files_removed", "conflicts_retried")


def _maintain_steps(arguments: Arguments, results: Results) -> Sequence[TaskStep]:
    planned = results.get("plan", {"partitions": []})["partitions"]
    return (
        TaskStep("plan", _plan),
        *(_optimize(kind, bucket) for kind, bucket in planned),
        TaskStep("vacuum", _rest),
    )


# --- backfill -------------------------------------------------------------------------------------

# Batches in one step; segments that a step completed are not visited again after a takeover.
_BATCHES = 10


def _fill(number: int) -> TaskStep:
    def run(work: TaskWork) -> Mapping[str, Any]:
        report = work.catalog.backfill(
            **_given(work.arguments, "datasources", "format", "retry_quarantined", "batch"),
            limit=_portion(work.arguments, work.results),
            **work.how,
            progress=work.progress,
        )
        # Without what is claimed: the next step meets it again.
        looked_at = report.waiting - report.left - report.claimed
        # Without the rate: figures are added up over the steps.
        counts = _recorded(report, *report.counts(), "conflicts_retried")
        return {"version": report.version, "looked_at": looked_at, **counts}

    return TaskStep(f"segments {number}", run)


def _portion(arguments: Arguments, results: Results) -> int | None:
    """The number of segments for the next step; no limit of its own for `retry_quarantined`.

    Quarantined segments stay due while they are retried, so a second step would get the same ones.
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
    return _recorded(report)


# --- backup ---------------------------------------------------------------------------------------


def _choose(work: TaskWork) -> Mapping[str, Any]:
    """Chooses the version to copy, so that after a takeover the same one is copied.

    A given time always means the same version.
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
    return _recorded(report, "version", "path", "rows")


# --- rebucket -------------------------------------------------------------------------------------


def _choose_to_move(work: TaskWork) -> Mapping[str, Any]:
    """Chooses the version, after a check that the target is free: before anything is copied."""
    check_vacant(work.catalog._context.store.session, work.arguments["target"])
    return _choose(work)


def _restore(work: TaskWork) -> Mapping[str, Any]:
    report = work.catalog.restore(
        work.catalog._context.spark,
        work.arguments["path"],
        work.arguments["target"],
        segment_buckets=work.arguments["segment_buckets"],
        actor=work.actor,
        reason=work.reason,
        deadline=work.deadline,
        progress=work.progress,
    )
    return _recorded(report, "location", "segment_buckets")


def _verify(work: TaskWork) -> Mapping[str, Any]:
    """Verifies the new catalog, and counts the versions that it does not have."""
    with work.catalog.open(
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
    return _recorded(report)


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
