"""The registry: one load for all, failures for all, nothing guessed, forgetting."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from catalog import Schema
from catalog.errors import CorruptSchema, LoadInterrupted, UnknownSchema
from catalog.read.registry import Registry

A, B, C = (Schema.of(f"{name} INT") for name in "abc")
PAYLOADS = {each.fingerprint: each.payload for each in (A, B, C)}


class Table:
    """A store of payloads that counts loads, and can be stopped and broken."""

    def __init__(self, payloads: Mapping[str, str] = PAYLOADS) -> None:
        self.payloads = payloads
        self.loads: list[tuple[str, ...]] = []
        self.broken: BaseException | None = None
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def load(self, fingerprints: Sequence[str]) -> Mapping[str, str]:
        self.loads.append(tuple(fingerprints))
        self.entered.release()
        assert self.gate.wait(10)
        if self.broken is not None:
            raise self.broken
        return {name: self.payloads[name] for name in fingerprints if name in self.payloads}


class Others:
    """Somebody else who has schemas in memory, and counts who asks."""

    def __init__(self, *schemas: Schema, corrupt: str = "") -> None:
        self.schemas = {schema.fingerprint: schema for schema in schemas}
        self.corrupt = corrupt
        self.asked = 0

    def holds(self, fingerprint: str) -> bool:
        return fingerprint in self.schemas or fingerprint == self.corrupt

    def held(self, fingerprint: str) -> Schema | None:
        self.asked += 1
        if fingerprint == self.corrupt:
            raise CorruptSchema("broken", fingerprint=fingerprint)
        return self.schemas.get(fingerprint)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not come about")


def test_a_schema_is_loaded_once_and_then_in_memory() -> None:
    table = Table()
    registry = Registry(table.load)
    assert registry.find(A.fingerprint) is None
    assert registry.get(A.fingerprint) == registry.get(A.fingerprint) == A
    assert registry.find(A.fingerprint) == A
    assert table.loads == [(A.fingerprint,)]


def test_many_are_loaded_at_once_and_given_in_the_order_asked() -> None:
    table = Table()
    registry = Registry(table.load)
    registry.get(B.fingerprint)
    wanted = [C.fingerprint, B.fingerprint, A.fingerprint, C.fingerprint]
    assert list(registry.many(wanted).values()) == [C, B, A]
    assert table.loads == [(B.fingerprint,), (C.fingerprint, A.fingerprint)]


def _waiting_for_others() -> int:
    """How many threads wait for the result of a load that is not theirs."""
    waiting = 0
    # A garbage collection within the call may deadlock CPython 3.11 (gh-106883).
    gc.disable()
    frames = sys._current_frames()
    gc.enable()
    for frame in frames.values():
        calls = {each.f_code.co_qualname for each, _ in traceback.walk_stack(frame)}
        waiting += {"Future.result", "Registry.many"} <= calls
    return waiting


def _eight(table: Table) -> tuple[Registry, list[Future[Schema]]]:
    """A registry, and eight callers of one schema who wait for one load."""
    others = Others()
    registry = Registry(table.load, others)
    table.gate.clear()
    pool = ThreadPoolExecutor(8)
    calls = [pool.submit(registry.get, A.fingerprint) for _ in range(8)]
    assert table.entered.acquire(timeout=10)
    until(lambda: _waiting_for_others() == 7)
    assert registry.find(A.fingerprint) is None  # it does not wait
    pool.shutdown(wait=False)
    return registry, calls


def test_callers_at_one_time_share_a_load() -> None:
    table = Table()
    _, calls = _eight(table)
    table.gate.set()
    assert {call.result(10) for call in calls} == {A}
    assert len(table.loads) == 1


def test_a_failed_load_is_the_failure_of_all_who_waited_and_the_next_tries_again() -> None:
    table = Table()
    table.broken = OSError("no storage")
    registry, calls = _eight(table)
    table.gate.set()
    for call in calls:
        with pytest.raises(OSError, match="no storage"):
            call.result(10)
    assert len(table.loads) == 1
    table.broken = None
    assert registry.get(A.fingerprint) == A


def test_an_interrupt_is_for_the_caller_who_loads_and_others_may_try_again() -> None:
    table = Table()
    table.broken = KeyboardInterrupt()
    registry, calls = _eight(table)
    table.gate.set()
    told = [call.exception(10) for call in calls]
    assert sorted(type(error).__name__ for error in told) == [
        "KeyboardInterrupt",
        *["LoadInterrupted"] * 7,
    ]
    assert all(error.retryable for error in told if isinstance(error, LoadInterrupted))
    table.broken = None
    assert registry.get(A.fingerprint) == A


def test_what_comes_another_way_ends_the_wait_and_a_late_answer_changes_nothing() -> None:
    table = Table({A.fingerprint: "broken"})
    registry, calls = _eight(table)
    registry.learn(A)
    done = [call for call in calls if _ready(call)]
    assert len(done) == 7
    table.gate.set()
    assert {call.result(10) for call in calls} == {A}
    assert registry.get(A.fingerprint) == A


def _ready(call: Future[Schema]) -> bool:
    try:
        return call.result(0.5) == A
    except TimeoutError:
        return False


def test_what_is_not_there_is_named_and_asked_for_again() -> None:
    table = Table({})
    registry = Registry(table.load)
    with pytest.raises(UnknownSchema, match=A.fingerprint):
        registry.get(A.fingerprint)
    table.payloads = PAYLOADS
    assert registry.get(A.fingerprint) == A


@pytest.mark.parametrize("payload", [B.payload, "", "{}", '{"format": 7}', A.payload[:-1]])
def test_what_is_stored_under_another_fingerprint_is_never_given_out(payload: str) -> None:
    registry = Registry(Table({A.fingerprint: payload, B.fingerprint: B.payload}).load)
    with pytest.raises(CorruptSchema, match=A.fingerprint):
        registry.many([B.fingerprint, A.fingerprint])
    assert registry.find(A.fingerprint) is None
    assert registry.find(B.fingerprint) == B


def test_a_schema_that_nobody_asks_for_is_forgotten_unless_it_is_held() -> None:
    table, now = Table(), 0.0
    others = Others()
    registry = Registry(table.load, others, keep=60, clock=lambda: now)
    registry.many([A.fingerprint, B.fingerprint, C.fingerprint])
    others.schemas[B.fingerprint] = B
    now = 50.0
    registry.get(C.fingerprint)
    now = 81.0
    registry.get(C.fingerprint)
    assert len(registry) == 2
    assert registry.find(A.fingerprint) is None
    assert len(table.loads) == 1
    registry.get(A.fingerprint)
    assert len(table.loads) == 2


def test_what_somebody_holds_is_not_loaded() -> None:
    table = Table({})
    assert Registry(table.load, Others(A)).get(A.fingerprint) is A
    assert table.loads == []


def test_what_is_corrupt_elsewhere_holds_up_nobody() -> None:
    table = Table()
    registry = Registry(table.load, Others(corrupt=B.fingerprint), keep=0)
    with pytest.raises(CorruptSchema):
        registry.many([A.fingerprint, B.fingerprint])
    assert registry.get(A.fingerprint) == A
    assert registry.many([C.fingerprint])[C.fingerprint] == C


def test_an_interrupt_while_definitions_are_read_leaves_nobody_waiting() -> None:
    class Interrupting(dict[str, str]):
        def __contains__(self, key: object) -> bool:
            if key == B.fingerprint:
                raise KeyboardInterrupt
            return super().__contains__(key)

    registry = Registry(lambda names: Interrupting(PAYLOADS))
    with pytest.raises(KeyboardInterrupt):
        registry.many([A.fingerprint, B.fingerprint, C.fingerprint])
    assert registry.find(A.fingerprint) == A
    for schema in (B, C):
        assert registry.many([schema.fingerprint], Table().load)[schema.fingerprint] == schema


def test_who_looks_at_another_version_does_not_take_no_for_an_answer() -> None:
    nothing, earlier = Table({}), Table()
    registry, calls = _eight(nothing)
    late = ThreadPoolExecutor(1).submit(registry.many, [A.fingerprint], earlier.load)
    until(lambda: _waiting_for_others() == 8)
    nothing.gate.set()
    assert late.result(10) == {A.fingerprint: A}
    # Of the others the first was told that there is none; who asked again may have met this load.
    answers = [call.exception(10) for call in calls]
    assert any(isinstance(answer, UnknownSchema) for answer in answers)
    assert all(answer is None or isinstance(answer, UnknownSchema) for answer in answers)
