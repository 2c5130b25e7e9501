"""The rules of declared types, at one version or at every version of a range.

They are no promise about the table: each commit that changes objects keeps them, and a raw RESTORE
or another release may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from catalog.contracts.model import TableLimits, limits_document, stored_limits
from catalog.errors import InvalidObject
from catalog.names.model import parts_of
from catalog.names.store import known_versions
from catalog.objects.declarations import Types
from catalog.objects.model import ObjectNode
from catalog.objects.platform import limits_of, missing_schemas, named_schemas
from catalog.objects.rules import BrokenRule, broken_rules, newly_broken
from catalog.objects.types import TYPE
from catalog.verify.changes import Row, Step
from catalog.verify.report import Findings, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What an object is made of, beside its key.
CONTENT = ("revision", "fingerprint", "datasource", "digest", "payload")
_DECLARED = f"{TYPE}/"

# --- one version ----------------------------------------------------------------------------------


def check_rules(found: Findings, pinned: str) -> None:
    """The rules of declared types among all objects at one version."""
    said = f"SELECT key, {', '.join(CONTENT)} FROM {pinned} WHERE kind = 'object'"
    declarations = f"startswith(key, '{_DECLARED}')"
    nodes = _nodes(found.session, f"{said} AND {declarations}")
    if nodes:
        nodes |= _nodes(found.session, f"{said} AND NOT {declarations}")
        types = Types.among(nodes)
        wanted = named_schemas(types, nodes, {})
        known = known_versions(found.session, pinned, {name for name, _ in wanted.values()})
        broken = [*broken_rules(types, nodes), *missing_schemas(wanted, known)]
        found.note(_problem(each) for each in broken)
    found.note(_wrong_limits(found.session, pinned, limits_of(nodes)))


def _problem(broken: BrokenRule, **where: int) -> Problem:
    what = f"the rule {broken.rule} does not hold"
    return Problem("rules", what, {**where, "key": broken.key, "why": broken.text})


def _wrong_limits(
    session: SparkSession, pinned: str, limits: dict[str, TableLimits]
) -> Iterator[Problem]:
    """Datasources whose rows do not have the limits that tables give them."""
    rows = session.sql(
        f"SELECT key, payload FROM {pinned} WHERE kind = 'datasource' AND payload IS NOT NULL"
    ).collect()
    stored: dict[str, TableLimits] = {}
    for row in rows:
        # Terms that cannot be read do not have their digest, which another check tells of.
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            stored[row["key"]] = stored_limits(row["payload"])
    for name in sorted(stored.keys() | limits.keys()):
        has, given = stored.get(name, {}), limits.get(name, {})
        if has != given:
            yield Problem(
                "rules",
                "a datasource does not have the limits that its tables give",
                {"key": name, "has": limits_document(has), "given": limits_document(given)},
            )


def _nodes(session: SparkSession, query: str) -> dict[str, ObjectNode]:
    rows = (row.asDict() for row in session.sql(query).collect())
    return {row["key"]: node for row in rows if (node := _node(row)) is not None}


def _node(row: Row) -> ObjectNode | None:
    """An object, or none if it cannot be read, which another check tells of."""
    with suppress(InvalidObject):
        return ObjectNode.from_payload(key=row["key"], **{name: row[name] for name in CONTENT})
    return None


# --- every version --------------------------------------------------------------------------------


def declares_types(rows: Iterable[Row]) -> bool:
    """Whether any of these rows is the declaration of a type, without which there are no rules."""
    return any(row["kind"] == "object" and row["key"].startswith(_DECLARED) for row in rows)


class Rules:
    """Follows all objects from version to version, and judges where one of a declared type changed.

    Steps from one state to another are not judged: what comes at an epoch may have made several
    at once, and a rollback goes back.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, ObjectNode] = {}
        self._versions: dict[str, set[int]] = {}
        self._types = Types()
        self._broken: list[BrokenRule] = []

    def start(self, step: Step) -> None:
        """Takes what is there at first, and what is broken there: other checks tell of it."""
        self._take(step)
        self._broken = self._judged()

    def follow(self, step: Step) -> Iterator[Problem]:
        """Goes to the next version and tells which rules hold no longer."""
        if not self._take(step):
            return
        before, self._broken = self._broken, self._judged()
        for each in newly_broken(before, self._broken):
            yield _problem(each, version=step.version)

    def _take(self, step: Step) -> bool:
        """Whether anything changed that a rule may ask for."""
        for key, row in step.of_kind("version"):
            name, number = parts_of(key)
            numbers = self._versions.setdefault(name, set())
            (numbers.discard if row is None else numbers.add)(number)
        touched = set()
        for key, row in step.of_kind("object"):
            touched.add(key.partition("/")[0])
            self._nodes.pop(key, None)
            node = None if row is None else _node(row)
            if node is not None:
                self._nodes[key] = node
        if TYPE in touched:
            self._types = Types.among(self._nodes)
            return True
        return any(self._types.get(name) is not None for name in touched)

    def _judged(self) -> list[BrokenRule]:
        if not self._types:
            return []
        wanted = named_schemas(self._types, self._nodes, {})
        known = {name: numbers for name, numbers in self._versions.items() if numbers}
        return [*broken_rules(self._types, self._nodes), *missing_schemas(wanted, known)]
