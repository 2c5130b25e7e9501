"""README and the pages: their Python runs, in order, and the catalog keeps its promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from tests.concurrency.gates import assert_promises
from tests.sessions import ROOT

TESTED = re.compile(r"^<!-- tested -->\n```python\n(.+?)^```$", re.DOTALL | re.MULTILINE)
ANY = re.compile(r"^```python\n(.+?)^```$", re.DOTALL | re.MULTILINE)

# Pages that take minutes run in `make stress`.
QUICK = ("segments", "schemas", "settings", "tasks", "retention", "access")
LONG = ("cache", "backfill", "names", "objects", "operations", "contracts", "audit", "backups")
PAGES = {name: ROOT / "docs" / f"{name}.md" for name in (*QUICK, *LONG)}
PAGES["README"] = ROOT / "README.md"


def blocks(name: str) -> list[str]:
    """The marked blocks of a page; of the page on schemas all, as most need no mark."""
    text = PAGES[name].read_text(encoding="utf-8")
    found = (ANY if name == "schemas" else TESTED).findall(text)
    assert len(found) >= text.count("<!-- tested -->"), "a mark without Python below it"
    return found


def run(name: str, names: dict[str, Any]) -> None:
    for number, code in enumerate(blocks(name), 1):
        exec(compile(code, f"{PAGES[name].name}, block {number}", "exec"), names)


@pytest.fixture
def names(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> dict[str, Any]:
    """What pages are given: a session, an open catalog, a folder and a location, both unused."""
    return {
        "spark": spark,
        "catalog": catalog,
        "folder": str(tmp_path / "files"),
        "location": str(tmp_path / "another"),
    }


@pytest.mark.parametrize(
    "name",
    ["README", *QUICK, *(pytest.param(each, marks=pytest.mark.stress) for each in LONG)],
)
def test_the_python_of_a_page_runs_in_order(name: str, names: dict[str, Any]) -> None:
    run(name, names)
    assert_promises(names["catalog"])
    for each in ("cache", "live", "elsewhere", "reader"):
        if hasattr(names.get(each), "close"):
            names[each].close()


@pytest.mark.stress
def test_the_query_of_the_page_on_objects_finds_the_leader(
    spark: SparkSession, names: dict[str, Any]
) -> None:
    run("objects", names)
    views = names["catalog"].inspect.create_views("page_")
    text = PAGES["objects"].read_text(encoding="utf-8")
    (query,) = re.findall(r"^```sql\n(.+?)^```$", text, re.DOTALL | re.MULTILINE)
    query = query.replace("FROM ", "FROM page_").replace("JOIN ", "JOIN page_")
    rows = [tuple(row) for row in spark.sql(query).collect()]
    for view in views:
        spark.catalog.dropTempView(view)
    assert rows == [("main", "all", "n1.example.com", 5432)]


def test_every_page_with_marked_python_is_run() -> None:
    marked = {
        page.stem
        for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        if "<!-- tested -->" in page.read_text(encoding="utf-8")
    }
    assert marked - {"sql"} == PAGES.keys() - {"schemas"}  # test_sql_page.py runs that of sql.md
