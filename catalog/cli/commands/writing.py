"""The words that change what is in the catalog: init, publish, drop."""

from __future__ import annotations

from argparse import ArgumentParser

from catalog.cli.answer import Answer, answer_of
from catalog.cli.command import Access, Command, Work
from catalog.cli.offences import shown_offences
from catalog.cli.options import moment, seconds
from catalog.model import OnExisting
from catalog.segments.manifest import FORMATS, few_segments, read_manifest


def add_why(parser: ArgumentParser) -> None:
    """The options of every word that commits something."""
    parser.add_argument("--reason", default="", help="why; stands in the commit's metadata")
    parser.add_argument(
        "--deadline",
        type=seconds,
        metavar="TIME",
        help="how long to wait for other writers before giving up (default: the setting deadline, "
        "120s at first)",
    )


# --- init -----------------------------------------------------------------------------------------


def _no_arguments(parser: ArgumentParser) -> None:
    return None


def _init(work: Work) -> Answer:
    catalog = work.catalog
    if catalog.location.path is None:
        # Whoever created the catalog may have been stopped before it made them.
        catalog.inspect.create_views()
        catalog.inspect.create_functions()
    return Answer(
        facts={"location": str(catalog.location), "version": catalog.version},
        note="The catalog is ready.",
    )


INIT = Command(
    name="init",
    summary="create a catalog, unless it is there",
    example="init --location /data/meta",
    access=Access.CREATE,
    arguments=_no_arguments,
    work=_init,
)

# --- publish --------------------------------------------------------------------------------------


def _publish_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("manifest", help="a file or directory with one line or row per segment")
    parser.add_argument(
        "--format", choices=FORMATS, help="its format, if the ending does not tell it"
    )
    parser.add_argument(
        "--on-existing",
        choices=[mode.value for mode in OnExisting],
        default=OnExisting.REFUSE.value,
        help="what to do about ids that are there with other content (default %(default)s)",
    )
    add_why(parser)


def _publish(work: Work) -> Answer:
    arguments = work.arguments
    frame = read_manifest(work.spark, arguments.manifest, arguments.format)
    few = few_segments(frame)
    result = work.catalog.publish(
        frame if few is None else few,
        on_existing=arguments.on_existing,
        reason=arguments.reason,
        deadline=arguments.deadline,
        progress=work.progress,
    )
    tables = {"warnings": shown_offences(result.warnings)} if result.warnings else {}
    return answer_of(result, tables=tables)


PUBLISH = Command(
    name="publish",
    summary="publish the segments of a manifest, all of them or none",
    details=(
        "A manifest is Parquet, CSV with a header or JSON lines. Its columns are segment_id (or\n"
        "datasource and name), schema (DDL or Spark's JSON), num_rows, and if known size_bytes,\n"
        "location, starts_at and ends_at (ISO 8601 with a time zone). Where a location is given,\n"
        "schema and num_rows may be empty: strata backfill finds them in the data. Publishing the\n"
        "same again changes nothing, so a run that failed can simply be run again."
    ),
    example='publish segments.csv --location /data/meta --reason "daily load"',
    access=Access.WRITE,
    arguments=_publish_arguments,
    work=_publish,
    recorded=True,
)

# --- drop -----------------------------------------------------------------------------------------


def _drop_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("segment_ids", nargs="*", metavar="SEGMENT", help="ids: datasource/name")
    parser.add_argument("--datasource", help="all segments of a datasource")
    parser.add_argument("--starts-at", type=moment, metavar="TIME", help="only those from then on")
    parser.add_argument("--ends-at", type=moment, metavar="TIME", help="only those up to then")
    parser.add_argument("--dry-run", action="store_true", help="only count what would be dropped")
    add_why(parser)


def _drop(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.drop(
        arguments.segment_ids or None,
        datasource=arguments.datasource,
        starts_at=arguments.starts_at,
        ends_at=arguments.ends_at,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return answer_of(result)


DROP = Command(
    name="drop",
    summary="drop segments by id, datasource or interval",
    details="Ids that are not there are counted, not an error. Schemas stay until a clean-up.",
    example="drop --datasource clicks --ends-at 2024-01-01 --dry-run",
    access=Access.WRITE,
    arguments=_drop_arguments,
    work=_drop,
    recorded=True,
)
