"""How cost grows with the number of segments: the same works at several sizes, and a plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tests.benchmarks.caching import bytes_of, polling
from tests.benchmarks.cleaning import searching
from tests.benchmarks.ground import Ground
from tests.benchmarks.measure import interleave, ready
from tests.benchmarks.publishing import one_more
from tests.benchmarks.report import table

COSTS = ("publish 1", "poll", "load", "orphan search", "memory")


def measure(ground: Ground) -> dict[int, dict[str, float]]:
    """Seconds of each work, and bytes of the cache, by number of segments."""
    costs: dict[int, dict[str, float]] = {}
    for size in ground.scale.growth:
        ground.say(f"growth at {size:,} segments …")
        catalog = ground.catalog("growth", size)
        times = interleave(
            {
                "publish 1": one_more(ground, catalog),
                "poll": polling(ground, catalog),
                "load": ready(lambda catalog=catalog: catalog.cache()),  # type: ignore[misc]
                "orphan search": searching(catalog),
            },
            rounds=ground.scale.few_rounds,
            warmups=ground.scale.warm(),
        )
        memory = bytes_of(catalog.cache().snapshot)
        costs[size] = {name: timing.median for name, timing in times.items()} | {
            "memory": float(memory)
        }
    return costs


def slopes(costs: dict[int, dict[str, float]]) -> dict[str, float]:
    """The exponent of each cost between the two largest sizes: 0 is constant, 1 proportional."""
    below, above = sorted(costs)[-2:]
    return {
        name: math.log(costs[above][name] / costs[below][name]) / math.log(above / below)
        for name in COSTS
    }


def as_table(costs: dict[int, dict[str, float]]) -> str:
    """One line a size, and the slopes."""
    rows = [
        (f"{size:,}", *(_show(name, cost[name]) for name in COSTS)) for size, cost in costs.items()
    ]
    rows.append(("slope", *(f"{slope:.2f}" for slope in slopes(costs).values())))
    return table(("segments", *COSTS), rows)


def as_json(costs: dict[int, dict[str, float]]) -> dict[str, Any]:
    return {"costs": costs, "slopes": slopes(costs)}


def _show(name: str, cost: float) -> str:
    return f"{cost / 1e6:.3g} MB" if name == "memory" else f"{cost:.3g} s"


def plot(costs: dict[int, dict[str, float]], file: Path) -> None:
    """Draws seconds and megabytes over segments, both axes logarithmic, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    sizes = sorted(costs)
    for name in COSTS:
        axes, unit = (right, 1e6) if name == "memory" else (left, 1.0)
        axes.plot(sizes, [costs[size][name] / unit for size in sizes], marker="o", label=name)
    for axes, label in ((left, "seconds"), (right, "megabytes of the cache")):
        axes.set(xscale="log", yscale="log", xlabel="segments", ylabel=label)
        axes.grid(True, which="both", alpha=0.25)
    left.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    pyplot.close(figure)
