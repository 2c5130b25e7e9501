"""Clean-up: what its search costs, and what publishers feel of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from catalog import Catalog, Segment
from catalog.delta.session import own_session
from tests.benchmarks import data
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import Timing, Work, interleave, once, ready
from tests.benchmarks.report import Figure, at_most, slower, spread


def searching(catalog: Catalog) -> Work:
    """The search for orphans: a clean-up that only says what it would do."""
    return ready(lambda: catalog.cleanup(grace=timedelta(0), dry_run=True))


def search(ground: Ground) -> list[Figure]:
    """The search for orphans, against one scan of the fingerprints."""
    catalog = ground.large
    session = own_session(ground.spark)
    relation = catalog.location.table("entries")

    def scan() -> object:
        return session.sql(
            f"SELECT max(fingerprint) FROM {relation} WHERE kind = 'segment'"
        ).collect()

    times = interleave(
        {
            "ours": searching(catalog),
            "scan": ready(scan),
        },
        rounds=2 * ground.scale.few_rounds,
        warmups=ground.scale.warm(2),
    )
    name = f"search for orphans over {ground.scale.many:,}"
    return [slower(name, times["ours"], times["scan"], at_most(3), "scan of fingerprints")]


def beside(ground: Ground) -> list[Figure]:
    """The slowest publish while a clean-up retires many orphans, against the median without."""
    catalog = ground.catalog("beside")
    orphans = ground.scale.orphans
    # The first fifth warms up.
    for first, count in ((0, orphans // 5), (orphans, orphans)):
        catalog.publish(data.segments(first, count, 2 * orphans))
        catalog.drop([data.segment_id(number) for number in range(first, first + count)])
        if first == 0:
            catalog.cleanup(grace=timedelta(0))

    def publish() -> Callable[[], object]:
        number = next(ground.fresh)
        segment = Segment(data.segment_id(number), data.schema(number), num_rows=1)
        return lambda: catalog.publish([segment])

    quiet = interleave({"quiet": publish}, ground.scale.rounds, warmups=ground.scale.warm(3))[
        "quiet"
    ]
    retired: list[int] = []

    def clean() -> None:
        retired.append(len(catalog.cleanup(grace=timedelta(0), limit=orphans).retired))

    cleaner = threading.Thread(target=clean)
    busy: list[float] = []
    began = time.perf_counter()
    cleaner.start()
    while cleaner.is_alive():
        busy.append(once(publish()))
    cleaner.join()
    took = time.perf_counter() - began
    if retired != [orphans]:
        raise AssertionError(f"the clean-up retired {retired}, not {orphans}")
    report = catalog.verify()
    if not report.ok:
        raise AssertionError(report)
    beside = Timing(tuple(busy))
    return [
        Figure(
            f"slowest publish beside a clean-up of {orphans:,}",
            beside.slowest / quiet.median,
            at_most(3),
            f"slowest {beside.slowest:.3g} s of {len(busy)}, median {beside.median:.3g} s, "
            f"clean-up {took:.0f} s",
            f"quiet {spread(quiet)}",
            {"busy": beside.seconds, "quiet": quiet.seconds, "cleanup": took},
        )
    ]
