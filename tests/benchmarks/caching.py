"""The cache: loading, polling, memory, lookups, broadcast."""

from __future__ import annotations

import gc
import pickle
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from catalog import Catalog
from catalog.cache.keys import keys_of
from catalog.cache.snapshot import Snapshot
from catalog.delta.session import own_session
from tests.benchmarks import data
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import Timing, Work, interleave, ready
from tests.benchmarks.report import Figure, at_least, at_most, quicker, slower

Answer = tuple[str, int]


def load(ground: Ground) -> list[Figure]:
    """A cold load, against reading the same columns to Arrow."""
    catalog = ground.large
    relation = catalog.location.table("entries")
    session = own_session(ground.spark)

    def read() -> object:
        return session.sql(
            f"SELECT key, fingerprint, num_rows, datasource FROM {relation} "
            f"VERSION AS OF {catalog.version} WHERE kind = 'segment'"
        ).toArrow()

    times = interleave(
        {"ours": ready(lambda: catalog.cache()), "read": ready(read)},
        rounds=2 * ground.scale.few_rounds,
        warmups=ground.scale.warm(),
    )
    name = f"cold load of {ground.scale.many:,} segments"
    return [slower(name, times["ours"], times["read"], at_most(2), "reading to Arrow")]


def polling(ground: Ground, catalog: Catalog) -> Work:
    """A poll of `scale.changes` new segments, which are published outside of the clock."""
    cache = catalog.cache()

    def prepare() -> Callable[[], object]:
        first = next(ground.fresh) * ground.scale.changes
        catalog.publish(data.segments(first, ground.scale.changes, ground.scale.schemas))
        return cache.poll

    return prepare


def poll(ground: Ground) -> list[Figure]:
    """Polls of many changes at two sizes, and polls of nothing."""
    rounds = ground.scale.rounds
    times = interleave(
        {"large": polling(ground, ground.large), "small": polling(ground, ground.small)},
        rounds,
        warmups=ground.scale.warm(2),
    )
    cache = ground.large.cache()
    session = own_session(ground.spark)
    describe = f"DESCRIBE HISTORY {ground.large.location.table('entries')} LIMIT 1"
    idle = interleave(
        {"ours": ready(cache.poll), "head": ready(lambda: session.sql(describe).collect())},
        rounds=2 * rounds,
        warmups=ground.scale.warm(3),
    )
    return [
        slower(
            f"poll of {ground.scale.changes:,} changes at {ground.scale.many:,}",
            times["large"],
            times["small"],
            at_most(1.5),
            f"at {ground.scale.small:,}",
        ),
        slower(
            "poll of nothing", idle["ours"], idle["head"], at_most(1.3), "DESCRIBE HISTORY LIMIT 1"
        ),
    ]


def memory(ground: Ground) -> list[Figure]:
    """What a segment takes in a cache."""
    snapshot = ground.large.cache().snapshot
    taken = bytes_of(snapshot)
    size, schemas = len(snapshot), len(snapshot.live) + len(snapshot.retired)
    return [
        Figure(
            f"memory a segment, {size:,} segments, {schemas:,} schemas",
            taken / size,
            at_most(32),
            f"{taken:,} bytes allocated",
            "",
            {"bytes": taken, "segments": size},
        )
    ]


def bytes_of(snapshot: Snapshot) -> int:
    """The bytes that are allocated while a snapshot comes into being from a pickle."""
    pickled = pickle.dumps(snapshot, protocol=5)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = pickle.loads(pickled)
    # What the first lookup builds belongs to it.
    kept.lookup([data.segment_id(0)])
    kept.fingerprint_of(data.segment_id(0))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken


def lookups(ground: Ground) -> list[Figure]:
    """Lookups in memory, against a Python dict from ids to answers."""
    cache = ground.large.cache()
    plain = as_dict(ground)
    numbers = list(range(ground.scale.many))
    random.Random(1).shuffle(numbers)
    column = pa.array([data.segment_id(number) for number in numbers])
    k1, k2 = keys_of(column)
    asked = max(1, min(100_000, ground.scale.many // 10))
    # Other strings than the dict's own, as they come out of a column.
    some = column.slice(0, asked).to_pylist()

    def in_dict() -> object:
        return [plain.get(name) for name in ids]

    def one_by_one(ask: Callable[[str], object]) -> Callable[[], object]:
        def run() -> None:
            for name in some:
                ask(name)

        return run

    def fresh_ids() -> Callable[[], object]:
        # A string keeps its hash: each round asks with strings that were never hashed.
        nonlocal ids
        ids = column.to_pylist()
        return in_dict

    def fresh_some(ask: Callable[[str], object]) -> Work:
        def prepare() -> Callable[[], object]:
            nonlocal some
            some = column.slice(0, asked).to_pylist()
            return one_by_one(ask)

        return prepare

    ids: list[str] = []
    rounds = ground.scale.rounds
    many = interleave(
        {
            "keys": ready(lambda: cache.lookup_keys(k1, k2)),
            "ids": ready(lambda: cache.lookup(column)),
            "dict": fresh_ids,
        },
        rounds,
    )
    single = interleave(
        {"ours": fresh_some(cache.fingerprint_of), "dict": fresh_some(plain.__getitem__)}, rounds
    )
    each = {name: Timing(tuple(s / asked for s in t.seconds)) for name, t in single.items()}
    size = f"{ground.scale.many:,}"
    loop = "dict in a loop"
    return [
        quicker(f"lookups of {size} keys", many["keys"], many["dict"], at_least(5), loop),
        quicker(f"lookups of {size} id strings", many["ids"], many["dict"], at_least(1), loop),
        slower("one lookup", each["ours"], each["dict"], at_most(4), "dict"),
    ]


def as_dict(ground: Ground) -> dict[str, Answer]:
    """What one would hold without the cache: ids to fingerprints and row counts."""
    schemas = [data.schema(number).fingerprint for number in range(ground.scale.schemas)]
    return {
        data.segment_id(number): (schemas[number % ground.scale.schemas], 1_000 + number % 1_000)
        for number in range(ground.scale.many)
    }


def broadcast(ground: Ground) -> list[Figure]:
    """Shipping the cache and asking it on two tasks, against a dict."""
    spark = ground.spark
    snapshot = ground.large.cache().snapshot
    plain = as_dict(ground)
    wanted = [data.segment_id(number) for number in range(4)]

    def ask_ours() -> object:
        # A new object each round: the cache would hand out the copy that it has shipped.
        handle: Any = spark.sparkContext.broadcast(_copy(snapshot))

        def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                found = handle.value.lookup(wanted).column("fingerprint").cast(pa.string())
                yield pa.record_batch({"answer": found.combine_chunks()})

        return spark.range(0, 2, 1, 2).mapInArrow(answer, "answer STRING").collect()

    def ask_dict() -> object:
        handle = spark.sparkContext.broadcast(plain)

        def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                found = [handle.value[name][0] for name in wanted]
                yield pa.record_batch({"answer": pa.array(found)})

        return spark.range(0, 2, 1, 2).mapInArrow(answer, "answer STRING").collect()

    times = interleave(
        {"ours": ready(ask_ours), "dict": ready(ask_dict)}, rounds=2 * ground.scale.few_rounds
    )
    return [
        slower("broadcast and first use", times["ours"], times["dict"], at_most(0.25), "a dict")
    ]


def _copy(snapshot: Snapshot) -> Snapshot:
    return Snapshot(
        snapshot.position,
        snapshot.index,
        snapshot.fingerprints,
        snapshot.live,
        snapshot.retired,
        snapshot.counts,
        snapshot.merges,
    )
