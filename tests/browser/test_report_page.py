"""The page of a report in a real browser: sorting, filtering, themes, no errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from catalog.report.content import Report
from catalog.report.page import render
from tests import reports

Show = Callable[[Report], Chrome]


@pytest.fixture
def show(chromium: Chrome, tmp_path: Path) -> Iterator[Show]:
    """Shows a report on a wide light screen; the test fails if the browser complains."""

    def show_one(report: Report) -> Chrome:
        page = tmp_path / "report.html"
        page.write_text(render(report), encoding="utf-8")
        prefer(chromium, "light")
        resize(chromium, 1280)
        chromium.get(page.as_uri())
        return chromium

    yield show_one
    assert chromium.get_log("browser") == []  # type: ignore[no-untyped-call]


def prefer(browser: Chrome, scheme: str) -> None:
    """What the system asks for."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def resize(browser: Chrome, width: int) -> None:
    """A screen of that width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def heading(browser: Chrome, table: str, title: str) -> WebElement:
    """The button over a column."""
    path = f"//table[@id='{table}']//th/button[.='{title}']"
    return browser.find_element(By.XPATH, path)


def order(browser: Chrome, table: str, column: int = 0) -> list[str]:
    """What a column shows from top to bottom, without rows that are filtered out."""
    cells = browser.find_elements(
        By.CSS_SELECTOR, f"#{table} tbody tr:not([hidden]) td:nth-child({column + 1})"
    )
    return [cell.text for cell in cells]


def sorting(button: WebElement) -> str | None:
    """What a screen reader hears of the column's order."""
    return button.find_element(By.XPATH, "..").get_attribute("aria-sort")


def background(browser: Chrome) -> str:
    """The colour behind everything."""
    return browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")


def datasources(*rows: tuple[str, int, int | None]) -> Report:
    """A report of these datasources: names, rows, sizes."""
    lines = [reports.datasource(0, datasource=n, rows=r, size_bytes=s) for n, r, s in rows]
    return replace(reports.EMPTY, datasources=tuple(lines))


def test_a_tile_shows_its_figure(show: Show) -> None:
    browser = show(reports.report())
    assert browser.find_element(By.CSS_SELECTOR, "#total-segments dd").text == "12,480"


def test_figures_sort_by_value_the_largest_first_and_then_the_other_way(show: Show) -> None:
    browser = show(datasources(("a", 9, 1), ("b", 10**30 + 1, 1), ("c", 10**30, 1), ("d", 80, 1)))
    button = heading(browser, "datasource-table", "Rows")
    assert sorting(button) is None
    button.click()
    assert (order(browser, "datasource-table"), sorting(button)) == (list("bcda"), "descending")
    button.click()
    assert (order(browser, "datasource-table"), sorting(button)) == (list("adcb"), "ascending")


def test_words_sort_without_regard_to_case_from_the_keyboard(show: Show) -> None:
    browser = show(datasources(("b", 1, 1), ("C", 1, 1), ("a", 1, 1), ("é", 1, 1)))
    button = heading(browser, "datasource-table", "Datasource")
    button.send_keys(Keys.ENTER)
    assert (order(browser, "datasource-table"), sorting(button)) == (list("abCé"), "ascending")
    button.send_keys(Keys.SPACE)
    assert (order(browser, "datasource-table"), sorting(button)) == (list("éCba"), "descending")


def test_sorting_is_stable_and_puts_the_unknown_last_in_both_directions(show: Show) -> None:
    browser = show(datasources(("d", 1, None), ("b", 1, 7), ("a", 1, 7), ("c", 1, 9)))
    button = heading(browser, "datasource-table", "Size")
    button.click()
    assert order(browser, "datasource-table") == list("cbad")
    button.click()
    assert order(browser, "datasource-table") == list("bacd")


def test_moments_sort_by_time_and_only_one_column_is_sorted(show: Show) -> None:
    browser = show(reports.report())
    rows, when = (heading(browser, "commit-table", title) for title in ("Added", "When"))
    rows.click()
    when.click()
    assert (sorting(rows), sorting(when)) == (None, "descending")
    assert order(browser, "commit-table") == [str(version) for version in reversed(range(12))]
    when.click()
    assert order(browser, "commit-table") == [str(version) for version in range(12)]


def test_a_filter_keeps_the_rows_that_hold_every_word(show: Show) -> None:
    browser = show(reports.report())
    box = browser.find_element(By.CSS_SELECTOR, "input[aria-controls=datasource-table]")
    box.send_keys("ORDERS 2026-03-09")
    assert order(browser, "datasource-table") == ["orders_8"]
    assert browser.find_element(By.CSS_SELECTOR, "#datasources output").text == "1 of 12"
    box.clear()
    box.send_keys("r", Keys.BACKSPACE)
    assert len(order(browser, "datasource-table")) == 12


def test_a_link_leads_to_a_schema_even_if_a_filter_hides_it(show: Show) -> None:
    browser = show(reports.report())
    box = browser.find_element(By.CSS_SELECTOR, "input[aria-controls=schema-table]")
    box.send_keys("nowhere")
    assert order(browser, "schema-table") == []
    browser.find_element(By.CSS_SELECTOR, "#datasource-table a").click()
    target = browser.find_element(By.CSS_SELECTOR, "#schema-table tr:target")
    assert target.get_attribute("id") == f"schema-{reports.fingerprint(0)}"
    assert len(order(browser, "schema-table")) == 12


def test_the_button_turns_the_theme_over_and_back(show: Show) -> None:
    browser = show(reports.report())
    toggle = browser.find_element(By.ID, "theme")
    light = background(browser)
    assert toggle.text == "Dark theme"
    toggle.click()
    assert (toggle.text, background(browser) != light) == ("Light theme", True)
    toggle.click()
    assert (toggle.text, background(browser)) == ("Dark theme", light)


def test_a_system_that_prefers_dark_gets_what_the_button_would_give(show: Show) -> None:
    browser = show(reports.report())
    browser.find_element(By.ID, "theme").click()
    dark = background(browser)
    prefer(browser, "dark")
    browser.refresh()
    assert background(browser) == dark


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_its_screen_and_can_be_pictured(
    show: Show, tmp_path: Path, width: int, scheme: str
) -> None:
    browser = show(replace(reports.report(), problems=reports.PROBLEMS))
    prefer(browser, scheme)
    resize(browser, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    picture = tmp_path / f"{width}-{scheme}.png"
    assert browser.save_screenshot(str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"])
def test_hostile_names_are_words_in_a_browser_too(show: Show, text: str) -> None:
    browser = show(replace(datasources((text, 1, 1)), location=text))
    assert order(browser, "datasource-table") == [text]
    assert browser.find_element(By.TAG_NAME, "h1").text == text
    assert browser.title == f"Strata report: {text}"


def test_an_empty_report_runs_without_complaint(show: Show) -> None:
    browser = show(reports.EMPTY)
    assert "All promises hold" in browser.find_element(By.ID, "verdict").text
