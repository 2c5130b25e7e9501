"""Every store does the same work in one run, and what it fails at is its result."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.benchmarks import data
from tests.benchmarks.measure import Work, interleave
from tests.benchmarks.peers.deltars import DeltaRs
from tests.benchmarks.peers.ducklake import DuckLake
from tests.benchmarks.peers.postgres import PostgreSQL
from tests.benchmarks.peers.standings import publish_name
from tests.benchmarks.peers.standings import table as table
from tests.benchmarks.peers.store import Connection, Peer
from tests.benchmarks.peers.strata import Strata
from tests.benchmarks.peers.twomerges import TwoMerges
from tests.benchmarks.scale import Scale

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS = 4
# What one task of a job publishes in the race.
RACED = 10
# A store is filled by calls of so many: a million rows at once would be 2 GB of definitions.
PORTION = 250_000
# Schemas that nothing else uses.
NEW_SCHEMAS = 1_000_000


def everyone(spark: SparkSession) -> list[Peer]:
    """All stores that there are."""
    return [
        Strata(spark),
        TwoMerges(spark),
        DeltaRs(),
        DeltaRs(tries=10),
        DuckLake(),
        PostgreSQL(),
    ]


@dataclass
class Entrant:
    """A store that takes part, and what it has shown so far."""

    peer: Peer
    writer: Connection
    reader: Connection
    used: int = 0
    position: Any = None
    works: dict[str, Any] = field(default_factory=dict)

    def rows(self, count: int, schemas: int) -> pa.Table:
        """Segments that this store has never seen."""
        first, self.used = self.used, self.used + count
        return data.plain_rows(first, count, schemas)

    def fail(self, work: str, error: BaseException) -> None:
        self.works[work] = {"error": _first_line(error)}

    def failed(self, work: str) -> bool:
        return "error" in self.works.get(work, {})


def run(
    scale: Scale, folder: Path, peers: Sequence[Peer], say: Callable[[str], None]
) -> dict[str, Any]:
    """What each store took, or why it took no part or failed, ready for JSON and for `table`."""
    stores: dict[str, dict[str, Any]] = {}
    entrants: list[Entrant] = []
    try:
        for number, peer in enumerate(peers):
            stores[peer.name] = {"atomic": peer.atomic, "durable": peer.durable}
            why = peer.missing()
            if why is None:
                try:
                    entrants.append(_enter(peer, folder / f"store_{number}"))
                except Exception as error:
                    why = f"it does not start: {_first_line(error)}"
            if why is None:
                stores[peer.name] |= {"version": peer.version(), "answers": peer.answers}
            else:
                stores[peer.name]["missing"] = why
                say(f"{peer.name} takes no part: {why}")
        for entrant in entrants:
            stores[entrant.peer.name]["works"] = entrant.works
        _all_works(scale, entrants, say)
    finally:
        for entrant in entrants:
            for connection in (entrant.writer, entrant.reader):
                with suppress(Exception):
                    connection.close()
        for peer in peers:
            # One that does not stop must not keep the others from it.
            try:
                peer.stop()
            except Exception as error:
                say(f"{peer.name} does not stop: {_first_line(error)}")
    return {"segments": scale.many, "bulk": scale.bulk, "stores": stores}


def _enter(peer: Peer, folder: Path) -> Entrant:
    folder.mkdir(parents=True)
    peer.start(folder)
    return Entrant(peer, peer.connect(), peer.connect())


def _all_works(scale: Scale, entrants: list[Entrant], say: Callable[[str], None]) -> None:
    for entrant in entrants:
        say(f"{entrant.peer.name}: filling with {scale.many:,} segments")
        _guarded(entrant, "fill", partial(_fill, entrant, scale))
    # A store that could not be filled would be measured with less.
    able = [entrant for entrant in entrants if not entrant.failed("fill")]

    say("full polls")
    _measure(able, "full poll", partial(_full_poll, scale=scale), scale.few_rounds)
    say("lookups")
    _lookups(able, scale)
    say("incremental polls")
    _measure(able, "incremental poll", partial(_poll, scale=scale), scale.rounds)
    for count, rounds in ((1, scale.rounds), (1_000, scale.rounds), (scale.bulk, scale.few_rounds)):
        say(f"publishes of {count:,}")
        work = publish_name(count)
        _measure(able, work, partial(_publish, count=count, scale=scale), rounds)
    for entrant in able:
        say(f"{entrant.peer.name}: {WRITERS} writers")
        _guarded(entrant, "race", partial(_race, entrant, scale))


def _guarded(entrant: Entrant, work: str, run: Callable[[], Any]) -> Any:
    """Runs a part of a work, unless the work has failed before; an error becomes its result."""
    if entrant.failed(work):
        return None
    try:
        return run()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # Panics of Rust are no Exceptions.
        entrant.fail(work, error)
        return None


def _measure(
    entrants: Sequence[Entrant],
    work: str,
    prepare: Callable[[Entrant], Callable[[], object]],
    rounds: int,
) -> None:
    """Times a work on all stores in turns."""

    def guarded(entrant: Entrant) -> Work:
        def prepared() -> Callable[[], object]:
            run = _guarded(entrant, work, lambda: prepare(entrant))
            return lambda: None if run is None else _guarded(entrant, work, run)

        return prepared

    if not entrants:
        return
    timings = interleave(
        {one.peer.name: guarded(one) for one in entrants}, rounds, warmups=min(1, rounds - 1)
    )
    for entrant in entrants:
        if not entrant.failed(work):
            entrant.works[work] = asdict(timings[entrant.peer.name])


# --- the works ------------------------------------------------------------------------------------


def _fill(entrant: Entrant, scale: Scale) -> None:
    seconds = 0.0
    for first in range(0, scale.many, PORTION):
        rows = entrant.rows(min(PORTION, scale.many - first), scale.schemas)
        began = time.perf_counter()
        entrant.writer.publish(rows)
        seconds += time.perf_counter() - began
    entrant.writer.settle()
    _expect("segments after filling", entrant.writer.segments(), scale.many)
    entrant.works["fill"] = {"seconds": [seconds]}


def _full_poll(entrant: Entrant, scale: Scale) -> Callable[[], object]:
    return lambda: _expect("segments in a full poll", entrant.reader.load(), scale.many)


def _lookups(entrants: Sequence[Entrant], scale: Scale) -> None:
    numbers = random.Random(scale.many).sample(range(scale.many), min(scale.bulk, scale.many))
    ids = [data.segment_id(number) for number in numbers]
    right = [data.schema(number % scale.schemas).fingerprint for number in numbers]
    answers: dict[str, list[str | None]] = {}

    def prepare(entrant: Entrant) -> Callable[[], object]:
        def ask() -> None:
            answers[entrant.peer.name] = entrant.reader.lookup(ids)

        return ask

    _measure(entrants, "lookups", prepare, scale.rounds)
    for entrant in entrants:
        if not entrant.failed("lookups") and answers[entrant.peer.name] != right:
            entrant.fail("lookups", WrongResult("some answers are wrong"))


def _poll(entrant: Entrant, scale: Scale) -> Callable[[], object]:
    if entrant.position is None:
        entrant.position = entrant.reader.position()
    entrant.writer.publish(entrant.rows(scale.changes, scale.schemas))

    def poll() -> None:
        entrant.position, found = entrant.reader.changes(entrant.position)
        _expect("changes in a poll", found, scale.changes)

    return poll


def _publish(entrant: Entrant, count: int, scale: Scale) -> Callable[[], object]:
    rows = entrant.rows(count, scale.schemas)
    return lambda: entrant.writer.publish(rows)


def _race(entrant: Entrant, scale: Scale) -> None:
    """Writers publish different segments of one schema that nobody has published before."""
    connections = [entrant.peer.connect() for _ in range(WRITERS)]
    ok: list[pa.Table] = []
    errors: list[str] = []
    seconds = []
    with ThreadPoolExecutor(WRITERS) as pool:
        try:
            for number in range(scale.rounds):
                portions = [_with_schema(entrant, NEW_SCHEMAS + number) for _ in connections]
                barrier = threading.Barrier(WRITERS)
                racing = [
                    pool.submit(_publish_at_once, barrier, connection, rows)
                    for connection, rows in zip(connections, portions, strict=True)
                ]
                outcomes = [future.result() for future in racing]
                seconds.append(max(took for took, _ in outcomes))
                for rows, (_, error) in zip(portions, outcomes, strict=True):
                    if error is None:
                        ok.append(rows)
                    else:
                        errors.append(error)
        finally:
            for connection in connections:
                connection.close()
    entrant.reader.load()
    ids = [str(one) for rows in ok for one in rows.column("segment_id").to_pylist()]
    entrant.works["race"] = {
        "seconds": seconds,
        "ok": len(ok),
        "failed": len(errors),
        "duplicates": entrant.reader.duplicates(),
        "missing": entrant.reader.lookup(ids).count(None),
        "errors": dict(Counter(errors).most_common(3)),
    }


def _with_schema(entrant: Entrant, number: int) -> pa.Table:
    rows, schema = entrant.rows(RACED, 1), data.schema(number)
    for name, value in (("fingerprint", schema.fingerprint), ("payload", schema.payload)):
        column = rows.column_names.index(name)
        rows = rows.set_column(column, name, pa.array([value] * RACED, pa.string()))
    return rows


def _publish_at_once(
    barrier: threading.Barrier, connection: Connection, rows: pa.Table
) -> tuple[float, str | None]:
    barrier.wait()
    began = time.perf_counter()
    try:
        connection.publish(rows)
    except BaseException as error:
        return time.perf_counter() - began, _first_line(error)
    return time.perf_counter() - began, None


class WrongResult(Exception):
    """A store did something else than it was asked to."""


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise WrongResult(f"{found:,} {what}, not {expected:,}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
