"""A report as one self-contained HTML page: no network and no storage."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from catalog.report import markup, tables
from catalog.report.charts import growth_charts
from catalog.report.content import BrokenPromise, Report, SchemaLine, Totals
from catalog.report.markup import Html, counted, exact, join, tag

# A tile shows every digit of a smaller count.
_DIGITS_SHOWN = 10**7

_SECTIONS = (
    ("growth", "Growth"),
    ("datasources", "Datasources"),
    ("schemas", "Schemas"),
    ("waiting", "Without a schema"),
    ("unused", "Orphans and retired"),
    ("commits", "Commits"),
    ("runs", "Runs"),
)


def render(report: Report) -> str:
    """The whole page; it can always be written as UTF-8."""
    style, script = _asset("page.css"), _asset("page.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # Even if text of the catalog became markup, it could neither run nor load anything.
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"Strata report: {report.location}"),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        _header(report),
        tag("main", *_contents(report), id="report"),
        tag("footer", "All times are in UTC. Sizes count the segments whose size is known."),
        tag("script", script),
    )
    return Html("<!DOCTYPE html>\n") + tag("html", head, body, lang="en") + "\n"


def _asset(name: str) -> Html:
    return Html(resources.files("catalog.report").joinpath(name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(block: str) -> str:
    digest = hashlib.sha256(block.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _header(report: Report) -> Html:
    return tag(
        "header",
        tag("p", "Strata catalog report", class_="eyebrow"),
        tag("button", "Dark", id="theme", type="button", class_="toggle"),
        tag("h1", tag("bdi", report.location)),
        tag(
            "p",
            f"Version {report.version}, as read at ",
            tables.time(report.made_at),
            " UTC",
            class_="muted",
        ),
        tag(
            "nav",
            *(tag("a", title, href=f"#{name}") for name, title in _SECTIONS),
            aria_label="Sections",
        ),
    )


def _contents(report: Report) -> list[Html]:
    totals, listed = report.totals, [line.fingerprint for line in report.schemas]
    return [
        _verdict(report.problems, report.verified),
        _tiles(totals),
        _section("growth", growth_charts(report.growth, report.commits)),
        _section(
            "datasources",
            tables.datasources(report.datasources, listed),
            _cut(len(report.datasources), totals.datasources),
        ),
        _section(
            "schemas",
            _sharing(report.schemas, totals),
            tables.schemas(report.schemas),
            # At least so many must be listed, whether orphans are among them or not.
            _cut(len(report.schemas), totals.schemas - totals.orphans),
        ),
        _section(
            "waiting",
            _quarantine(totals),
            tables.waiting(report.waiting),
            _cut(len(report.waiting), totals.segments_without_schema),
        ),
        _section(
            "unused",
            tables.unused(report.unused),
            _cut(len(report.unused), totals.orphans + totals.retired),
        ),
        _section("commits", tables.commits(report.commits)),
        _section("runs", tables.runs(report.runs)),
    ]


def _section(name: str, *children: Html | None) -> Html:
    heading = tag("h2", dict(_SECTIONS)[name], id=f"{name}-heading")
    return tag("section", heading, *children, id=name, aria_labelledby=f"{name}-heading")


def _verdict(problems: Sequence[BrokenPromise], verified: str) -> Html:
    if problems:
        found = counted(len(problems), "problem")
        return _banner("bad", f"{found} found", verified, tag("ul", *map(_problem, problems)))
    if not verified:
        return _banner("busy", "The promises were not checked", verified)
    return _banner("good", "All promises hold", verified)


def _banner(mood: str, headline: str, verified: str, *more: Html) -> Html:
    checked = tag("p", "Checked: ", tag("bdi", verified)) if verified else None
    return tag(
        "section",
        tag("h2", headline),
        checked,
        *more,
        id="verdict",
        class_=f"verdict {mood}",
    )


def _problem(problem: BrokenPromise) -> Html:
    return tag(
        "li",
        tables.badge(problem.promise, "bad"),
        " ",
        tag("bdi", problem.what),
        tag("span", f" ({exact(problem.count)} found)", class_="muted"),
        tag("code", problem.example, class_="example") if problem.example else None,
    )


def _tiles(totals: Totals) -> Html:
    return tag(
        "dl",
        _tile("Segments", totals.segments),
        _tile("Rows", totals.rows),
        _tile("Size", totals.size_bytes, markup.size(totals.size_bytes)),
        _tile("Schemas", totals.schemas),
        _tile("Datasources", totals.datasources),
        _tile("Orphans", totals.orphans),
        _tile("Retired", totals.retired),
        _tile("Without a schema", totals.segments_without_schema),
        class_="tiles",
    )


def _tile(name: str, value: int, words: str | None = None) -> Html:
    digits = exact(value)
    shown = words or (digits if value < _DIGITS_SHOWN else markup.short(value))
    return tag(
        "div",
        tag("dt", name),
        tag("dd", tag("data", shown, value=value, title=digits)),
        id=f"total-{name.lower().replace(' ', '-')}",
    )


def _sharing(schemas: Sequence[SchemaLine], totals: Totals) -> Html | None:
    if not schemas or not totals.schemas:
        return None
    shared = sum(line.datasources > 1 for line in schemas)
    most = max(line.datasources for line in schemas)
    sentences = [
        f"{counted(totals.schemas, 'schema')} for "
        f"{counted(totals.segments, 'segment')} in "
        f"{counted(totals.datasources, 'datasource')}."
    ]
    if shared:
        sentences.append(
            f"Shared by several datasources: {exact(shared)} of those listed, "
            f"one of them by {exact(most)}."
        )
    return tag("p", join(sentences, " "), class_="lead")


def _quarantine(totals: Totals) -> Html | None:
    if not totals.segments_quarantined:
        return None
    words = (
        f"In quarantine: {exact(totals.segments_quarantined)} of "
        f"{exact(totals.segments_without_schema)}. Their data does not say its schema; a "
        "backfill asks it again when the pause is over."
    )
    return tag("p", words, class_="lead")


def _cut(listed: int, total: int) -> Html | None:
    if listed >= total:
        return None
    words = f"Listed: {exact(listed)} of {exact(total)}, the most important ones."
    return tag("p", words, class_="muted")
