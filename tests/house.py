"""Figures of the layout, as it is and as it was at another commit: `make house`.

Lines and modules of `catalog/`, packages that import each other in a cycle, public members of
`Catalog`, class names that exist more than once, and how many files a call runs through.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The last commit before the layout was made anew.
BEFORE = "356b864"


def modules(tree: Path) -> list[Path]:
    return sorted((tree / "catalog").rglob("*.py"))


def repeated_classes(tree: Path) -> dict[str, int]:
    """Names of top-level classes that more than one module has."""
    names = Counter(
        node.name
        for path in modules(tree)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    return {name: count for name, count in sorted(names.items()) if count > 1}


def in_cycles(tree: Path) -> list[str]:
    """Packages and top modules that reach themselves by imports of others, also for types."""
    edges: dict[str, set[str]] = {}
    for path in modules(tree):
        home = _package(path.relative_to(tree / "catalog").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("catalog."):
                edges.setdefault(home, set()).add(_package((node.module or "").split(".")[1:]))
    return sorted(name for name in edges if name in _reached(edges, name))


def _package(parts: Any) -> str:
    return str(parts[0]).removesuffix(".py")


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = list(edges.get(start, set()) - {start})
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += edges.get(name, set()) - {name}
    return found


def static_figures(tree: Path) -> dict[str, Any]:
    paths = modules(tree)
    return {
        "lines": sum(len(path.read_text().splitlines()) for path in paths),
        "modules": len(paths),
        "packages in cycles": sum((tree / "catalog" / n).is_dir() for n in in_cycles(tree)),
        "class names more than once": len(repeated_classes(tree)),
    }


# --- in the tree that is measured, with its own code ---------------------------------------------


def files_of(call: Callable[[], object]) -> int:
    """How many files of `catalog/` have code that runs during a call, in any thread."""
    home, found = str(Path.cwd() / "catalog"), set()

    def look(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home) and code.co_name != "<module>":
            found.add(code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return len(found)


def ways() -> Iterator[tuple[str, int]]:
    """Each verb once, on a catalog just opened: its commit thread starts with the call."""
    from datetime import timedelta

    from catalog import Catalog, Object, Segment
    from tests.sessions import start

    with tempfile.TemporaryDirectory() as folder:
        spark = start()
        place = f"{folder}/meta"
        rows = f"{folder}/rows.parquet"
        spark.range(3).coalesce(1).write.parquet(rows)
        (file,) = Path(rows).glob("*.parquet")

        def way(verb: Callable[[Any], object]) -> int:
            opened = Catalog.open(spark, place)
            return files_of(lambda: verb(opened))

        first = Catalog.open(spark, place)
        yield "public members of Catalog", len([n for n in dir(first) if not n.startswith("_")])
        yield "files on the way of open", files_of(lambda: Catalog.open(spark, place))
        first.publish([Segment("orders/0", "a INT", 1)])
        cache = first.cache()
        segment = Segment("orders/1", "b INT", 1)
        yield "files on the way of publish", way(lambda it: it.publish([segment]))
        yield "files on the way of poll", files_of(cache.poll)
        first.drop(["orders/1"])
        yield "files on the way of cleanup", way(lambda it: it.cleanup(grace=timedelta(0)))
        visit = Segment("visits/1", "a INT", 1)
        yield (
            "files on the way of stage",
            way(lambda it: it.operation("load", parts=1).stage(0, publish=[visit])),
        )
        table = Object("table/orders", {"owner": "ann"})
        yield (
            "files on the way of put",
            way(lambda it: (getattr(it, "put", None) or it.objects.put)(table)),
        )
        first.publish([Segment("files/1", None, None, location=str(file))])
        yield "files on the way of backfill", way(lambda it: it.backfill())
        spark.stop()


# --- the door ------------------------------------------------------------------------------------


def figures(tree: Path) -> dict[str, Any]:
    """All figures of a tree; what has to run does so in a process of its own, with its code."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--inside"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return {**static_figures(tree), **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(dict(ways())))
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "archive", arguments.before], cwd=ROOT, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        before = figures(Path(folder))
    after = figures(ROOT)
    print(f"{'':<28}{arguments.before:>10}{'now':>10}")
    for name, value in after.items():
        print(f"{name:<28}{before[name]:>10,}{value:>10,}")


if __name__ == "__main__":
    main()
