"""Runs the benchmarks, prints tables with goals and verdicts, and writes JSON and a plot."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyspark

from tests import sessions
from tests.benchmarks import (
    caching,
    cleaning,
    crowds,
    evolving,
    filling,
    growth,
    operating,
    publishing,
    report,
)
from tests.benchmarks.ground import Ground
from tests.benchmarks.peers import contest
from tests.benchmarks.report import Figure
from tests.benchmarks.scale import SCALES, Scale

FIGURES: dict[str, Callable[[Ground], list[Figure]]] = {
    "one": publishing.one,
    "bulk": publishing.bulk,
    "frame": publishing.frame,
    "into": publishing.into,
    "load": caching.load,
    "poll": caching.poll,
    "memory": caching.memory,
    "lookups": caching.lookups,
    "broadcast": caching.broadcast,
    "merge": evolving.merging,
    "compare": evolving.comparing,
    "datasource": evolving.datasource,
    "read": evolving.reading,
    "footers": filling.footers,
    "backfill": filling.backfill,
    "operation": operating.operation,
    "search": cleaning.search,
    "beside": cleaning.beside,
    "threads": crowds.threads,
    "processes": crowds.processes,
}
PARTS = (*FIGURES, "growth", "peers")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the arguments choose; what fails is reported at the end and gives 1."""
    options = _parser().parse_args(argv)
    # A run that is ended stops the servers that it started and removes its folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    run = _Run(SCALES[options.scale], options.out)
    run.measure(options.only or PARTS)
    run.write()
    return 1 if run.errors else 0


class _Run:
    """One run: its results so far, and what could not be run."""

    def __init__(self, scale: Scale, out: Path) -> None:
        self._scale = scale
        self._out = out
        self._figures: list[Figure] = []
        self._growth: dict[int, dict[str, float]] = {}
        self._peers: dict[str, Any] = {}
        self._seconds: dict[str, float] = {}
        self.errors: dict[str, str] = {}

    def measure(self, parts: Sequence[str]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="strata-bench-"))
        spark = sessions.start(
            "local[*]",
            defaults=self._scale.judged,
            **({} if self._scale.judged else sessions.SHORT_LIVED),
            **{"spark.sql.warehouse.dir": str(folder / "warehouse")},
        )
        spark.sparkContext.setLogLevel("OFF")
        try:
            ground = Ground(spark, folder, self._scale, _say)
            for part in parts:
                began = time.perf_counter()
                _say(f"{part} …")
                try:
                    self._part(part, ground)
                except Exception as error:
                    # The others are still worth their time.
                    self.errors[part] = f"{type(error).__name__}: {error}"
                    _say(f"{part} failed: {self.errors[part]}")
                self._seconds[part] = time.perf_counter() - began
        finally:
            spark.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def _part(self, part: str, ground: Ground) -> None:
        if part == "growth":
            self._growth = growth.measure(ground)
        elif part == "peers":
            folder = Path(ground.path("peers"))
            self._peers = contest.run(self._scale, folder, contest.everyone(ground.spark), _say)
        else:
            found = FIGURES[part](ground)
            self._figures += found
            for figure in found:
                _say("  ".join(report.line(figure, self._scale.judged)))

    def write(self) -> None:
        """Prints the tables; writes the JSON and the plot."""
        judged = self._scale.judged
        document: dict[str, Any] = {
            "scale": self._scale.name,
            "machine": {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "spark": pyspark.__version__,
            },
            "seconds": self._seconds,
            "errors": self.errors,
        }
        if self._figures:
            rows = [report.line(figure, judged) for figure in self._figures]
            print(report.table(report.HEADER, rows), "\n")
            document["figures"] = [report.as_json(figure, judged) for figure in self._figures]
        if self._growth:
            print(growth.as_table(self._growth), "\n")
            document["growth"] = growth.as_json(self._growth)
            growth.plot(self._growth, self._out / f"growth-{self._scale.name}.svg")
        if self._peers:
            print(contest.table(self._peers), "\n")
            document["peers"] = self._peers
        for part, error in self.errors.items():
            print(f"{part} FAILED: {error}")
        file = self._out / f"bench-{self._scale.name}.json"
        report.write(file, document)
        print(f"Written: {file}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Benchmarks of the catalog, side by side with what people would do without it. "
        "Works take turns within one run; the ratios count, the seconds depend on the machine.",
        epilog="Example: python -m tests.benchmarks --scale full --only one bulk",
    )
    parser.add_argument(
        "--scale",
        choices=list(SCALES),
        default="full",
        help="short proves that all of it runs, full is judged, long goes to 10 million "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="PART", help="only these: %(choices)s"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("artifacts"), help="where results go (%(default)s)"
    )
    return parser


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
