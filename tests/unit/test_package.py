"""The package as a whole: public names, and what its code keeps its hands off."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import catalog

ROOT = Path(catalog.__file__).parent
MODULES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


def words(module: str) -> set[str]:
    """Every name that the code of a module uses, with texts, which may hold code, word by word."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"\w+", node.value))
    return found


def test_the_public_names_exist_each_once_in_order() -> None:
    assert [name for name in catalog.__all__ if not hasattr(catalog, name)] == []
    assert catalog.__all__ == sorted(set(catalog.__all__))


def test_the_public_names_have_a_docstring() -> None:
    assert [name for name in catalog.__all__ if not getattr(catalog, name).__doc__] == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_reaches_behind_the_public_face_of_spark(module: str) -> None:
    assert words(module) & {"_jvm", "_jdf", "_jsparkSession", "_jsc", "_sc", ".rdd"} == set()


@pytest.mark.parametrize("module", [name for name in MODULES if name != "cache/answers.py"])
def test_only_the_broadcast_asks_for_the_spark_context(module: str) -> None:
    assert words(module) & {"sparkContext", "SparkContext"} == set()


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("schema/")])
def test_a_schema_needs_no_session(module: str) -> None:
    assert words(module) & {"SparkSession", "DataFrame"} == set()


@pytest.mark.parametrize("module", [name for name in MODULES if name != "cli/session.py"])
def test_no_module_builds_a_session(module: str) -> None:
    assert words(module) & {"getOrCreate", "builder"} == set()


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(ast.parse((ROOT / module).read_text()))
