"""Operations: their rows belong together, keys have one holder, and each is decided once.

I4: a staged change belongs to a part, and both to an operation. I7: what an operation was promised
is not taken from it, by another holder of its keys or by a second decision. I8: the stable epoch
never goes down, and ready operations are published just when it reaches them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from catalog.verify.changes import Row, Step
from catalog.verify.report import Findings, Problem, Sort

KINDS = frozenset({"operation", "part", "staged", "epoch"})

_UNDECIDED = frozenset({"open", "ready"})
# The steps of a life; none is before it was opened, and after its row was swept away.
_LIFE = {
    (None, "open"),
    ("open", "open"),
    ("open", "ready"),
    ("open", "published"),
    ("open", "aborted"),
    ("ready", "published"),
    ("published", None),
    ("aborted", None),
}


# --- one version ----------------------------------------------------------------------------------


_SORTS = (
    Sort("I4", "a staged change or a part has no operation", "alone"),
    Sort(
        "I4",
        "a staged change of an undecided operation belongs to a part that is not there",
        "without_part",
    ),
    Sort("I7", "several open operations hold a key, and not all of them share it", "contested"),
    Sort("I8", "an operation is ready at no epoch above the stable one", "late"),
)


def check_operations(found: Findings, pinned: str) -> None:
    """The rows of operations as they stand at one version, in one scan."""
    known = (
        "SELECT kind, target, key, operation, part, action, "
        "max(IF(kind = 'operation', state, NULL)) OVER (PARTITION BY operation) AS state, "
        "bool_or(kind = 'part') OVER (PARTITION BY operation, part) AS with_part, "
        "CAST(get_json_object(payload, '$.epoch') AS BIGINT) AS epoch, "
        "coalesce(max(IF(kind = 'epoch', CAST(get_json_object(payload, '$.stable') AS BIGINT), "
        f"NULL)) OVER (), 0) AS stable FROM {pinned} "
        "WHERE kind IN ('operation', 'part', 'staged', 'epoch')"
    )
    # One that is ready may have others behind it on a key: they are published in order.
    holder = "IF(state = 'open', operation, NULL)"
    window = "OVER (PARTITION BY kind, target, key)"
    rows = found.session.sql(
        "SELECT kind, target, key, operation, part, action, state, epoch, stable, "
        "kind IN ('staged', 'part') AND state IS NULL AS alone, "
        "kind = 'staged' AND state IN ('open', 'ready') AND NOT with_part AS without_part, "
        f"kind = 'staged' AND state = 'open' AND min({holder}) {window} <> max({holder}) {window} "
        f"AND bool_or(state = 'open' AND action <> 'hold') {window} AS contested, "
        "kind = 'operation' AND state = 'ready' AND (epoch IS NULL OR epoch <= stable) AS late "
        f"FROM ({known})"
    )
    found.expect_no_flags(rows, _SORTS)


# --- every version --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Operation:
    state: str
    epoch: int


class Lives:
    """Follows operations, their parts and the stable epoch from version to version."""

    def __init__(self) -> None:
        self._operations: dict[str, _Operation] = {}
        self._ready: set[str] = set()
        self._stable = 0

    def start(self, step: Step) -> None:
        """Takes what is there at first, without judging how it came about."""
        for _ in self.follow(step):
            pass

    def follow(self, step: Step) -> Iterator[Problem]:
        """Goes to the next version and tells what it should not have done."""
        stable = self._stable
        for _, row in step.of_kind("epoch"):
            self._stable = _number(row, "stable")
        if self._stable < stable:
            seen = {"version": step.version, "before": stable, "after": self._stable}
            yield Problem("I8", "the stable epoch went down", seen)
        before = {key: self._operations.get(key) for key, _ in step.of_kind("operation")}
        waited = set(self._ready) if self._stable != stable else set()
        for key, row in step.of_kind("operation"):
            self._put(key, row)
            yield from self._judge(step.version, key, before[key])
        yield from self._left_behind(step.version, waited & self._ready)
        yield from self._parts(step, before)

    def _put(self, key: str, row: Row | None) -> None:
        self._ready.discard(key)
        self._operations.pop(key, None)
        if row is not None:
            self._operations[key] = _Operation(row["state"], _number(row, "epoch"))
            if row["state"] == "ready":
                self._ready.add(key)

    def _judge(self, version: int, key: str, old: _Operation | None) -> Iterator[Problem]:
        new = self._operations.get(key)
        states = (old and old.state, new and new.state)
        seen: dict[str, Any] = {"version": version, "operation": key}
        if states not in _LIFE:
            what = "an operation was decided twice, undone, or never open"
            yield Problem("I7", what, {**seen, "before": states[0], "after": states[1]})
        seen["stable"] = self._stable
        if new and states[1] == "ready" and states[0] != "ready" and new.epoch <= self._stable:
            what = "an operation became ready at no epoch above the stable one"
            yield Problem("I8", what, {**seen, "epoch": new.epoch})
        if old and states == ("ready", "published") and old.epoch > self._stable:
            what = "an operation was published before the stable epoch reached its own"
            yield Problem("I8", what, {**seen, "epoch": old.epoch})

    def _left_behind(self, version: int, waiting: Iterable[str]) -> Iterator[Problem]:
        for key in sorted(waiting):
            epoch = self._operations[key].epoch
            if epoch <= self._stable:
                what = "an operation was left behind when the stable epoch reached its own"
                seen = {"version": version, "operation": key, "epoch": epoch}
                yield Problem("I8", what, {**seen, "stable": self._stable})

    def _parts(self, step: Step, before: dict[str, _Operation | None]) -> Iterator[Problem]:
        for key, row in step.of_kind("part"):
            operation = key.rpartition("/")[0]
            now = self._operations.get(operation)
            was = before.get(operation, now)
            seen = {"version": step.version, "part": key}
            if row is not None and was is not None and was.state != "open":
                what = "a part came or changed after its operation was decided"
                yield Problem("I7", what, {**seen, "state": was.state})
            if row is None and now is not None and now.state in _UNDECIDED:
                what = "a part went away before its operation was decided"
                yield Problem("I7", what, {**seen, "state": now.state})


def _number(row: Row | None, name: str) -> int:
    """A number in the payload; 0, which no epoch has, if it is not there."""
    try:
        found = json.loads(row["said"] or "")[name] if row else 0
    except (ValueError, KeyError, TypeError):
        return 0
    return found if isinstance(found, int) else 0
