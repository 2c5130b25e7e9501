"""The lists of a report as tables that a reader can sort and filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from catalog.report import markup
from catalog.report.content import (
    CommitLine,
    DatasourceLine,
    RunLine,
    SchemaLine,
    UnusedLine,
    WaitingLine,
)
from catalog.report.markup import Html, join, tag

# A shorter table needs no filter.
_UNFILTERED = 10
_LONG = 72
_FEW = 3
_DIGITS = 12
_MOODS = {
    "done": "good",
    "found": "busy",
    "running": "busy",
    "failed": "bad",
    "gave_up": "bad",
    "interrupted": "bad",
}

# --- the lists ------------------------------------------------------------------------------------


def datasources(lines: Iterable[DatasourceLine], linked: Iterable[str]) -> Html:
    """Datasources with their schemas, as links to the `linked` ones."""
    anchors = frozenset(linked)
    rows = [
        {
            "Datasource": text(line.datasource),
            "Segments": count(line.segments),
            "Rows": count(line.rows),
            "Size": size(line.size_bytes),
            "Changed": moment(line.changed_at),
            "Schemas": several([_link(one, anchors) for one in line.fingerprints]),
        }
        for line in lines
    ]
    empty = "There are no datasources yet: the first publish brings one."
    return _table("datasource-table", "Datasources", rows, empty)


def schemas(lines: Sequence[SchemaLine]) -> Html:
    """Live schemas with how many share each."""
    rows = [
        {
            "Fingerprint": Cell(_fingerprint(line.fingerprint)),
            "Datasources": count(line.datasources),
            "Segments": count(line.segments),
            "Columns": count(line.columns),
            "Published": moment(line.published_at),
            "Definition": Cell(definition(line.ddl)),
        }
        for line in lines
    ]
    empty = "There are no schemas yet: they come with the segments that use them."
    anchors = [_anchor(line.fingerprint) for line in lines]
    return _table("schema-table", "Schemas", rows, empty, anchors)


def waiting(lines: Iterable[WaitingLine]) -> Html:
    """Segments without a schema, and why those in quarantine have none."""
    rows = [
        {
            "Segment": text(line.segment_id),
            "State": Cell(
                badge("quarantined", "bad") if line.quarantined else badge("waiting", "busy")
            ),
            "Published": moment(line.published_at),
            "Tried": count(line.attempts),
            "Next try": moment(line.retry_at),
            "Reason": text(line.reason),
            "Location": text(line.location),
        }
        for line in lines
    ]
    empty = "Every segment has a schema: there is nothing to backfill."
    return _table("waiting-table", "Segments without a schema", rows, empty)


def unused(lines: Iterable[UnusedLine]) -> Html:
    """Orphans and retired schemas."""
    rows = [
        {
            "Fingerprint": Cell(_fingerprint(line.fingerprint)),
            "State": Cell(badge(line.state)),
            "Since": moment(line.since),
            "Definition": Cell(definition(line.ddl)),
        }
        for line in lines
    ]
    empty = "Every schema is in use: there is nothing to clean up."
    return _table("unused-table", "Orphans and retired schemas", rows, empty)


def commits(lines: Iterable[CommitLine]) -> Html:
    """Who changed how many segments, and why."""
    rows = [
        {
            "Version": Cell(Html(str(line.version)), "figure", line.version),
            "When": moment(line.at),
            "Verb": Cell(badge(line.verb)),
            "Added": count(line.added),
            "Removed": count(line.removed),
            "Changed": count(line.changed),
            "By": several([tag("bdi", actor) for actor in line.actors if actor]),
            "Reason": several([tag("bdi", reason) for reason in line.reasons if reason]),
        }
        for line in lines
    ]
    empty = "There are no commits that can still be read."
    return _table("commit-table", "Recent commits", rows, empty)


def runs(lines: Iterable[RunLine]) -> Html:
    """Recorded runs of jobs."""
    rows = [
        {
            "Started": moment(line.started_at),
            "Job": text(line.job),
            "Status": Cell(badge(line.status.replace("_", " "), _MOODS.get(line.status, "plain"))),
            "Took": lasting(line.started_at, line.ended_at),
            "By": text(line.actor),
            "Versions": _versions(line),
            "Error": Cell(tag("code", line.error_condition)) if line.error_condition else MISSING,
            "Run": Cell(tag("code", line.run_id[:_DIGITS], title=line.run_id)),
        }
        for line in lines
    ]
    return _table("run-table", "Runs", rows, "No run was recorded yet.")


def _anchor(fingerprint: str) -> str:
    return f"schema-{fingerprint}"


def _fingerprint(fingerprint: str) -> Html:
    return tag("code", fingerprint[:_DIGITS], title=fingerprint)


def _link(fingerprint: str, anchors: frozenset[str]) -> Html:
    shown = _fingerprint(fingerprint)
    if fingerprint not in anchors:
        return shown
    return tag("a", shown, href=f"#{_anchor(fingerprint)}")


def _versions(run: RunLine) -> Cell:
    if run.version_before is None:
        return _missing("figure")
    after = "" if run.version_after is None else run.version_after
    return Cell(Html(f"{run.version_before} → {after}"), "figure", run.version_before)


# --- cells ----------------------------------------------------------------------------------------

CellKind = Literal["words", "figure", "moment"]


@dataclass(frozen=True)
class Cell:
    """What a cell shows; `sort` is the value by which figures and moments are sorted."""

    shown: Html
    kind: CellKind = "words"
    sort: int | str | None = None


def _missing(kind: CellKind) -> Cell:
    return Cell(tag("span", "–", class_="muted"), kind, "")


MISSING = _missing("words")


def text(value: str | None) -> Cell:
    """A text as it is."""
    return Cell(tag("bdi", value)) if value else MISSING


def count(value: int | None) -> Cell:
    """A count with all its digits."""
    return _missing("figure") if value is None else _figure(markup.exact(value), value)


def size(value: int | None) -> Cell:
    """Bytes in their unit, sorted by the byte."""
    return _missing("figure") if value is None else _figure(markup.size(value), value)


def moment(value: datetime | None) -> Cell:
    """A moment in UTC."""
    return _missing("moment") if value is None else Cell(time(value), "moment", _millis(value))


def lasting(start: datetime, end: datetime | None) -> Cell:
    """The time between two moments, if both are known and in order."""
    if end is None or _millis(end) < _millis(start):
        return _missing("figure")
    took = _millis(end) - _millis(start)
    return _figure(markup.duration(took), took)


def several(items: Sequence[Html]) -> Cell:
    """The first few items, the rest folded."""
    if not items:
        return MISSING
    first = join(items[:_FEW], ", ")
    if len(items) <= _FEW:
        return Cell(tag("div", first, class_="several"))
    more = tag("summary", f"and {markup.exact(len(items) - _FEW)} more")
    rest = tag("details", more, join(items[_FEW:], ", "))
    return Cell(tag("div", first, " ", rest, class_="several"))


def badge(word: str, mood: str = "plain") -> Html:
    """A word in a coloured frame: good, bad, busy or plain."""
    return tag("span", tag("bdi", word), class_=f"badge {mood}")


def time(value: datetime) -> Html:
    """A moment in UTC that programs can read as well."""
    machine = markup.utc(value).isoformat(timespec="seconds")
    return tag("time", markup.clock(value), datetime=machine)


def definition(ddl: str) -> Html:
    """DDL as code; a long one is folded behind its beginning."""
    if len(ddl) <= _LONG:
        return tag("code", ddl, class_="ddl")
    summary = tag("summary", tag("code", f"{ddl[: _LONG - 12].rstrip()} …"))
    return tag("details", summary, tag("pre", tag("code", ddl)), class_="ddl")


def _figure(shown: str, sort: int) -> Cell:
    return Cell(Html(shown), "figure", sort)


def _millis(value: datetime) -> int:
    return round(markup.utc(value).timestamp() * 1000)


# --- the table ------------------------------------------------------------------------------------


def _table(
    name: str,
    caption: str,
    rows: Sequence[Mapping[str, Cell]],
    empty: str,
    anchors: Sequence[str | None] = (),
) -> Html:
    """Rows of cells by column title; `name` is unique on a page, links lead to the anchors."""
    if not rows:
        return tag("p", empty, class_="empty")
    headings = [
        tag("th", tag("button", title, type="button"), scope="col", class_=cell.kind)
        for title, cell in rows[0].items()
    ]
    head = tag("thead", tag("tr", *headings))
    ids = anchors or [None] * len(rows)
    body = [
        tag("tr", *map(_cell, row.values()), id=anchor)
        for row, anchor in zip(rows, ids, strict=True)
    ]
    title = tag("caption", caption, id=f"{name}-caption", class_="unseen")
    return join(
        [
            _filter(name, caption) if len(rows) > _UNFILTERED else None,
            # Focusable, so that arrow keys scroll a table that is too wide.
            tag(
                "div",
                tag("table", title, head, tag("tbody", *body), id=name),
                class_="scroll",
                role="region",
                aria_labelledby=f"{name}-caption",
                tabindex=0,
            ),
        ]
    )


def _cell(cell: Cell) -> Html:
    # Most cells are words and need no class of their own, which keeps large tables small.
    kind = None if cell.kind == "words" else cell.kind
    return tag("td", cell.shown, class_=kind, data_sort=cell.sort)


def _filter(name: str, caption: str) -> Html:
    # Hidden until the script that makes it work shows it.
    return tag(
        "p",
        tag(
            "input",
            type="search",
            placeholder="Filter",
            aria_label=f"Filter: {caption}",
            aria_controls=name,
            autocomplete="off",
            spellcheck="false",
        ),
        tag("output", "", class_="muted"),
        class_="filter",
    )
