"""Writes docs/reference.md: every public verb in a line, and every error condition.

    python docs/reference.py

`make docs` runs it; a test compares the page with the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from catalog import Cache, Catalog, Schema, errors
from catalog.audit.api import AuditApi
from catalog.backups.api import BackupsApi
from catalog.context import CallOptions
from catalog.contracts.api import ContractsApi
from catalog.names.api import NamesApi
from catalog.objects.api import ObjectsApi
from catalog.operations.api import OperationsApi
from catalog.operations.operation import Operation
from catalog.realtime.announcer import StreamAnnouncer
from catalog.retention.api import RetentionApi
from catalog.settings.api import SettingsApi
from catalog.sql.api import InspectApi
from catalog.tasks.api import TasksApi

PAGE = Path(__file__).resolve().parent / "reference.md"

# Each class as users write it, and the page that tells more.
CLASSES: tuple[tuple[str, type, str], ...] = (
    ("catalog", Catalog, "segments.md"),
    ("catalog.objects", ObjectsApi, "objects.md"),
    ("catalog.names", NamesApi, "names.md"),
    ("catalog.contracts", ContractsApi, "contracts.md"),
    ("catalog.operations", OperationsApi, "operations.md"),
    ("operation", Operation, "operations.md"),
    ("catalog.settings", SettingsApi, "settings.md"),
    ("catalog.tasks", TasksApi, "tasks.md"),
    ("catalog.audit", AuditApi, "audit.md"),
    ("catalog.backups", BackupsApi, "backups.md"),
    ("catalog.retention", RetentionApi, "retention.md"),
    ("catalog.inspect", InspectApi, "sql.md"),
    ("cache", Cache, "cache.md"),
    ("announcer", StreamAnnouncer, "cache.md"),
    ("schema", Schema, "schemas.md"),
)


def page() -> str:
    """The whole page."""
    return "\n".join(
        (
            "# Reference",
            "",
            "<!-- written by docs/reference.py from the code; do not edit -->",
            "",
            "Every public verb with its arguments, and every error condition. "
            "`help(catalog.objects.put)` says more.",
            "",
            "`…` is for the keyword arguments that all verbs take which write:",
            "",
            *_options(),
            "",
            "`as_of` is a version, a `datetime` with a time zone, an `Epoch(n)`, or by default the "
            "newest version.",
            "",
            *(line for name, cls, more in CLASSES for line in _section(name, cls, more)),
            *_conditions(),
        )
    )


def _options() -> Iterator[str]:
    document = inspect.cleandoc(CallOptions.__doc__ or "")
    text = re.sub(r"\n {8,}", " ", document.partition("Attributes:\n")[2])
    for line in text.splitlines():
        name, _, meaning = line.strip().partition(": ")
        yield f"- `{name}`: {meaning}"


def _section(name: str, cls: type, more: str) -> Iterator[str]:
    yield from (f"## {name}", "", f"{_first(cls)} [More]({more}).", "", "| | |", "|---|---|")
    for attribute in _public(cls):
        verb = f"{name}.{attribute}{_arguments(cls, attribute)}"
        yield f"| `{verb}` | {_first(getattr(cls, attribute))} |"
    yield ""


def _public(cls: type) -> list[str]:
    """Public members with a docstring, in the order of the source, inherited ones first."""
    found: dict[str, None] = {}
    for owner in reversed(cls.__mro__[:-1]):
        if owner.__module__.startswith("catalog."):
            found.update(dict.fromkeys(n for n in vars(owner) if not n.startswith("_")))
    return [name for name in found if getattr(getattr(cls, name), "__doc__", None)]


def _arguments(cls: type, name: str) -> str:
    member = getattr(cls, name)
    if isinstance(member, property) or not callable(member):
        return ""
    shown, keywords = [], False
    for parameter in inspect.signature(member).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            shown.append("…")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            shown.append("*")
        optional = parameter.default is not parameter.empty
        shown.append(parameter.name + ("=" if optional else ""))
    return f"({', '.join(shown)})"


def _first(member: object) -> str:
    """The first paragraph of a docstring, in one line."""
    document = inspect.getdoc(member) or ""
    return re.sub(r"\s+", " ", document.split("\n\n")[0]).replace("|", "\\|")


def _conditions() -> Iterator[str]:
    yield from (
        "## Error conditions",
        "",
        "Every error is a `CatalogError` with `condition`, `values` and `retryable`: whether the "
        "same call can succeed later without being changed.",
        "",
        "| condition | class | retryable | |",
        "|---|---|---|---|",
    )
    for error in all_errors():
        again = "yes" if error.retryable else ""
        yield f"| `{error.condition}` | `{error.__name__}` | {again} | {_first(error)} |"
    yield ""


def all_errors() -> list[type[errors.CatalogError]]:
    """Every class of error, in the order of the source."""
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.CatalogError)
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
