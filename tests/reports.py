"""Reports for the tests of the page: an empty one, a realistic one, a large one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from catalog.report.content import (
    BrokenPromise,
    CommitLine,
    DatasourceLine,
    Growth,
    Report,
    RunLine,
    SchemaLine,
    Totals,
    UnusedLine,
    WaitingLine,
)

START = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)

EMPTY = Report(
    location="/data/meta",
    version=0,
    made_at=START,
    totals=Totals(0, 0, 0, 0, 0, 0, 0, 0, 0),
    growth=(),
    datasources=(),
    schemas=(),
    waiting=(),
    unused=(),
    commits=(),
    runs=(),
    problems=(),
    verified="version 0",
)

_DDLS = (
    "id BIGINT NOT NULL, price DECIMAL(10,2)",
    "user STRING, at TIMESTAMP",
    "id BIGINT NOT NULL, customer STRUCT<name: STRING, address: STRUCT<street: STRING, "
    "city: STRING, zip: STRING>>, lines ARRAY<STRUCT<sku: STRING, count: INT, "
    "price: DECIMAL(10,2)>>, note STRING, placed_at TIMESTAMP, paid_at TIMESTAMP",
)
_NAMES = ("orders", "visits", "returns", "payments", "stock", "carts", "clicks", "prices")
_VERBS = ("publish", "publish", "publish", "drop", "publish", "cleanup")


def fingerprint(number: int) -> str:
    """A fingerprint as real ones look, another for every number."""
    return f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}"


def growth(number: int, segments: int | None = None) -> Growth:
    """What stood after a version; it grows with setbacks unless told."""
    stood = number * 97 - number % 7 * 60 if segments is None else segments
    at = START + timedelta(hours=number)
    return Growth(number, at, stood, stood * 12_345, min(number, 14))


def commit(number: int, **given: object) -> CommitLine:
    """A commit; every fourth removes segments."""
    verb = _VERBS[number % len(_VERBS)]
    line = CommitLine(
        version=number,
        at=START + timedelta(hours=number),
        verb=verb,
        added=number * 37 % 211 if verb == "publish" else 0,
        removed=number * 53 % 120 if verb == "drop" else 0,
        changed=number % 5 if verb == "publish" else 0,
        actors=("nightly-load",) if number % 5 else ("ann", "bob", "cid", "dan", "eve"),
        reasons=("daily load",) if number % 3 else (),
    )
    return replace(line, **given)  # type: ignore[arg-type]


def datasource(number: int, **given: object) -> DatasourceLine:
    """A datasource of a few schemas, one of which others share."""
    name = _NAMES[number % len(_NAMES)]
    line = DatasourceLine(
        datasource=name if number < len(_NAMES) else f"{name}_{number}",
        segments=(number * 7919 + 1200) % 5000,
        rows=((number * 7919 + 1200) % 5000) * 12_345,
        size_bytes=None if number % 5 == 3 else number * 48_000_000 + 3_000,
        changed_at=START + timedelta(days=number, minutes=number * 7),
        fingerprints=tuple(fingerprint(one) for one in range(number % 6 + 1)),
    )
    return replace(line, **given)  # type: ignore[arg-type]


def schema(number: int, **given: object) -> SchemaLine:
    """A schema; the first are shared by most."""
    ddl = _DDLS[number % len(_DDLS)]
    line = SchemaLine(
        fingerprint=fingerprint(number),
        ddl=ddl,
        columns=ddl.count(",") + 1,
        segments=9000 // (number + 1),
        datasources=max(8 - number, 1),
        published_at=START + timedelta(days=number),
    )
    return replace(line, **given)  # type: ignore[arg-type]


def waiting(number: int, **given: object) -> WaitingLine:
    """A segment without a schema; every third is in quarantine."""
    name = f"clicks/2026-03-{number + 1:02}"
    at = START + timedelta(days=number)
    line = WaitingLine(name, f"s3://lake/{name}.parquet", at)
    if number % 3 == 0:
        retry_at = at + timedelta(minutes=10)
        reason = f"{line.location} is not a Parquet file: its last four bytes are not PAR1"
        line = replace(line, quarantined=True, attempts=2, retry_at=retry_at, reason=reason)
    return replace(line, **given)  # type: ignore[arg-type]


def unused(number: int) -> UnusedLine:
    """An orphan or a retired schema, by turns."""
    state = "retired" if number % 2 else "orphan"
    ddl = _DDLS[number % len(_DDLS)]
    return UnusedLine(fingerprint(1000 + number), ddl, state, START + timedelta(days=number))


def run(number: int, **given: object) -> RunLine:
    """A run; the newest still runs, some went wrong."""
    statuses = ("running", "done", "done", "failed", "done", "found", "gave_up", "interrupted")
    status = statuses[number % len(statuses)]
    started = START + timedelta(hours=100 - number)
    line = RunLine(
        run_id=fingerprint(2000 + number),
        job=("publish", "cleanup", "verify", "maintain")[number % 4],
        actor="nightly-load",
        status=status,
        started_at=started,
        ended_at=None
        if status == "running"
        else started + timedelta(seconds=4.2 * 9 ** (number % 5)),
        version_before=120 - number,
        version_after=None if status == "running" else 121 - number,
        error_condition="COMMIT_FAILED" if status == "failed" else None,
    )
    return replace(line, **given)  # type: ignore[arg-type]


PROBLEMS = (
    BrokenPromise(
        "I3", "segments whose schema is nowhere", 3, "orders/2024-01-01 carries 4f07f2c11f0e"
    ),
    BrokenPromise("I2", "keys with more than one live row", 1, "visits/a"),
)


def report(size: int = 12, versions: int = 129) -> Report:
    """A report with `size` lines in every list and a growth of `versions`."""
    return Report(
        location="s3://lake/production/meta",
        version=max(versions - 1, 0),
        made_at=START + timedelta(days=9),
        totals=Totals(12_480, 154_065_600, 4_831_838_208, 14, 12, 7, 5, 12, 4),
        growth=tuple(growth(number) for number in range(versions)),
        datasources=tuple(datasource(number) for number in range(size)),
        schemas=tuple(schema(number) for number in range(size)),
        waiting=tuple(waiting(number) for number in range(size)),
        unused=tuple(unused(number) for number in range(size)),
        commits=tuple(commit(number) for number in reversed(range(size))),
        runs=tuple(run(number) for number in range(size)),
        problems=(),
        verified=f"versions 0 to {max(versions - 1, 0)}",
    )
