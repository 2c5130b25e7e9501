"""The checks of every version in a range: what versions changed, followed from one to the next.

I2, I3: sums over the change feed, version by version. I4: the rows of a version carry the commit
id that it claims. I4, I5: links and names agree at every version. I5, I6: a replay of the feed
arrives at what a full read finds. I7: an operation is decided once. I8: the stable epoch never goes
down, and ready operations are published just when it reaches them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as F

from catalog.cache.loader import Loader
from catalog.cache.snapshot import Position
from catalog.delta.store import Store
from catalog.names.model import parts_of
from catalog.objects.declarations import Types
from catalog.objects.model import ObjectNode
from catalog.objects.rules import BrokenRule, newly_broken
from catalog.objects.types import TYPE
from catalog.verify.model import Counterexample, Row, VersionStep, Violations
from catalog.verify.rows import (
    DECLARED,
    IDENTITY_NAMES,
    LINK_DISAGREES,
    LINKS_NOWHERE,
    NAME_KINDS,
    NAMED,
    OBJECT,
    VERSION,
    NameRows,
    broken,
    broken_rule,
    check_name,
    group_names,
    node_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# --- sums over the feed: `events` says of each row when it came (1) and went (-1) -----------------


def check_uniqueness(found: Violations, events: DataFrame) -> None:
    """I2 at every version."""
    per_version = events.groupBy(*IDENTITY_NAMES, "version").agg(F.sum("delta").alias("net"))
    totals = per_version.selectExpr(
        *IDENTITY_NAMES,
        "version",
        f"sum(net) OVER (PARTITION BY {', '.join(IDENTITY_NAMES)} ORDER BY version) AS rows",
    )
    found.expect_none(
        "I2", "a key of a kind did not have one row or none", totals.where("rows NOT IN (0, 1)")
    )


def check_references(found: Violations, events: DataFrame) -> None:
    """I3 at every version."""
    per_version = (
        events.where("fingerprint IS NOT NULL")
        .selectExpr(
            "fingerprint",
            "version",
            "IF(kind IN ('schema', 'retired'), delta, 0) AS definition",
            "IF(kind IN ('schema', 'retired'), 0, delta) AS reference",
        )
        .groupBy("fingerprint", "version")
        .agg(F.sum("definition").alias("definition"), F.sum("reference").alias("reference"))
    )
    window = "OVER (PARTITION BY fingerprint ORDER BY version)"
    totals = per_version.selectExpr(
        "fingerprint",
        "version",
        f"sum(definition) {window} AS definitions",
        f"sum(reference) {window} AS references",
    )
    found.expect_none(
        "I3",
        "a fingerprint was referred to and led to no payload",
        totals.where("references > 0 AND definitions <= 0"),
    )


def check_commits(found: Violations, events: DataFrame, claimed: Mapping[int, str | None]) -> None:
    """I4: the rows of each version carry the commit id that its metadata claims, and no other."""
    # Each version's commit has an id of its own, so this also says that the rows of a commit
    # are at one version.
    claims = Counter(commit for commit in claimed.values() if commit is not None)
    found.add(
        Counterexample(
            "I4", "two versions claim one commit", {"commit_id": commit, "versions": versions}
        )
        for commit, versions in claims.items()
        if versions > 1
    )
    known = found.session.createDataFrame(
        list(claimed.items()) or [(-1, "")], "version BIGINT, expected STRING"
    )
    found.expect_none(
        "I4",
        "a version holds rows that its commit does not claim",
        events.where("delta = 1")
        .join(known, "version")
        .where("NOT commit_id <=> expected")
        .select("version", "kind", "key", "commit_id", "expected"),
    )


def check_polls(found: Violations, store: Store, first: int, last: int) -> None:
    """I5 and I6: polls arrive at what a full read finds."""
    loader = Loader(store)
    start, end = Position("", first, ""), Position("", last, "")
    before = loader.load_at(start) if first > 0 else loader.nothing(start)
    polled = loader.replay(before, end).snapshot.content()
    what = f"the change feed from version {first} to {last} does not lead to what is there"
    found.add(
        Counterexample("I6", f"{what}: {part} differ", {"part": part})
        for part, value in loader.load_at(end).content().items()
        if polled[part] != value
    )


# --- rows from version to version -----------------------------------------------------------------


class Replay(Protocol):
    """Follows rows of some kinds from version to version."""

    def start(self, step: VersionStep) -> None:
        """Takes over the rows of a version without checking how they came about."""
        ...

    def follow(self, step: VersionStep) -> Iterator[Counterexample]:
        """Takes over what the next version changed, and yields what is wrong there."""
        ...


@dataclass(frozen=True)
class _OperationState:
    state: str
    epoch: int


class OperationReplay:
    """Follows operations, their parts and the stable epoch."""

    # The transitions of a state; none is before it was opened, and after its row was removed.
    _TRANSITIONS = frozenset(
        {
            (None, "open"),
            ("open", "open"),
            ("open", "ready"),
            ("open", "published"),
            ("open", "aborted"),
            ("ready", "published"),
            ("published", None),
            ("aborted", None),
        }
    )

    def __init__(self) -> None:
        self._operations: dict[str, _OperationState] = {}
        self._ready: set[str] = set()
        self._stable = 0

    def start(self, step: VersionStep) -> None:
        for _ in self.follow(step):
            pass

    def follow(self, step: VersionStep) -> Iterator[Counterexample]:
        stable = self._stable
        for _, row in step.of_kind("epoch"):
            self._stable = _number(row, "stable")
        if self._stable < stable:
            seen = {"version": step.version, "before": stable, "after": self._stable}
            yield Counterexample("I8", "the stable epoch went down", seen)
        before = {key: self._operations.get(key) for key, _ in step.of_kind("operation")}
        waited = set(self._ready) if self._stable != stable else set()
        for key, row in step.of_kind("operation"):
            self._put(key, row)
            yield from self._check(step.version, key, before[key])
        yield from self._left_behind(step.version, waited & self._ready)
        yield from self._parts(step, before)

    def _put(self, key: str, row: Row | None) -> None:
        self._ready.discard(key)
        self._operations.pop(key, None)
        if row is not None:
            self._operations[key] = _OperationState(row["state"], _number(row, "epoch"))
            if row["state"] == "ready":
                self._ready.add(key)

    def _check(
        self, version: int, key: str, old: _OperationState | None
    ) -> Iterator[Counterexample]:
        new = self._operations.get(key)
        states = (old and old.state, new and new.state)
        seen: dict[str, Any] = {"version": version, "operation": key}
        if states not in self._TRANSITIONS:
            what = "an operation was decided twice, undone, or never open"
            yield Counterexample("I7", what, {**seen, "before": states[0], "after": states[1]})
        seen["stable"] = self._stable
        if new and states[1] == "ready" and states[0] != "ready" and new.epoch <= self._stable:
            what = "an operation became ready at no epoch above the stable one"
            yield Counterexample("I8", what, {**seen, "epoch": new.epoch})
        if old and states == ("ready", "published") and old.epoch > self._stable:
            what = "an operation was published before the stable epoch reached its own"
            yield Counterexample("I8", what, {**seen, "epoch": old.epoch})

    def _left_behind(self, version: int, waiting: Iterable[str]) -> Iterator[Counterexample]:
        for key in sorted(waiting):
            epoch = self._operations[key].epoch
            if epoch <= self._stable:
                what = "an operation was left behind when the stable epoch reached its own"
                seen = {"version": version, "operation": key, "epoch": epoch}
                yield Counterexample("I8", what, {**seen, "stable": self._stable})

    def _parts(
        self, step: VersionStep, before: Mapping[str, _OperationState | None]
    ) -> Iterator[Counterexample]:
        for key, row in step.of_kind("part"):
            operation = key.rpartition("/")[0]
            now = self._operations.get(operation)
            was = before.get(operation, now)
            seen = {"version": step.version, "part": key}
            if row is not None and was is not None and was.state != "open":
                what = "a part came or changed after its operation was decided"
                yield Counterexample("I7", what, {**seen, "state": was.state})
            if row is None and now is not None and now.state in ("open", "ready"):
                what = "a part went away before its operation was decided"
                yield Counterexample("I7", what, {**seen, "state": now.state})


@dataclass(frozen=True)
class _Linked:
    revision: int
    links: dict[str, int]


class LinkReplay:
    """Follows the links of objects; only those that a version touched are checked."""

    def __init__(self) -> None:
        self._objects: dict[str, _Linked] = {}
        self._holders: dict[str, set[str]] = {}

    def start(self, step: VersionStep) -> None:
        for key, row in step.of_kind(OBJECT):
            self._put(key, row)

    def follow(self, step: VersionStep) -> Iterator[Counterexample]:
        self.start(step)
        touched = {key for key, _ in step.of_kind(OBJECT)}
        holders = {holder for key in touched for holder in self._holders.get(key, ())}
        for key in sorted((touched | holders) & self._objects.keys()):
            for target, seen in self._objects[key].links.items():
                other = self._objects.get(target)
                row = {"version": step.version, "key": key, "target": target, "seen": seen}
                if other is None:
                    yield Counterexample("I3", LINKS_NOWHERE, row)
                elif other.revision != seen:
                    yield Counterexample("I4", LINK_DISAGREES, {**row, "revision": other.revision})

    def _put(self, key: str, row: Row | None) -> None:
        old = self._objects.pop(key, None)
        for target in old.links if old else ():
            self._holders[target].discard(key)
        if row is None:
            return
        self._objects[key] = now = _Linked(row["revision"], _said(row))
        for target in now.links:
            self._holders.setdefault(target, set()).add(key)


class NameReplay:
    """Follows named schemas and their versions."""

    def __init__(self) -> None:
        self._names: dict[str, NameRows] = {}

    def start(self, step: VersionStep) -> None:
        rows = (row for row in step.after.values() if row and row["kind"] in NAME_KINDS)
        self._names = group_names(rows)

    def follow(self, step: VersionStep) -> Iterator[Counterexample]:
        touched = set()
        for key, row in step.of_kind(NAMED):
            touched.add(key)
            self._known(key).head = row
        for key, row in step.of_kind(VERSION):
            name, number = parts_of(key)
            touched.add(name)
            versions = self._known(name).versions
            if number in versions or row is None:
                what = "a version of a named schema was changed or removed"
                yield Counterexample("I5", what, {"version": step.version, "key": key})
                versions.pop(number, None)
            if row is not None:
                versions[number] = row
        for name in sorted(touched):
            for each in check_name(name, self._known(name)):
                row = {"version": step.version, **each.row}
                yield Counterexample(each.promise, each.what, row)

    def _known(self, name: str) -> NameRows:
        return self._names.setdefault(name, NameRows())


def declares_types(rows: Iterable[Row]) -> bool:
    """Whether any of these rows is the declaration of a type, without which there are no rules."""
    return any(row["kind"] == OBJECT and row["key"].startswith(DECLARED) for row in rows)


class RuleReplay:
    """Follows all objects, and checks the rules where one of a declared type changed.

    State transitions are not checked: a version that an epoch published may have made several at
    once, and a rollback goes back.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, ObjectNode] = {}
        self._versions: dict[str, set[int]] = {}
        self._types = Types()
        self._broken: list[BrokenRule] = []

    def start(self, step: VersionStep) -> None:
        # The check of the first version reports what is broken there.
        self._take(step)
        self._broken = self._all_broken()

    def follow(self, step: VersionStep) -> Iterator[Counterexample]:
        if not self._take(step):
            return
        before, self._broken = self._broken, self._all_broken()
        for each in newly_broken(before, self._broken):
            yield broken_rule(each, version=step.version)

    def _take(self, step: VersionStep) -> bool:
        """Whether anything changed that a rule may depend on."""
        for key, row in step.of_kind(VERSION):
            name, number = parts_of(key)
            numbers = self._versions.setdefault(name, set())
            (numbers.discard if row is None else numbers.add)(number)
        touched = set()
        for key, row in step.of_kind(OBJECT):
            touched.add(key.partition("/")[0])
            self._nodes.pop(key, None)
            node = None if row is None else node_of(row)
            if node is not None:
                self._nodes[key] = node
        if TYPE in touched:
            self._types = Types.among(self._nodes)
            return True
        return any(self._types.get(name) is not None for name in touched)

    def _all_broken(self) -> list[BrokenRule]:
        if not self._types:
            return []
        known = {name: numbers for name, numbers in self._versions.items() if numbers}
        return broken(self._types, self._nodes, known)


def _said(row: Row | None) -> dict[str, Any]:
    """The JSON object of a row; empty if it cannot be read."""
    try:
        found = json.loads((row and row["said"]) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(row: Row | None, name: str) -> int:
    """A number of the payload; 0, which no epoch has, if it is missing."""
    found = _said(row).get(name, 0)
    return found if isinstance(found, int) else 0
