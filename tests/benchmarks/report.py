"""What was measured, as a table for people and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import Timing


@dataclass(frozen=True)
class Goal:
    """What a ratio should be: at most, or at least, a number."""

    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_most(bound: float) -> Goal:
    return Goal(bound)


def at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


@dataclass(frozen=True)
class Figure:
    """One line of the report: a value, usually a ratio, with what it was computed from."""

    name: str
    value: float
    goal: Goal | None
    ours: str
    against: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def verdict(self, judged: bool) -> str:
        if self.goal is None:
            return ""
        if not judged:
            return "not judged"
        return "met" if self.goal.met(self.value) else "MISSED"


def slower(name: str, ours: Timing, theirs: Timing, goal: Goal | None, against: str) -> Figure:
    """How many times the seconds of another we take."""
    return Figure(
        name,
        ours.median / theirs.median,
        goal,
        spread(ours),
        f"{against} {spread(theirs)}",
        {"ours": asdict(ours), "theirs": asdict(theirs)},
    )


def quicker(name: str, ours: Timing, theirs: Timing, goal: Goal, against: str) -> Figure:
    """How many times as fast as another we are."""
    figure = slower(name, ours, theirs, goal, against)
    return Figure(name, 1 / figure.value, goal, figure.ours, figure.against, figure.details)


def spread(timing: Timing) -> str:
    """Median and quartiles in one unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if timing.median * factor >= 1 or unit == "ns":
            low, middle, high = (
                _digits(value * factor) for value in (timing.low, timing.median, timing.high)
            )
            return f"{middle} {unit} ({low}–{high})"
    raise AssertionError("unreachable")


def _digits(value: float) -> str:
    """Three digits, and never an exponent."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, as wide as they have to be."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in ruled
    )


HEADER = ("figure", "value", "goal", "verdict", "ours (quartiles)", "against")


def line(figure: Figure, judged: bool) -> tuple[str, ...]:
    """The cells of one figure."""
    goal = "" if figure.goal is None else str(figure.goal)
    return (
        figure.name,
        f"{figure.value:.3g}",
        goal,
        figure.verdict(judged),
        figure.ours,
        figure.against,
    )


def write(file: Path, document: Mapping[str, Any]) -> None:
    """Writes the results as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")


def as_json(figure: Figure, judged: bool) -> dict[str, Any]:
    """One figure for the JSON document."""
    return {
        "name": figure.name,
        "value": figure.value,
        "goal": None if figure.goal is None else str(figure.goal),
        "verdict": figure.verdict(judged),
        "ours": figure.ours,
        "against": figure.against,
        "details": dict(figure.details),
    }
