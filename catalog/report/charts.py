"""The growth of a catalog as small SVG charts; the colours are those of the page's style."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise
from typing import TypeVar

from catalog.report.content import CommitLine, Growth
from catalog.report.markup import Html, clock, counted, exact, short, tag

T = TypeVar("T")

WIDTH, HEIGHT = 480, 220
LEFT, RIGHT, TOP, BOTTOM = 54, 452, 12, 190
# More marks than this cannot be distinguished at the size of the charts.
MARKS = 120
# Up to this number of points, each has a dot.
_DOTS = 32
_INTERVALS = 4

# --- the charts of a report -----------------------------------------------------------------------


def growth_charts(growth: Sequence[Growth], commits: Sequence[CommitLine]) -> Html:
    """Charts of segments, rows, schemas and of what commits changed; a sentence without data."""
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
            f"{_at(line.version, line.at)}: {counted(value(line), noun)}",
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
            f"{_at(line.version, line.at)}: {line.verb}, {exact(line.added)} added, "
            f"{exact(line.removed)} removed, {exact(line.changed)} changed",
        )
        for line in commits
    ]
    keys = [
        tag("span", tag("span", class_=f"swatch {kind}"), kind, class_="key")
        for kind in ("added", "removed")
    ]
    return tag("figure", tag("figcaption", title, *keys), bar_chart("commit-sizes", title, bars))


def _at(version: int, at: datetime) -> str:
    return f"Version {version}, {clock(at)}"


# --- charts of values -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A value after a version; the label is its tooltip."""

    version: int
    value: int
    label: str


@dataclass(frozen=True)
class Bar:
    """What a version added and removed; the label is its tooltip."""

    version: int
    added: int
    removed: int
    label: str


@dataclass(frozen=True)
class Scale:
    """Maps values to coordinates, in proportion."""

    low: int
    high: int
    start: float
    end: float

    def place(self, value: int) -> float:
        """The coordinate of a value; the middle if all values are equal."""
        if self.low == self.high:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def step_chart(name: str, title: str, points: Sequence[Point]) -> Html:
    """An area as high at a version as the value after it; `name` is unique on a page."""
    if not points:
        return _nothing(name, title)
    ordered = sorted(points, key=lambda point: point.version)
    drawn = thin(ordered, MARKS, lambda point: point.value)
    values = [point.value for point in ordered]
    heights = value_ticks(0, max(values))
    y = Scale(heights[0], heights[-1], BOTTOM, TOP)
    x = Scale(ordered[0].version, ordered[-1].version, LEFT, RIGHT)
    places = [(x.place(point.version), y.place(point.value)) for point in drawn]
    return _frame(
        name,
        title,
        f"From {exact(values[0])} at version {x.low} to {exact(values[-1])} at version {x.high}; "
        f"least {exact(min(values))}, most {exact(max(values))}. "
        f"{_drawn(len(drawn), len(ordered))}",
        _grid(y, heights),
        *_steps(places, y.place(0)),
        *_dots(drawn, places),
        *(_version(version, x.place(version)) for version in version_ticks(x.low, x.high)),
    )


def bar_chart(name: str, title: str, bars: Sequence[Bar]) -> Html:
    """Bars upwards for what versions added and downwards for what they removed."""
    if not bars:
        return _nothing(name, title)
    ordered = sorted(bars, key=lambda bar: bar.version)
    drawn = thin(ordered, MARKS, lambda bar: bar.added, lambda bar: bar.removed)
    most_added, most_removed = (max(b.added for b in ordered), max(b.removed for b in ordered))
    heights = value_ticks(-most_removed, most_added)
    y = Scale(heights[0], heights[-1], BOTTOM, TOP)
    slot = (RIGHT - LEFT) / len(drawn)
    middles = [LEFT + slot * (index + 0.5) for index in range(len(drawn))]
    named = range(0, len(drawn), -(-len(drawn) // _INTERVALS))
    return _frame(
        name,
        title,
        f"From version {ordered[0].version} to {ordered[-1].version}: at most "
        f"{exact(most_added)} added and {exact(most_removed)} removed by one commit. "
        f"{_drawn(len(drawn), len(ordered))}",
        _grid(y, heights),
        *(_bar(bar, middle, slot, y) for bar, middle in zip(drawn, middles, strict=True)),
        *(_version(drawn[index].version, middles[index]) for index in named),
    )


def thin(items: Sequence[T], limit: int, *measures: Callable[[T], int]) -> list[T]:
    """At most `limit` of the items, in order: the first, the last, and by every measure the least
    and the most of each stretch between, so that the extremes of all are among them."""
    if len(items) <= limit:
        return list(items)
    inner = range(1, len(items) - 1)
    stretches = max(1, (limit - 2) // (2 * len(measures)))
    kept = {0, len(items) - 1}
    for start, end in pairwise(len(inner) * part // stretches for part in range(stretches + 1)):
        for measure in measures:
            kept.add(min(inner[start:end], key=lambda index: measure(items[index])))
            kept.add(max(inner[start:end], key=lambda index: measure(items[index])))
    return [items[index] for index in sorted(kept)]


def version_ticks(low: int, high: int) -> range:
    """Round versions from `low` to `high`, few enough to be labelled."""
    step = _step(high - low)
    return range(-(-low // step) * step, high + 1, step)


def value_ticks(low: int, high: int) -> range:
    """Round values around all from `low`, zero or below, to `high`, zero or above."""
    step = _step(high - low)
    # At least two ticks: all values may be zero.
    top = -(-high // step) * step or (0 if low else step)
    return range(low // step * step, top + 1, step)


def _step(span: int) -> int:
    return next(step for step in _round_numbers() if step * _INTERVALS >= span)


def _round_numbers() -> Iterator[int]:
    for power in count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


def _frame(name: str, title: str, description: str, *marks: str) -> Html:
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *marks,
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def _nothing(name: str, title: str) -> Html:
    words = tag("text", "Nothing to draw yet", x=WIDTH // 2, y=HEIGHT // 2, text_anchor="middle")
    return _frame(name, title, "There are no values.", words)


def _drawn(drawn: int, given: int) -> str:
    if drawn == given:
        return ""
    return f"{exact(drawn)} of {counted(given, 'version')} are drawn, extremes among them."


def _grid(y: Scale, heights: range) -> Html:
    marks = []
    for value in heights:
        at = _number(y.place(value))
        kind = "grid" if value else "axis"
        marks.append(tag("line", class_=kind, x1=LEFT, x2=RIGHT, y1=at, y2=at))
        # A bar downwards is labelled by its length: there are no negative counts.
        marks.append(tag("text", short(abs(value)), x=LEFT - 8, y=at, class_="value"))
    return tag("g", *marks)


def _version(version: int, at: float) -> Html:
    return tag("text", str(version), x=_number(at), y=BOTTOM + 18, class_="version")


def _steps(places: Sequence[tuple[float, float]], floor: float) -> Iterator[Html]:
    (start, first), *rest = places
    line = f"M{_number(start)} {_number(first)}" + "".join(
        f"H{_number(x)}V{_number(y)}" for x, y in rest
    )
    yield tag("path", class_="area", d=f"{line}V{_number(floor)}H{_number(start)}Z")
    yield tag("path", class_="line", d=line)


def _dots(points: Sequence[Point], places: Sequence[tuple[float, float]]) -> Iterator[Html]:
    kind = "point" if len(points) <= _DOTS else "point faint"
    # The pointer finds the nearest point at any height.
    edges = [LEFT, *((a[0] + b[0]) / 2 for a, b in pairwise(places)), RIGHT]
    for point, (x, y), (left, right) in zip(points, places, pairwise(edges), strict=True):
        yield tag(
            "g",
            tag("title", point.label),
            _hit_area(left, right),
            tag("circle", cx=_number(x), cy=_number(y), r=3),
            class_=kind,
        )


def _bar(bar: Bar, middle: float, slot: float, y: Scale) -> Html:
    width = min(28.0, slot * 0.7)
    zero = y.place(0)
    marks = []
    for kind, size in (("added", bar.added), ("removed", -bar.removed)):
        if size:
            # A bar is visible however small it is.
            height = max(1.0, abs(y.place(size) - zero))
            marks.append(
                tag(
                    "rect",
                    class_=kind,
                    x=_number(middle - width / 2),
                    y=_number(zero - height if size > 0 else zero),
                    width=_number(width),
                    height=_number(height),
                )
            )
    area = _hit_area(middle - slot / 2, middle + slot / 2)
    return tag("g", tag("title", bar.label), area, *marks, class_="bar")


def _hit_area(left: float, right: float) -> Html:
    return tag(
        "rect",
        class_="hit",
        x=_number(left),
        y=TOP,
        width=_number(right - left),
        height=BOTTOM - TOP,
    )


def _number(coordinate: float) -> str:
    return f"{coordinate:.1f}".removesuffix(".0")
