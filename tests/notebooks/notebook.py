"""Runs a notebook in Databricks source format cell by cell, with stand-ins for what it brings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

HEADER = "# Databricks notebook source\n"
SEPARATOR = "\n# COMMAND ----------\n"
MAGIC = "# MAGIC "


@dataclass(frozen=True)
class Cell:
    """One cell: its language (python, sql or md) and its text."""

    language: str
    text: str


def cells_of(file: Path) -> list[Cell]:
    """The cells of a notebook; raises if the file is not in source format."""
    text = file.read_text()
    assert text.startswith(HEADER), f"{file.name} does not begin as a notebook"
    return [_cell(part.strip("\n")) for part in text.removeprefix(HEADER).split(SEPARATOR)]


def _cell(text: str) -> Cell:
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# MAGIC"):
        return Cell("python", text)
    magic = [line.removeprefix(MAGIC) if line != "# MAGIC" else "" for line in lines]
    assert all(line.startswith("# MAGIC") for line in lines), f"a cell of two kinds: {lines[0]}"
    language, _, rest = "\n".join(magic).removeprefix("%").partition("\n")
    return Cell(language.split()[0], rest)


@dataclass
class Widgets:
    """Stands in for dbutils.widgets: what the test gives wins over a widget's default."""

    given: dict[str, str]
    declared: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str, label: str) -> None:
        self.declared[name] = default

    def get(self, name: str) -> str:
        return self.given.get(name, self.declared[name])


@dataclass
class Dbutils:
    """Stands in for dbutils."""

    widgets: Widgets


class Notebook:
    """A notebook that is being run; `shown` holds the rows of every frame that it displayed."""

    def __init__(self, spark: SparkSession, file: Path, **widgets: str) -> None:
        self.file = file
        self.shown: list[list[dict[str, Any]]] = []
        self._spark = spark
        self.widgets = Widgets(widgets)
        self.names: dict[str, Any] = {
            "spark": spark,
            "dbutils": Dbutils(self.widgets),
            "display": self._display,
        }

    def _display(self, frame: DataFrame) -> None:
        self.shown.append([row.asDict() for row in frame.collect()])

    def run(self) -> Notebook:
        """Runs every cell; an error names the cell."""
        for number, cell in enumerate(cells_of(self.file), 1):
            try:
                if cell.language == "sql":
                    self._display(self._spark.sql(cell.text))
                elif cell.language == "python":
                    exec(compile(cell.text, f"{self.file.name}, cell {number}", "exec"), self.names)
                else:
                    assert cell.language == "md", f"unknown magic %{cell.language}"
            except Exception as error:
                error.add_note(f"{self.file.name}, cell {number}")
                raise
        return self
