"""The commands that create a catalog and change its segments: init, publish, backfill, drop."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from catalog.backfill.model import BackfillReport
from catalog.cli.arguments import Add, argument, by_setting, flag, moment, positive
from catalog.cli.command import (
    Access,
    Answer,
    Work,
    answer_of,
    change,
    command,
    cut,
    facts_of,
    is_task,
    table_of,
)
from catalog.cli.commands.contracts import offences_table
from catalog.cli.commands.tasks import run_as_task
from catalog.files.paths import FORMATS
from catalog.files.publisher import FilesReport
from catalog.model import OnExisting
from catalog.segments.manifest import FORMATS as MANIFESTS
from catalog.segments.manifest import few_segments, read_manifest

# At most this many segments in quarantine are listed; all of them are counted.
_LISTED = 1000


@command(
    "init",
    "create a catalog, unless it exists",
    example="--location /data/meta",
    access=Access.CREATE,
)
def init(work: Work) -> Answer:
    if work.catalog.location.path is None:
        # The process that created the catalog may have been stopped before it made them.
        work.catalog.inspect.create_views()
        work.catalog.inspect.create_functions()
    return Answer(
        facts={"location": str(work.catalog.location), "version": work.catalog.version},
        note="The catalog is ready.",
    )


@change(
    "publish",
    "publish the segments of a manifest, all of them or none",
    argument("manifest", "a file or directory with one line or row per segment"),
    argument("--format", "its format, if its name does not end in it", choices=MANIFESTS),
    argument(
        "--on-existing",
        "what to do about ids that exist with other content",
        choices=OnExisting,
        default=OnExisting.REFUSE.value,
    ),
    details=(
        "A manifest is Parquet, CSV with a header or JSON lines. Its columns are segment_id (or\n"
        "datasource and name), schema (DDL or Spark's JSON), num_rows, and if known size_bytes,\n"
        "location, starts_at and ends_at (ISO 8601 with a time zone). Where a location is given,\n"
        "schema and num_rows may be empty: strata backfill finds them in the data. Publishing the\n"
        "same again changes nothing, so a run that failed can simply be repeated."
    ),
    example='segments.csv --location /data/meta --reason "daily load"',
)
def publish(work: Work) -> Answer:
    given = work.arguments
    frame = read_manifest(work.spark, given.manifest, given.format)
    few = few_segments(frame)
    result = work.catalog.publish(
        frame if few is None else few, on_existing=given.on_existing, **work.call
    )
    tables = {"warnings": offences_table(result.warnings)} if result.warnings else {}
    return answer_of(result, tables=tables)


def _batch(what: str, setting: str) -> Add:
    return argument("--batch", f"{what} per commit {by_setting(setting)}", type=positive)


@change(
    "publish-files",
    "publish files as segments, with the schemas and row counts of their footers",
    argument("datasource", "the datasource whose segments they become"),
    argument(
        "pattern",
        "files such as '/data/orders/**/*.parquet' (in quotes, or your shell expands it), "
        "a folder with everything in it, or a Delta table",
    ),
    argument("--format", "the format of files whose names do not end in it", choices=FORMATS),
    flag("--remove-missing", "drop segments that match the pattern and whose files are gone"),
    flag("--replace-changed", "publish files again that changed since they were published"),
    _batch("files", "publish_files.batch"),
    limit=100,
    dry_run="only list and compare; no data file is opened",
    as_task=True,
    details=(
        "Footers are read on the executors, and of a Delta table the log. A segment is named\n"
        "after its file's path below the part of the pattern that has no wildcards. Files that\n"
        "are published already are skipped, so a run that was stopped can simply be repeated.\n"
        "Exit code 1 says that files are broken; the others are published nevertheless."
    ),
    example="orders '/data/orders/**/*.parquet' --reason \"daily load\"",
)
def publish_files(work: Work) -> Answer:
    given = work.arguments
    options = {
        **facts_of(given, "datasource", "pattern", "format", "batch"),
        **facts_of(given, "remove_missing", "replace_changed"),
    }
    if is_task(given):
        return run_as_task(work, "publish-files", **_given(options))
    report = work.catalog.publish_files(**options, dry_run=given.dry_run, **work.call)
    broken = ((problem.path, problem.reason) for problem in report.broken)
    return answer_of(
        report,
        tables={
            "broken": cut(("path", "reason"), broken, given.limit),
            "changed": cut(("segment_id",), ((each,) for each in report.changed), given.limit),
            "missing": cut(("segment_id",), ((each,) for each in report.missing), given.limit),
        },
        found=bool(report.broken),
        note=" ".join(_advice_on_files(report, given)),
    )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without defaults, as the arguments that identify a task have none."""
    return {name: value for name, value in options.items() if value}


def _advice_on_files(report: FilesReport, given: Namespace) -> Iterable[str]:
    if report.broken:
        yield "Broken files are left out: repair them and run the same again."
    if report.changed and not given.replace_changed:
        yield "Changed files stay as they were published: --replace-changed publishes them again."
    if report.missing and not given.remove_missing:
        yield "Segments whose files are missing are kept: --remove-missing drops them."
    if report.waiting:
        yield "Segments without a schema get it from strata backfill."


@change(
    "backfill",
    "find the schemas of segments that were published without one",
    argument("--limit", "examine at most this many segments", type=positive),
    argument(
        "--datasource",
        "only segments of this datasource; may be repeated",
        action="append",
        metavar="DATASOURCE",
    ),
    argument("--format", "the format of locations that do not end in it", choices=FORMATS),
    flag("--retry-quarantined", "retry those in quarantine now, not when their pause is over"),
    _batch("segments", "backfill.batch"),
    dry_run="only count those without a schema",
    as_task=True,
    details=(
        "The footers of their files are read on the executors, and the schemas are stored a batch\n"
        "at a time. It may be stopped and run again at any time, also by two processes at once.\n"
        "Exit code 1 says that segments went into quarantine: their data does not have a schema."
    ),
    example="--datasource orders --limit 100000",
)
def backfill(work: Work) -> Answer:
    given = work.arguments
    options = {
        "datasources": given.datasource,
        **facts_of(given, "limit", "format", "retry_quarantined", "batch"),
    }
    if is_task(given):
        return run_as_task(work, "backfill", **_given(options))
    report = work.catalog.backfill(**options, dry_run=given.dry_run, **work.call)
    listed = table_of(
        report.quarantined[:_LISTED],
        ("segment_id", "location", "reason", "attempts", "retry_at"),
        ("segment_id", "reason", "attempts", "retry_at"),
    )
    return answer_of(
        report,
        tables={"quarantined": listed},
        found=bool(report.quarantined),
        note=" ".join(_advice_on_backfill(report)),
    )


def _advice_on_backfill(report: BackfillReport) -> Iterable[str]:
    if report.quarantined:
        yield "Segments in quarantine are retried after a pause: repair their data."
    if report.quarantined or report.resting:
        yield "strata segments --without-schema lists all of them."
    if report.claimed:
        yield "Segments that operations claim have to wait: strata operations list shows these."
    if report.left and not report.dry_run:
        yield "The rest is left to the next backfill."


@change(
    "drop",
    "drop segments by id, datasource or interval",
    argument("segment_ids", "ids: datasource/name", nargs="*", metavar="SEGMENT"),
    argument("--datasource", "all segments of a datasource"),
    argument("--starts-at", "only segments from then on", type=moment),
    argument("--ends-at", "only segments up to then", type=moment),
    dry_run="only count what would be dropped",
    details="Ids that do not exist are counted, not an error. Schemas stay until a clean-up.",
    example="--datasource clicks --ends-at 2024-01-01 --dry-run",
)
def drop(work: Work) -> Answer:
    given = work.arguments
    result = work.catalog.drop(
        given.segment_ids or None,
        datasource=given.datasource,
        starts_at=given.starts_at,
        ends_at=given.ends_at,
        dry_run=given.dry_run,
        **work.why,
    )
    return answer_of(result)
