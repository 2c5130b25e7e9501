"""Operations, against plain publishes of the same segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from catalog import Segment
from catalog.operations.operation import Operation
from tests.benchmarks import data
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import interleave
from tests.benchmarks.report import Figure, slower

PARTS = 4


def operation(ground: Ground) -> list[Figure]:
    """Four parts, published at one moment; the same segments in four calls; the last step alone."""
    catalog = ground.catalog("operation")
    each = 1_000 if ground.scale.judged else 20
    schemas = 4

    def batches() -> list[list[Segment]]:
        first = next(ground.fresh) * PARTS * each
        return [data.segments(first + n * each, each, schemas) for n in range(PARTS)]

    def staged() -> Operation:
        made = catalog.operation("bench", parts=PARTS)
        for part, segments in enumerate(batches()):
            made.stage(part, publish=segments)
        return made

    def whole() -> Callable[[], object]:
        return lambda: staged().publish()

    def plain() -> Callable[[], object]:
        given = batches()
        return lambda: [catalog.publish(segments) for segments in given]

    def last_step() -> Callable[[], object]:
        return staged().publish

    def one_publish() -> Callable[[], object]:
        segments = [segment for batch in batches() for segment in batch]
        return lambda: catalog.publish(segments)

    times = interleave(
        {"whole": whole, "plain": plain, "last": last_step, "once": one_publish},
        ground.scale.few_rounds,
        ground.scale.warm(),
    )
    counted = {"counters": asdict(catalog.operations.metrics())}
    size = f"{PARTS} parts × {each:,} segments"
    figures = [
        slower(f"operation of {size}", times["whole"], times["plain"], None, f"{PARTS} publishes"),
        slower(
            f"publishing it, {size} staged",
            times["last"],
            times["once"],
            None,
            "1 publish of all of them",
        ),
    ]
    return [replace(each, details={**each.details, **counted}) for each in figures]
