"""The promises of the model of operations tell good tables and commits from broken ones."""

import pytest

from .operation_plans import Task
from .operation_promises import broken_commit, broken_state
from .operation_rows import (
    ABSENT,
    DROP,
    EPOCH,
    HOLD,
    OPERATION,
    PART,
    PUBLISHED,
    PUT,
    READY,
    RETIRED,
    SCHEMA,
    STAGED,
    Change,
    Epoch,
    Operation,
    Part,
    Rules,
    Setting,
    Staged,
    Table,
    live,
)

A_OPEN, B_OPEN = Operation(OPERATION, "A"), Operation(OPERATION, "B")
A_READY = Operation(OPERATION, "A", READY, 1, 1)
A_PUBLISHED = Operation(OPERATION, "A", PUBLISHED, 1, 1)
A_PART = Part(PART, "A/0", "A", 0, 0)
A_PUTS_K = Staged(STAGED, "k", "A", 0, PUT, "", ABSENT, ABSENT)
B_HOLDS_K = Staged(STAGED, "k", "B", 0, HOLD, "", ABSENT, ABSENT)
AT_ONE = Epoch(EPOCH, "stable", 1, 1)
LIVE_F, RETIRED_F = (SCHEMA, "f"), (RETIRED, "f")
SETTING = Setting(Rules(), (("A", ((Change("k"),),)), ("B", ((Change("k", HOLD),),))))


@pytest.mark.parametrize(
    ("table", "promise"),
    [
        ((A_OPEN, A_PART, A_PUTS_K), ""),
        ((live("k"), live("k", "A")), "I2"),
        ((LIVE_F, LIVE_F), "I2"),
        ((A_OPEN, A_PART, A_PART, A_PUTS_K), "I2"),
        ((A_OPEN, A_PART, A_PUTS_K, A_PUTS_K), "I2"),
        ((live("k", fingerprint="f"), RETIRED_F), ""),
        ((live("k", fingerprint="f"),), "I3"),
        ((A_OPEN, A_PART, A_PUTS_K._replace(fingerprint="f")), "I3"),
        ((A_READY, A_PART, A_PUTS_K, AT_ONE), "I8"),
        ((A_OPEN, B_OPEN, A_PUTS_K, B_HOLDS_K), "two holders"),
        ((A_OPEN, A_PART), "lost part"),
        ((A_OPEN, A_PART, A_PUTS_K._replace(base="start")), "base gone"),
        ((A_OPEN, A_PUTS_K, A_PUTS_K._replace(part=1, action=DROP)), "contradiction"),
    ],
)
def test_a_broken_promise_is_seen_in_the_table(table: Table, promise: str) -> None:
    assert broken_state(table, SETTING) == promise


@pytest.mark.parametrize(
    ("before", "after", "verb", "promise"),
    [
        ((A_READY, A_PUTS_K), (A_PUBLISHED, A_PUTS_K, AT_ONE, live("k", "A")), "advance", ""),
        ((A_READY, A_PUTS_K), (A_PUBLISHED, A_PUTS_K, AT_ONE), "advance", "I4"),
        ((A_READY, A_PUTS_K), (A_PUBLISHED, A_PUTS_K, live("k", "A")), "advance", "I8"),
        ((AT_ONE,), (), "advance", "I8"),
        ((A_READY, live("k")), (A_PUBLISHED, AT_ONE, live("k", "A", 2)), "advance", "base gone"),
        ((A_READY,), (A_OPEN,), "abort", "decided twice"),
        ((A_PUBLISHED,), (A_PUBLISHED, A_PART), "stage", "late part"),
        ((live("k"),), (), "sweep", "lost update"),
        ((live("k"),), (live("k", "put k 0", 1),), "put", "lost update"),
        ((live("k"),), (live("k", "put k 0", 2),), "put", ""),
        ((A_OPEN._replace(renewed=True),), (A_OPEN,), "recover", "renewed lease"),
    ],
)
def test_a_commit_that_breaks_a_promise_is_seen(
    before: Table, after: Table, verb: str, promise: str
) -> None:
    task = Task(verb, "A" if verb in ("stage", "abort", "recover") else "k")

    assert broken_commit(before, after, task, SETTING) == promise
