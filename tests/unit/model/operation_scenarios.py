"""Small scenarios for the model of operations, each about one thing that could go wrong."""

from collections.abc import Callable

from .operation_machine import Process
from .operation_rows import DROP, HOLD, RETIRED, SCHEMA, Change, Rules, live
from .operations import (
    Scenario,
    aborter,
    advancer,
    cleaner,
    epoch_publisher,
    publisher,
    recoverer,
    renewer,
    stager,
    sweeper,
    writer,
)

Cast = Callable[[Rules], Scenario]

PUT_K, DROP_K, HOLD_K = (Change("k"),), (Change("k", DROP),), (Change("k", HOLD),)
PUT_L, WITH_SCHEMA = (Change("l"),), (Change("k", fingerprint="f"),)
LIVE_K = (live("k"),)
LIVE_F, RETIRED_F = (SCHEMA, "f"), (RETIRED, "f")


def whole(name: str, number: int = 1) -> tuple[Process, ...]:
    """Stages all parts of an operation, each in a process of its own."""
    return tuple(stager(name, part) for part in range(number))


# --- small scenarios: a few hundred to some thousand states --------------------------------------


def one_part_twice(rules: Rules) -> Scenario:
    return Scenario({"A": ((),)}, (stager("A", 0), stager("A", 0)))


def parts_that_contradict(rules: Rules) -> Scenario:
    return Scenario({"A": (PUT_K, DROP_K)}, whole("A", 2))


def a_lease(rules: Rules) -> Scenario:
    return Scenario({"A": (PUT_K,)}, (renewer("A"), recoverer("A")))


def an_insert(rules: Rules) -> Scenario:
    owner = (*whole("A"), publisher("A", rules), aborter("A"))
    return Scenario({"A": (PUT_K,)}, (*owner, writer("insert", "k"), sweeper()))


def two_puts_and_a_drop(rules: Rules) -> Scenario:
    writers = (writer("put", "k", 1), writer("put", "k", 2), writer("drop", "k"))
    return Scenario({"A": (PUT_K,)}, (*whole("A"), publisher("A", rules), *writers), LIVE_K)


def two_operations(rules: Rules) -> Scenario:
    owners = (*whole("A"), *whole("B"), publisher("A", rules), publisher("B", rules))
    return Scenario({"A": (PUT_K,), "B": (PUT_K,)}, owners)


def two_parts(rules: Rules) -> Scenario:
    owner = (*whole("A", 2), publisher("A", rules), aborter("A"), recoverer("A"))
    return Scenario({"A": (PUT_K, PUT_L)}, (*owner, sweeper()))


def two_parts_of_one_key(rules: Rules) -> Scenario:
    owner = (*whole("A", 2), publisher("A", rules), aborter("A"))
    return Scenario({"A": (PUT_K, PUT_K)}, (*owner, writer("put", "k"), sweeper()))


def an_epoch(rules: Rules) -> Scenario:
    owner = (*whole("A"), epoch_publisher("A", 1), aborter("A"))
    return Scenario({"A": (PUT_K,)}, (*owner, advancer(1), advancer(2)))


def an_epoch_and_an_insert(rules: Rules) -> Scenario:
    owner = (*whole("A"), epoch_publisher("A", 1))
    others = (advancer(1), writer("insert", "k"), writer("drop", "k"), sweeper())
    return Scenario({"A": (PUT_K,)}, (*owner, *others))


def two_of_one_epoch(rules: Rules) -> Scenario:
    owners = (*whole("A"), *whole("B"), epoch_publisher("A", 1), epoch_publisher("B", 1))
    return Scenario({"A": (PUT_K,), "B": (PUT_K,)}, (*owners, aborter("A"), advancer(1)))


def a_put_behind_a_drop(rules: Rules) -> Scenario:
    first = (*whole("A"), epoch_publisher("A", 1))
    second = (*whole("B"), publisher("B", rules), epoch_publisher("B", 1))
    others = (advancer(1), writer("insert", "k"), sweeper())
    return Scenario({"A": (DROP_K,), "B": (PUT_K,)}, (*first, *second, *others), LIVE_K)


def an_overtaker(rules: Rules) -> Scenario:
    second = (*whole("B"), epoch_publisher("B", 1))
    processes = (*whole("A"), epoch_publisher("A", 2), *second, advancer(1, 2))
    return Scenario({"A": (PUT_K,), "B": (PUT_K,)}, processes)


def two_parts_behind_a_put(rules: Rules) -> Scenario:
    first = (*whole("A"), epoch_publisher("A", 1))
    return Scenario(
        {"A": (PUT_K,), "B": (PUT_K, PUT_K)},
        (*first, *whole("B", 2), publisher("B", rules), advancer(1)),
    )


def a_holder(rules: Rules) -> Scenario:
    first = (*whole("A"), epoch_publisher("A", 2))
    second = (*whole("B"), publisher("B", rules), epoch_publisher("B", 1))
    others = (advancer(1, 2), writer("put", "k"))
    return Scenario({"A": (HOLD_K,), "B": (PUT_K,)}, (*first, *second, *others))


def a_holder_that_puts(rules: Rules) -> Scenario:
    first = (*whole("A", 2), publisher("A", rules), epoch_publisher("A", 1))
    second = (*whole("B"), epoch_publisher("B", 2))
    return Scenario({"A": (HOLD_K, PUT_K), "B": (HOLD_K,)}, (*first, *second, advancer(1, 2)))


def a_schema(rules: Rules) -> Scenario:
    owner = (*whole("A"), publisher("A", rules), aborter("A"))
    others = (writer("drop", "k"), sweeper(), cleaner("f", rules), cleaner("f", rules))
    return Scenario({"A": (WITH_SCHEMA,)}, (*owner, *others), (LIVE_F,))


def a_schema_and_its_copy(rules: Rules) -> Scenario:
    cleaners = (cleaner("f", rules), cleaner("f", rules))
    return Scenario({"A": (WITH_SCHEMA,)}, (*whole("A"), *cleaners), (RETIRED_F, LIVE_F))


SMALL: tuple[Cast, ...] = (
    one_part_twice,
    parts_that_contradict,
    a_lease,
    an_insert,
    two_puts_and_a_drop,
    two_operations,
    two_parts,
    two_parts_of_one_key,
    an_epoch,
    an_epoch_and_an_insert,
    two_of_one_epoch,
    a_put_behind_a_drop,
    an_overtaker,
    two_parts_behind_a_put,
    a_holder,
    a_holder_that_puts,
    a_schema,
    a_schema_and_its_copy,
)
