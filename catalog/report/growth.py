"""How a catalog grew, as charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from catalog.report import figures
from catalog.report.charts import Bar, Point, bar_chart, step_chart
from catalog.report.markup import Html, tag
from catalog.report.model import CommitLine, Growth


def show(growth: Sequence[Growth], commits: Sequence[CommitLine]) -> Html:
    """A chart for each thing that grows and one of what commits changed, or a sentence."""
    if not growth and not commits:
        return tag("p", "There are no versions that can still be read.", class_="empty")
    return tag(
        "div",
        _grown("segment", growth, lambda line: line.segments),
        _grown("row", growth, lambda line: line.rows),
        _grown("schema", growth, lambda line: line.schemas),
        _changed(commits),
        class_="charts",
    )


def _grown(noun: str, growth: Sequence[Growth], value: Callable[[Growth], int]) -> Html:
    title = f"{noun.capitalize()}s by version"
    points = [
        Point(
            line.version,
            value(line),
            f"{_at(line.version, line.at)}: {figures.counted(value(line), noun)}",
        )
        for line in growth
    ]
    return tag("figure", tag("figcaption", title), step_chart(f"growth-{noun}", title, points))


def _changed(commits: Sequence[CommitLine]) -> Html:
    title = "Segments by commit"
    bars = [
        Bar(
            line.version,
            line.added,
            line.removed,
            f"{_at(line.version, line.at)}: {line.verb}, "
            f"{figures.exact(line.added)} added, {figures.exact(line.removed)} removed, "
            f"{figures.exact(line.changed)} changed",
        )
        for line in commits
    ]
    keys = [
        tag("span", tag("span", class_=f"swatch {kind}"), kind, class_="key")
        for kind in ("added", "removed")
    ]
    return tag("figure", tag("figcaption", title, *keys), bar_chart("commit-sizes", title, bars))


def _at(version: int, at: datetime) -> str:
    return f"Version {version}, {figures.clock(at)}"
