"""The page of a report: nothing hostile gets out, everything is shown, charts keep their laws."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.report import charts, markup
from catalog.report.charts import Bar, Point
from catalog.report.content import BrokenPromise, Report, Totals
from catalog.report.markup import escape, tag
from catalog.report.page import render
from tests import reports

VOID = {"meta", "input"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img onerror=alert(1)>",
    "</title></style></td>",
    "]]><!--",
    "&lt;b&gt;&amp;",
    "lone \ud800 surrogate",
    "nul \x00, bell \x07, return \r, c1 \x9b",
    "\u202eright to left",
    "שלום",
    "${x} {{y}} `z` \\",
)


class Page(HTMLParser):
    """What a browser would make of a page: its elements, its words, its errors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append((self._open[-1] if self._open else "", data))

    @property
    def text(self) -> str:
        """All that is shown."""
        return "".join(words for tag, words in self.words if tag not in {"script", "style"})

    def values(self, attribute: str) -> list[str]:
        """All values of an attribute."""
        return [given[attribute] or "" for _, given in self.elements if attribute in given]

    def tags(self) -> list[str]:
        """The elements in order."""
        return [tag for tag, _ in self.elements]


def spoiled(report: Report, text: str) -> Report:
    """The report with the text in every place that holds words of the catalog."""
    many = (text,) * 5
    return replace(
        report,
        location=text,
        verified=text,
        datasources=(reports.datasource(0, datasource=text, fingerprints=many),),
        schemas=(reports.schema(0, fingerprint=text, ddl=text * 20), reports.schema(1, ddl=text)),
        waiting=(
            reports.waiting(0, segment_id=text, location=text, reason=text),
            reports.waiting(1, segment_id=text, location=text),
        ),
        unused=(replace(reports.unused(0), fingerprint=text, ddl=text * 20, state=text),),
        commits=(reports.commit(0, verb=text, actors=many, reasons=many),),
        runs=(
            reports.run(0, run_id=text, job=text, actor=text, status=text, error_condition=text),
        ),
        problems=(BrokenPromise(text, text, 1, text),),
    )


PAGES: dict[str, Callable[[], Report]] = {
    "empty": lambda: reports.EMPTY,
    "one of each": lambda: reports.report(1, 1),
    "realistic": lambda: reports.report(),
    "with problems": lambda: replace(reports.report(), problems=reports.PROBLEMS),
    "large": lambda: reports.report(500, 500),
    "hostile": lambda: spoiled(reports.report(), "".join(HOSTILE)),
}


@pytest.fixture(params=PAGES)
def rendered(request: pytest.FixtureRequest) -> str:
    return render(PAGES[request.param]())


def test_a_page_is_balanced_and_has_every_id_once(rendered: str) -> None:
    page = Page(rendered)
    assert page.unbalanced == []
    assert len(page.values("id")) == len(set(page.values("id")))


def test_a_page_refers_to_nothing_but_itself(rendered: str) -> None:
    page = Page(rendered)
    targets = [href.removeprefix("#") for href in page.values("href")]
    assert set(targets) <= set(page.values("id"))
    assert page.values("src") == []
    assert not re.search(r"https?:|url\(|@import|srcset", rendered)


def test_a_page_runs_its_own_script_and_no_other(rendered: str) -> None:
    page = Page(rendered)
    assert (page.tags().count("script"), page.tags().count("style")) == (1, 1)
    assert "style" not in {name for _, given in page.elements for name in given}
    assert not {name for _, given in page.elements for name in given if name.startswith("on")}
    policy = next(value for value in page.values("content") if "default-src" in value)
    for block in ("script", "style"):
        (text,) = (words for tag, words in page.words if tag == block)
        assert f"{block}-src {sha256(text)};" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def sha256(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_nothing_but_words(text: str) -> None:
    def shape(report: Report) -> list[tuple[str, set[str]]]:
        return [(tag, set(given)) for tag, given in Page(render(report)).elements]

    # As long as the hostile one: the length decides what is folded away.
    plain = "x" * len(text)
    assert shape(spoiled(reports.report(), text)) == shape(spoiled(reports.report(), plain))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_can_be_written(text: str) -> None:
    page = Page(render(spoiled(reports.report(), text)).encode("utf-8").decode("utf-8"))
    shown = re.sub(
        r"[\x00-\x1f\x7f-\x9f\u202e\ud800]", lambda found: f"\\u{ord(found[0]):04x}", text
    )
    assert page.text.count(shown) > 50
    assert shown in page.values("title")


@given(st.text(st.characters(codec=None, categories=None)))
def test_escaped_text_is_inert_and_encodes(text: str) -> None:
    escaped = escape(text)
    escaped.encode("utf-8")
    assert not set(escaped) & set("<>\"'\x00\r")
    page = Page(tag("p", text, title=text))
    assert page.tags() == ["p"]
    assert page.values("title") == [page.text]


def test_text_that_is_markup_already_is_not_escaped_again() -> None:
    assert tag("p", tag("b", "a & b"), " & c") == "<p><b>a &amp; b</b> &amp; c</p>"


def test_an_attribute_that_is_none_or_false_is_left_out() -> None:
    assert tag("p", class_=None, hidden=False, data_sort=0) == '<p data-sort="0"></p>'
    assert tag("input", disabled=True) == "<input disabled>"


def test_the_figures_are_on_the_page() -> None:
    text = Page(render(reports.report())).text
    for figure in ("12,480", "154.1\u00a0M", "4.5\u00a0GiB", "Version 128", "2026-03-10 08:30:00"):
        assert figure in text


def test_a_fingerprint_is_shortened_and_leads_to_its_schema_if_that_is_listed() -> None:
    known, cut_off = reports.fingerprint(0), reports.fingerprint(99)
    line = reports.datasource(0, fingerprints=(known, cut_off))
    page = Page(render(replace(reports.report(), datasources=(line,))))
    assert f"#schema-{known}" in page.values("href")
    assert f"#schema-{cut_off}" not in page.values("href")
    assert f"{known[:12]}, {cut_off[:12]}" in page.text
    assert known not in page.text


def test_every_list_that_is_empty_says_so_in_a_sentence() -> None:
    page = Page(render(reports.EMPTY))
    assert not {"table", "svg"} & set(page.tags())
    assert page.values("class").count("empty") == 7
    for sentence in (
        "There are no versions that can still be read.",
        "There are no datasources yet: the first publish brings one.",
        "There are no schemas yet: they come with the segments that use them.",
        "Every segment has a schema: there is nothing to backfill.",
        "Every schema is in use: there is nothing to clean up.",
        "There are no commits that can still be read.",
        "No run was recorded yet.",
    ):
        assert sentence in page.text


def test_a_list_that_was_cut_says_how_many_there_are() -> None:
    report = replace(reports.report(3), totals=Totals(900, 1, 1, 70, 40, 20, 10, 60, 5))
    text = Page(render(report)).text
    assert re.findall(r"Listed: [^.]*\.", text) == [
        "Listed: 3 of 40, the most important ones.",
        "Listed: 3 of 50, the most important ones.",
        "Listed: 3 of 60, the most important ones.",
        "Listed: 3 of 30, the most important ones.",
    ]


def test_segments_without_a_schema_are_counted_and_a_quarantine_has_its_reason() -> None:
    lines = (reports.waiting(0, reason="no Parquet"), reports.waiting(1))
    totals = replace(reports.report().totals, segments_without_schema=2, segments_quarantined=1)
    page = Page(render(replace(reports.report(), waiting=lines, totals=totals)))
    assert "Without a schema2" in page.text  # the tile
    assert "In quarantine: 1 of 2." in page.text
    told = page.text.partition("clicks/2026-03-01quarantined")[2]
    assert told.startswith("2026-03-01 08:30:0022026-03-01 08:40:00no Parquet")
    assert "clicks/2026-03-02waiting2026-03-02 08:30:00–––s3://lake/clicks" in page.text
    none = replace(totals, segments_quarantined=0)
    assert "In quarantine" not in Page(render(replace(reports.report(), totals=none))).text


def test_a_sound_catalog_is_said_to_be_sound() -> None:
    page = Page(render(reports.report()))
    assert "All promises hold" in page.text
    assert "Checked: versions 0 to 128" in page.text


def test_problems_are_listed_and_nothing_is_said_to_hold() -> None:
    page = Page(render(replace(reports.report(), problems=reports.PROBLEMS)))
    assert "2 problems found" in page.text
    assert "I3 segments whose schema is nowhere (3 found)" in page.text
    assert "All promises hold" not in page.text


def test_a_catalog_that_was_not_checked_is_not_said_to_be_sound() -> None:
    text = Page(render(replace(reports.report(), verified=""))).text
    assert "The promises were not checked" in text
    assert "All promises hold" not in text


def test_figures_and_moments_carry_the_value_that_sorts_them() -> None:
    line = reports.datasource(0, rows=1_234_567, size_bytes=2048, changed_at=reports.START)
    values = Page(render(replace(reports.EMPTY, datasources=(line,)))).values("data-sort")
    assert values == ["1200", "1234567", "2048", "1772353800000"]


def test_what_is_not_known_sorts_as_nothing() -> None:
    line = reports.run(0, ended_at=None, version_before=None, error_condition=None)
    values = Page(render(replace(reports.EMPTY, runs=(line,)))).values("data-sort")
    assert values[1:] == ["", "", ""]


def test_times_of_any_zone_are_shown_in_utc() -> None:
    at = datetime(2026, 5, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert markup.clock(at) == "2026-04-30 23:30:00"
    assert markup.clock(datetime(2026, 5, 1, 1, 30)) == "2026-05-01 01:30:00"
    assert markup.utc(at).tzinfo is UTC


def test_a_large_report_stays_small() -> None:
    assert len(render(reports.report(500, 500)).encode()) < 2_000_000


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 k"),
        (1249, "1.2 k"),
        (999_949, "999.9 k"),
        (999_950, "1 M"),
        (1_200_000, "1.2 M"),
        (10**12, "1 T"),
        (10**18, "1,000,000 T"),
    ],
)
def test_a_count_is_short_enough_for_a_tick(count: int, words: str) -> None:
    assert markup.short(count) == words.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**40, "1 TiB")]
)
def test_a_size_is_in_its_unit(size: int, words: str) -> None:
    assert markup.size(size) == words.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("millis", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (4250, "4.2 s"),
        (59_999, "59.9 s"),
        (65_000, "1 min 05 s"),
        (7_380_000, "2 h 03 min"),
        (100 * 3_600_000, "4 d 04 h"),
    ],
)
def test_a_duration_is_in_its_two_largest_units(millis: int, words: str) -> None:
    assert markup.duration(millis).replace("\u00a0", " ") == words


counts = st.one_of(st.integers(0, 9), st.integers(0, 10**12), st.integers(0, 10**38))
histories = st.lists(counts, max_size=300)


def points(values: list[int]) -> list[Point]:
    return [Point(version, value, f"v{version}") for version, value in enumerate(values)]


def bars(changes: list[tuple[int, int]]) -> list[Bar]:
    return [Bar(at, added, removed, f"v{at}") for at, (added, removed) in enumerate(changes)]


def extents(svg: str) -> tuple[list[float], list[float]]:
    """Every coordinate of a chart, far ends of rectangles included."""
    xs: list[float] = []
    ys: list[float] = []
    for name, given_ in Page(svg).elements:
        at = {key: value or "" for key, value in given_.items()}
        if name == "rect":
            xs += [float(at["x"]), float(at["x"]) + float(at["width"])]
            ys += [float(at["y"]), float(at["y"]) + float(at["height"])]
        elif name in {"circle", "text", "line"}:
            xs += [float(at[key]) for key in ("cx", "x", "x1", "x2") if key in at]
            ys += [float(at[key]) for key in ("cy", "y", "y1", "y2") if key in at]
        elif name == "path":
            x, y = re.match(r"M(\S+) ([\d.-]+)", at["d"]).groups()  # type: ignore[union-attr]
            xs += [float(x), *map(float, re.findall(r"H([\d.-]+)", at["d"]))]
            ys += [float(y), *map(float, re.findall(r"V([\d.-]+)", at["d"]))]
    return xs, ys


def assert_within_the_view_box(svg: str) -> None:
    xs, ys = extents(svg)
    assert min(xs) >= 0
    assert max(xs) <= charts.WIDTH
    assert min(ys) >= 0
    assert max(ys) <= charts.HEIGHT


@given(histories)
def test_a_step_chart_stays_within_its_view_box(values: list[int]) -> None:
    svg = charts.step_chart("a", "A", points(values))
    assert_within_the_view_box(svg)
    assert Page(svg).unbalanced == []


@given(st.lists(st.tuples(counts, counts), max_size=150))
def test_a_bar_chart_stays_within_its_view_box(changes: list[tuple[int, int]]) -> None:
    svg = charts.bar_chart("a", "A", bars(changes))
    assert_within_the_view_box(svg)
    assert Page(svg).unbalanced == []


@given(st.lists(counts, min_size=1, max_size=charts.MARKS))
def test_the_larger_value_is_never_drawn_lower(values: list[int]) -> None:
    page = Page(charts.step_chart("a", "A", points(values)))
    heights = [-float(at["cy"] or "") for name, at in page.elements if name == "circle"]
    drawn = sorted(zip(values, heights, strict=True))
    assert [height for _, height in drawn] == sorted(heights)


@given(st.lists(counts, min_size=1, max_size=charts.MARKS))
def test_the_later_version_is_never_drawn_further_left(values: list[int]) -> None:
    page = Page(charts.step_chart("a", "A", points(values)[::-1]))
    places = [float(at["cx"] or "") for name, at in page.elements if name == "circle"]
    assert places == sorted(places)


@given(st.lists(st.tuples(counts, counts), max_size=charts.MARKS))
def test_what_was_added_or_removed_is_seen_and_nothing_else(
    changes: list[tuple[int, int]],
) -> None:
    page = Page(charts.bar_chart("a", "A", bars(changes)))
    heights = {"added": 0, "removed": 0}
    for name, at in page.elements:
        if name == "rect" and at["class"] in heights:
            heights[at["class"] or ""] += 1
            assert float(at["height"] or "") >= 1
    assert heights["added"] == sum(added > 0 for added, _ in changes)
    assert heights["removed"] == sum(removed > 0 for _, removed in changes)


# From a seed: lists that are long enough to be thinned are rarely drawn one by one.
@given(st.integers(1, 400), st.integers(6, charts.MARKS), st.integers())
def test_thinning_keeps_the_ends_and_the_extremes_in_order(
    number: int, limit: int, seed: int
) -> None:
    random = Random(seed)
    items = [(at, random.randrange(10**12), random.randrange(10**12)) for at in range(number)]
    kept = charts.thin(items, limit, lambda item: item[1], lambda item: item[2])
    assert kept == sorted(set(kept) & set(items))
    assert len(kept) == number if number <= limit else len(kept) <= limit
    assert {items[0], items[-1]} <= set(kept)
    for place in (1, 2):
        ordered = sorted(items, key=lambda item: item[place])
        assert {ordered[0], ordered[-1]} <= set(kept)


@given(counts, counts)
def test_ticks_are_round_few_and_around_all_values(removed: int, added: int) -> None:
    ticks = charts.value_ticks(-removed, added)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] <= -removed
    assert ticks[-1] >= added
    assert 0 in ticks
    assert str(ticks.step).rstrip("0") in {"1", "2", "5"}


@given(st.integers(0, 10**9), st.integers(0, 10**6))
def test_version_ticks_are_few_and_versions_that_are_drawn(low: int, span: int) -> None:
    ticks = charts.version_ticks(low, low + span)
    assert 1 <= len(ticks) <= 5
    assert low <= ticks[0] <= ticks[-1] <= low + span


@pytest.mark.parametrize("number", [0, 1, 2, 500])
def test_a_chart_of_any_number_of_points_has_words_for_screen_readers(number: int) -> None:
    for svg in (
        charts.step_chart("a", "Growth", points([7] * number)),
        charts.bar_chart("a", "Growth", bars([(7, 0)] * number)),
    ):
        page = Page(svg)
        assert page.elements[0][1]["aria-labelledby"] == "a-title"
        assert page.tags()[1:3] == ["title", "desc"]
        assert ("of 500 versions are drawn" in page.text) == (number == 500)


def test_a_point_has_a_tooltip() -> None:
    page = Page(render(reports.report()))
    assert ("title", "Version 1, 2026-03-01 09:30:00: 37 segments") in page.words
    assert (
        "title",
        "Version 3, 2026-03-01 11:30:00: drop, 0 added, 39 removed, 0 changed",
    ) in page.words
