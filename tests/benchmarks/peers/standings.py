"""The results of the contest as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.benchmarks import report
from tests.benchmarks.measure import Timing


def publish_name(count: int) -> str:
    """What a publish of so many segments is called in the results."""
    return f"publish {count:,}"


def table(results: Mapping[str, Any]) -> str:
    """The results for people: a line for each store, then why some took no part or failed."""
    publishes = [publish_name(count) for count in (1, 1_000, results["bulk"])]
    timed = ("full poll", "incremental poll", "lookups")
    header = (
        "store",
        *publishes,
        "four writers (ok/failed/duplicate fingerprints/missing)",
        *timed,
        "atomic over both tables",
        "durable",
    )
    rows, notes = [], []
    for name, store in results["stores"].items():
        if "missing" in store:
            notes.append(f"{name}: not measured, {store['missing']}")
            continue
        works = store["works"]
        cells = {work: _cell(works.get(work)) for work in (*publishes, *timed)}
        if store["answers"] != "store" and "seconds" in works.get("lookups", {}):
            cells["lookups"] += f", from {store['answers']}"
        rows.append(
            (
                name,
                *(cells[work] for work in publishes),
                _race_cell(works.get("race")),
                *(cells[work] for work in timed),
                store["atomic"],
                store["durable"],
            )
        )
        notes += _notes(name, works)
    return "\n".join([report.table(header, rows), *([""] if notes else []), *notes])


def _cell(work: Mapping[str, Any] | None) -> str:
    if work is None:
        return "not run"
    return "failed" if "error" in work else report.spread(Timing(tuple(work["seconds"])))


def _race_cell(work: Mapping[str, Any] | None) -> str:
    if work is None or "error" in work:
        return _cell(work)
    counts = "/".join(str(work[name]) for name in ("ok", "failed", "duplicates", "missing"))
    return f"{counts} in {report.spread(Timing(tuple(work['seconds'])))}"


def _notes(name: str, works: Mapping[str, Any]) -> list[str]:
    failures = [f"{name}: {work}: {one['error']}" for work, one in works.items() if "error" in one]
    lost = works.get("race", {}).get("errors", {})
    return failures + [f"{name}: four writers, {n} times: {text}" for text, n in lost.items()]
