"""Named schemas: their versions are all there, lead to a schema, and say what the name says.

I3: numbers run from 1 to the current one, each with a schema. I4: a name changes together with its
versions. I5: a version stays as it was registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import CorruptSchema
from catalog.names.model import NameHead, Version, parts_of
from catalog.verify.changes import Row, Step
from catalog.verify.report import Findings, Problem

NAMED, VERSION = KINDS = ("named", "version")
_CHANGED = "a version of a named schema was changed or removed"


@dataclass
class _Name:
    """A name as far as it is known: its row and those of its versions by number."""

    head: Row | None = None
    versions: dict[int, Row] = field(default_factory=dict)


def check_names(found: Findings, pinned: str) -> None:
    """All names and versions at one version of the table."""
    rows = found.session.sql(
        f"SELECT kind, key, fingerprint, payload AS said FROM {pinned} "
        "WHERE kind IN ('named', 'version')"
    )
    names = _grouped(rows.toArrow().to_pylist())
    found.note(problem for name, known in names.items() for problem in _problems(name, known))


class Names:
    """Follows names from version to version of the table."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}

    def start(self, step: Step) -> None:
        """Takes what is there at first, without judging it."""
        self._names = _grouped(row for row in step.after.values() if row and row["kind"] in KINDS)

    def follow(self, step: Step) -> Iterator[Problem]:
        """Goes to the next version and tells what is wrong there with the names it touched."""
        touched = set()
        for key, row in step.of_kind(NAMED):
            touched.add(key)
            self._known(key).head = row
        for key, row in step.of_kind(VERSION):
            name, number = parts_of(key)
            touched.add(name)
            versions = self._known(name).versions
            if number in versions or row is None:
                yield Problem("I5", _CHANGED, {"version": step.version, "key": key})
                versions.pop(number, None)
            if row is not None:
                versions[number] = row
        for name in sorted(touched):
            for problem in _problems(name, self._known(name)):
                yield Problem(
                    problem.promise, problem.what, {"version": step.version, **problem.row}
                )

    def _known(self, name: str) -> _Name:
        return self._names.setdefault(name, _Name())


def _grouped(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Name]:
    names: dict[str, _Name] = {}
    for row in rows:
        if row["kind"] == NAMED:
            names.setdefault(row["key"], _Name()).head = row
        else:
            name, number = parts_of(row["key"])
            names.setdefault(name, _Name()).versions[number] = row
    return names


def _problems(name: str, known: _Name) -> Iterator[Problem]:
    row: dict[str, Any] = {"name": name}
    try:
        head = None if known.head is None else NameHead.from_payload(name, known.head["said"])
        versions = {
            number: Version.from_payload(
                f"{name}/{number}", number, each["fingerprint"], each["said"]
            )
            for number, each in sorted(known.versions.items())
        }
    except CorruptSchema as error:
        yield Problem(
            "I5", "what a named schema says cannot be read", {**row, "why": error.message}
        )
        return
    current = 0 if head is None else head.current
    if list(versions) != list(range(1, current + 1)):
        yield Problem(
            "I3",
            "the versions of a named schema do not run from 1 to the current one",
            {**row, "current": current, "versions": list(versions)[:20]},
        )
        return
    for number, version in versions.items():
        if version.fingerprint is None:
            what = "a version of a named schema leads to no schema"
            yield Problem("I3", what, {**row, "number": number})
    if head is None or known.head is None:
        return
    breaking = max((n for n, each in versions.items() if each.breaking), default=1)
    if head.last_breaking != breaking:
        yield Problem(
            "I4",
            "a named schema does not say which of its versions is the last breaking one",
            {**row, "says": head.last_breaking, "is": breaking},
        )
    if known.head["fingerprint"] != versions[current].fingerprint:
        what = "a named schema does not refer to the schema of its current version"
        yield Problem("I4", what, {**row, "fingerprint": known.head["fingerprint"]})
