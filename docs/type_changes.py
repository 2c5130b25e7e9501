"""Writes the table of type changes into docs/schemas.md, as the library judges them.

    python docs/type_changes.py

Each type of the list is compared with each other one; `make docs` runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from catalog import Schema, compatibility
from catalog.evolution.compatibility import ChangeKind
from catalog.evolution.projection import Leeway, refusals

PAGE = Path(__file__).resolve().parent / "schemas.md"
BEGIN, END = "<!-- type changes: begin -->\n", "<!-- type changes: end -->"

TYPES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(5,2)",
    "decimal(7,2)",
    "decimal(10,0)",
    "string",
    "string collate UTF8_LCASE",
    "char(3)",
    "varchar(3)",
    "varchar(5)",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "time(0)",
    "time(6)",
    "interval year",
    "interval year to month",
    "interval day",
    "interval day to second",
    "interval",
    "variant",
    "geometry(4326)",
    "geometry(any)",
    "void",
    "struct<x:int>",
    "array<int>",
    "map<string,int>",
)


def change(old: str, new: str) -> ChangeKind | None:
    """What a column goes through whose type changes; none if the type is the same."""
    found = compatibility(f"c {old}", f"c {new}").changes
    return found[0].kind if found else None


def becomes_text(old: str, new: str) -> bool:
    """Whether the values are given as text where that is asked for, and otherwise refused."""
    source, target = Schema.of(f"c {old}").struct(), Schema.of(f"c {new}").struct()
    strict, loose = (refusals(source, target, Leeway(text=text)) for text in (False, True))
    return bool(strict) and not loose


def table() -> str:
    """A row for each type, with what it may become."""
    rows = ["| from | widens to | narrows to | as text |", "|---|---|---|---|"]
    for old in TYPES:
        kinds = {new: change(old, new) for new in TYPES}
        widened, narrowed = (
            [new for new, kind in kinds.items() if kind is asked]
            for asked in (ChangeKind.WIDENED, ChangeKind.NARROWED)
        )
        text = [new for new in TYPES if becomes_text(old, new)]
        rows.append(f"| `{old}` | {_listed(widened)} | {_listed(narrowed)} | {_listed(text)} |")
    return "\n".join(rows) + "\n"


def rewritten(page: str) -> str:
    """The page with its table made anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"The page has no place for the table; put {BEGIN.strip()} and {END}.")
    return f"{before}{begin}\n{table()}\n{end}{after}"


def _listed(types: Sequence[str]) -> str:
    if len(types) == len(TYPES) - 1:
        return "every other type"
    return ", ".join(f"`{each}`" for each in types)


def main() -> int:
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
