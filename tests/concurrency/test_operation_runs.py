"""Random lives of operations, held against a simple account of them, and readers beside."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from catalog import Catalog, Object
from catalog.errors import (
    ClaimConflict,
    EpochNotNewer,
    EpochOrder,
    EpochRegression,
    OperationDecided,
    PartsMissing,
)
from catalog.operations.operation import Operation
from catalog.waiting import Surroundings
from tests.concurrency.gates import assert_promises
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
        catalog.put([*(Object(key) for key in TABLES), Object(INDEX, links=TABLES)])

    def step(self) -> None:
        steps = [self._open, self._stage, self._stage, self._publish, self._ready, self._ready]
        steps += [self._advance, self._abort, self._plain, self._recover]
        chosen = self._chance.choice(steps)
        try:
            chosen()
        except REFUSALS as refusal:
            self._count(f"{chosen.__name__} {type(refusal).__name__}")
        else:
            self._count(chosen.__name__)

    def _count(self, what: str) -> None:
        self.taken[what] = self.taken.get(what, 0) + 1

    def _one(self, *states: str) -> Account:
        some = [each for each in self._accounts if each.state in states]
        return self._chance.choice(some) if some else self._open()

    def _open(self) -> Account:
        number = len(self._accounts)
        handle = self._catalog.operation(f"life {number}", parts=PARTS)
        self._accounts.append(Account(handle, number))
        return self._accounts[-1]

    def _stage(self) -> None:
        account = self._one("open")
        part = self._chance.randrange(PARTS)
        if part in account.changes:
            return
        # Even keys for one part, odd ones for the other: they never contradict each other.
        mine = [key for key in KEYS if int(key[-1]) % PARTS == part]
        chosen = {key: self._chance.random() < 0.6 for key in self._chance.sample(mine, 1)}
        account.handle.stage(
            part,
            publish=[segment(k, f"c{account.number} INT") for k, made in chosen.items() if made],
            drop=[key for key, made in chosen.items() if not made],
            put=[Object(TABLES[part], {"by": account.number})],
            on_existing="replace",
        )
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
        epoch = self._stable + self._chance.randrange(4)
        if epoch:
            account.handle.publish(epoch=epoch)
            ready = sum(bool(each.order) for each in self._accounts)
            account.state, account.epoch, account.order = "ready", epoch, ready + 1

    def _advance(self) -> None:
        epoch = max(1, self._stable + self._chance.randrange(-1, 3))
        self._catalog.advance(epoch)
        self._stable = epoch
        due = [a for a in self._accounts if a.state == "ready" and a.epoch <= epoch]
        for account in sorted(due, key=lambda each: (each.epoch, each.order)):
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
        self._recoverer.recover()
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
        assert {each.key: each.revision for each in catalog.list()} == self.revisions
        assert catalog.stable_epoch == self._stable


@pytest.mark.parametrize(
    ("steps", "seed"),
    [
        (14, SEED),
        *(pytest.param(120, SEED + n, marks=pytest.mark.stress) for n in range(1, 4)),
    ],
)
def test_random_lives_of_operations_keep_every_promise(
    open_catalog: Callable[..., Catalog], steps: int, seed: int
) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    later = open_catalog(surroundings=Surroundings(clock=lambda: ahead))
    life = Life(open_catalog(), later, seed)
    for number in range(steps):
        life.step()
        if number % 10 == 9:
            life.check()
    life.check()
    assert_promises(later)
    assert len(life.taken) >= 5, life.taken


def test_ten_thousand_lookups_beside_operations_see_before_or_after_never_between(
    catalog: Catalog, open_catalog: Callable[..., Catalog]
) -> None:
    ids = [f"orders/{n}" for n in range(4)]
    catalog.publish([segment(key, "s0 INT") for key in ids])
    states = {(f"s{n} INT",) * len(ids) for n in range(3)}
    reader = open_catalog()
    done = threading.Event()
    failed: list[BaseException] = []

    def change() -> None:
        try:
            for number in (1, 2):
                operation = catalog.operation(f"change {number}", parts=2)
                for part in range(2):
                    mine = ids[part::2]
                    operation.stage(
                        part,
                        publish=[segment(key, f"s{number} INT") for key in mine],
                        on_existing="replace",
                    )
                operation.publish()
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=change)
    seen: set[tuple[str, ...]] = set()
    lookups = 0
    with reader.cache().start(every=0.05) as cache:
        writer.start()
        while not done.is_set() or lookups < 10_000:
            snapshot = cache.snapshot
            seen.add(tuple(snapshot.schema_of(key).ddl for key in ids))
            lookups += len(ids)
            if not done.is_set():
                done.wait(0.001)
        writer.join()
        cache.poll()
        seen.add(tuple(cache.schema_of(key).ddl for key in ids))
    assert failed == []
    assert seen <= states
    assert ("s2 INT",) * len(ids) in seen
    assert_promises(catalog)
