"""Random lives of operations, held against a simple account of them, and readers beside."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from catalog import Catalog, Object, Schema
from catalog.cache.cache import Cache
from catalog.environment import Environment
from catalog.errors import (
    ClaimConflict,
    EpochNotNewer,
    EpochOrder,
    EpochRegression,
    OperationDecided,
    PartsMissing,
)
from catalog.operations.operation import Operation
from tests.concurrency.gates import Side, assert_promises, until
from tests.unit.builders import segment

SEED = 20261117
KEYS = [f"orders/{n}" for n in range(4)]
TABLES = ["table/a", "table/b"]
INDEX = "index/ab"
PARTS = 2
REFUSALS = (
    *(ClaimConflict, EpochNotNewer, EpochOrder, EpochRegression),
    *(OperationDecided, PartsMissing),
)


@dataclass
class Account:
    """An operation as the test knows it: what each part brings, and what became of it."""

    handle: Operation
    number: int
    changes: dict[int, dict[str, bool]] = field(default_factory=dict)
    state: str = "open"
    epoch: int = 0
    order: int = 0


class Life:
    """Takes random steps and keeps account of what must be visible after each."""

    def __init__(self, catalog: Catalog, recoverer: Catalog, seed: int) -> None:
        self._catalog = catalog
        self._recoverer = recoverer
        self._chance = random.Random(seed)
        self._accounts: list[Account] = []
        self._stable = 0
        self.segments: dict[str, str] = {}
        self.revisions = dict.fromkeys([*TABLES, INDEX], 1)
        self.taken: dict[str, int] = {}
        self.most_at_once = 0
        catalog.objects.put([*(Object(key) for key in TABLES), Object(INDEX, links=TABLES)])

    def step(self) -> None:
        steps = self._likely()
        (chosen,) = self._chance.choices(list(steps), weights=list(steps.values()))
        try:
            chosen()
        except REFUSALS as refusal:
            self._count(f"{chosen.__name__} {type(refusal).__name__}")
        else:
            self._count(chosen.__name__)

    def _likely(self) -> dict[Callable[[], object], int]:
        """Mostly what brings an operation further, sometimes what is refused or ends it."""
        complete = any(len(each.changes) == PARTS for each in self._in("open"))
        waiting = len(self._in("ready"))
        return {
            self._open: 2,
            self._stage: 2 if complete else 16,
            self._publish: (2 if waiting else 12) if complete else 1,
            self._ready: 10 if complete else 1,
            self._advance: (1, 2, 6)[min(waiting, 2)],
            self._plain: 2,
            self._abort: 1,
            self._recover: 1,
        }

    def _count(self, what: str) -> None:
        self.taken[what] = self.taken.get(what, 0) + 1

    def _in(self, *states: str) -> list[Account]:
        return [each for each in self._accounts if each.state in states]

    def _one(self, *states: str) -> Account:
        """Mostly the one that has come furthest: while it is open the others get no claims."""
        some = self._in(*states)
        if not some:
            return self._open()
        if self._chance.random() < 0.85:
            return max(some, key=lambda each: len(each.changes))
        return self._chance.choice(some)

    def _open(self) -> Account:
        number = len(self._accounts)
        handle = self._catalog.operation(f"life {number}", parts=PARTS)
        self._accounts.append(Account(handle, number))
        return self._accounts[-1]

    def _stage(self) -> None:
        account = self._one("open")
        missing = [part for part in range(PARTS) if part not in account.changes]
        part = self._chance.choice(missing or range(PARTS))
        # Even keys for one part, odd ones for the other: they never contradict each other.
        mine = [key for key in KEYS if int(key[-1]) % PARTS == part]
        drawn = {key: self._chance.random() < 0.6 for key in self._chance.sample(mine, 1)}
        chosen = account.changes.get(part, drawn)
        result = account.handle.stage(
            part,
            publish=[segment(k, f"c{account.number} INT") for k, made in chosen.items() if made],
            drop=[key for key, made in chosen.items() if not made],
            put=[Object(TABLES[part], {"by": account.number})],
            on_existing="replace",
        )
        assert result.repeated == (part in account.changes)
        account.changes[part] = chosen

    def _apply(self, account: Account) -> None:
        account.state = "published"
        for chosen in account.changes.values():
            for key, made in chosen.items():
                if made:
                    self.segments[key] = f"c{account.number} INT"
                else:
                    self.segments.pop(key, None)
        for key in [*TABLES, INDEX]:
            self.revisions[key] += 1

    def _publish(self) -> None:
        account = self._one("open")
        account.handle.publish()
        self._apply(account)

    def _ready(self) -> None:
        account = self._one("open")
        lowest = max([self._stable + 1, *(each.epoch for each in self._in("ready"))])
        epoch = max(1, lowest + self._chance.choice([-2, 0, 0, 0, 1, 2]))
        account.handle.publish(epoch=epoch)
        ready = sum(bool(each.order) for each in self._accounts)
        account.state, account.epoch, account.order = "ready", epoch, ready + 1

    def _advance(self) -> None:
        waited_for = [each.epoch for each in self._in("ready")]
        epoch = self._chance.choice(waited_for or [self._stable + 1])
        epoch = max(1, epoch + self._chance.choice([-3, 0, 0, 0, 1]))
        applied = self._catalog.operations.advance(epoch).applied
        self._stable = epoch
        due = [each for each in self._in("ready") if each.epoch <= epoch]
        due.sort(key=lambda each: (each.epoch, each.order))
        assert applied == tuple(each.handle.id for each in due)
        self.most_at_once = max(self.most_at_once, len(due))
        for account in due:
            self._apply(account)

    def _abort(self) -> None:
        account = self._one("open", "ready")
        account.handle.abort()
        account.state = "aborted"

    def _plain(self) -> None:
        key = self._chance.choice(KEYS)
        if key in self.segments:
            self._catalog.drop([key])
            del self.segments[key]
        else:
            self._catalog.publish([segment(key, "plain INT")])
            self.segments[key] = "plain INT"

    def _recover(self) -> None:
        # Its clock is a day ahead: everything that is open has been left.
        self._recoverer.operations.recover()
        for account in self._accounts:
            if account.state == "open":
                account.state = "aborted"

    def check(self) -> None:
        """What is visible is what the account says, at the stable epoch that it says."""
        catalog = self._catalog
        cache = catalog.cache()
        found = {key: cache.schema_of(key).ddl for key in KEYS if key in self.segments}
        assert found == self.segments
        assert catalog.segments().count() == len(self.segments)
        assert {each.key: each.revision for each in catalog.objects.list()} == self.revisions
        assert catalog.operations.stable_epoch == self._stable


@pytest.mark.parametrize(
    ("steps", "seed", "published", "ready", "at_once"),
    [
        (11, SEED + 5, 1, 2, 2),
        *(pytest.param(120, SEED + n, 5, 8, 2, marks=pytest.mark.stress) for n in range(1, 4)),
    ],
)
def test_random_lives_of_operations_keep_every_promise(
    open_catalog: Callable[..., Catalog],
    steps: int,
    seed: int,
    published: int,
    ready: int,
    at_once: int,
) -> None:
    """The last three say how often, at least, operations got so far; the seed decides it."""
    ahead = datetime.now(UTC) + timedelta(days=1)
    later = open_catalog(environment=Environment(clock=lambda: ahead))
    life = Life(open_catalog(), later, seed)
    for number in range(steps):
        life.step()
        if number % 10 == 9:
            life.check()
    life.check()
    assert_promises(later)
    assert life.taken["_publish"] >= published, life.taken
    assert life.taken["_ready"] >= ready, life.taken
    assert life.most_at_once >= at_once, life.taken


# --- readers beside -------------------------------------------------------------------------------

IDS = [f"orders/{n}" for n in range(4)]
STATES = [(Schema.of(f"s{n} INT").fingerprint,) * len(IDS) for n in range(3)]


class Reader:
    """Looks all segments up, again and again, and notes what it found in which phase."""

    def __init__(self, cache: Cache, phase: list[str], done: threading.Event) -> None:
        self._cache = cache
        self._phase = phase
        self._done = done
        self.lookups = 0
        self.answers: list[tuple[str, ...]] = []
        self.noted: set[tuple[str, tuple[str, ...]]] = set()
        self.side = Side(self._look)

    def _look(self) -> None:
        while not self._done.is_set() or self.lookups < 2_500:
            phase = self._phase[-1]
            found = tuple(self._cache.lookup(IDS).column("fingerprint").to_pylist())
            self.lookups += 1
            if self.answers[-1:] != [found]:
                self.answers.append(found)
            if phase == self._phase[-1]:
                self.noted.add((phase, found))
            self._done.wait(0.001)


@pytest.mark.stress
def test_ten_thousand_lookups_beside_operations_see_before_or_after_never_between(
    catalog: Catalog, open_catalog: Callable[..., Catalog]
) -> None:
    catalog.publish([segment(key, "s0 INT") for key in IDS])
    phase, done = ["begin"], threading.Event()
    caches = [open_catalog().cache().start(every=0.1) for _ in range(2)]
    readers = [Reader(cache, phase, done) for cache in caches for _ in range(2)]

    def noted(name: str, state: int) -> None:
        """Goes on when every reader has found a state while the work was in a phase."""
        phase.append(name)
        until(lambda: all((name, STATES[state]) in each.noted for each in readers))

    try:
        for number in (1, 2):
            operation = catalog.operation(f"change {number}", parts=2)
            for part in range(2):
                operation.stage(
                    part,
                    publish=[segment(key, f"s{number} INT") for key in IDS[part::2]],
                    on_existing="replace",
                )
                noted(f"part {part} of {number} is staged", number - 1)
            operation.publish()
            noted(f"{number} is published", number)
    finally:
        done.set()
        for reader in readers:
            _ = reader.side.result
        for cache in caches:
            cache.stop()
    assert sum(reader.lookups for reader in readers) >= 10_000
    # Every answer is whole, and nobody goes back.
    assert [reader.answers for reader in readers] == [STATES] * len(readers)
    assert_promises(catalog)
