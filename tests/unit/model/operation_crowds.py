"""Scenarios for the model of operations in which many meet: ten thousand states and more."""

from .operation_rows import Rules
from .operation_scenarios import DROP_K, HOLD_K, LIVE_K, PUT_K, PUT_L, WITH_SCHEMA, whole
from .operations import (
    Scenario,
    aborter,
    advancer,
    cleaner,
    epoch_publisher,
    publisher,
    recoverer,
    sweeper,
    writer,
)

QUEUE = {"A": (PUT_K,), "B": (PUT_K, PUT_K)}
CROSSED = {"A": (PUT_K, PUT_L), "B": (PUT_L, PUT_K)}
APART = {"A": (PUT_K,), "B": (PUT_L,)}
CHAIN = {"A": (PUT_K,), "B": (DROP_K,), "C": (PUT_K,)}
CREATED_AND_DROPPED = {"A": (WITH_SCHEMA,), "B": (DROP_K,)}
HOLDERS = {"A": (HOLD_K, PUT_K), "B": (HOLD_K,), "C": (DROP_K,)}
ALL = Rules()

# Each with the number of states that it has at least.
MIDDLE: dict[str, tuple[Scenario, int]] = {
    "two parts queue behind a ready operation, a plain writer beside them": (
        Scenario(
            QUEUE,
            (
                *whole("A"),
                epoch_publisher("A", 1),
                *whole("B", 2),
                publisher("B", ALL),
                epoch_publisher("B", 2),
                advancer(1, 2),
                writer("put", "k"),
                sweeper(),
            ),
        ),
        40_000,
    ),
    "two operations take two keys in opposite order": (
        Scenario(
            CROSSED,
            (
                *whole("A", 2),
                *whole("B", 2),
                epoch_publisher("A", 1),
                publisher("B", ALL),
                advancer(1),
                recoverer("A"),
                sweeper(),
            ),
        ),
        20_000,
    ),
    "two advancers, three epochs": (
        Scenario(
            APART,
            (
                *whole("A"),
                *whole("B"),
                epoch_publisher("A", 1),
                epoch_publisher("B", 2),
                epoch_publisher("A", 3),
                advancer(1),
                advancer(2, 3),
                recoverer("A"),
            ),
        ),
        10_000,
    ),
    "created, dropped and created again, in one step or in two": (
        Scenario(
            CHAIN,
            (
                *whole("A"),
                *whole("B"),
                *whole("C"),
                epoch_publisher("A", 1),
                epoch_publisher("B", 1),
                epoch_publisher("C", 2),
                advancer(1),
                advancer(2),
            ),
        ),
        10_000,
    ),
    "a schema that comes and goes with operations and plain segments": (
        Scenario(
            CREATED_AND_DROPPED,
            (
                *whole("A"),
                *whole("B"),
                publisher("A", ALL),
                epoch_publisher("A", 1),
                epoch_publisher("B", 2),
                advancer(1, 2),
                writer("insert", "l", fingerprint="f"),
                writer("drop", "l"),
                sweeper(),
                cleaner("f", ALL),
            ),
        ),
        30_000,
    ),
}

LARGE = {
    "two operations of two parts on two keys, two advancers": Scenario(
        CROSSED,
        (
            *whole("A", 2),
            *whole("B", 2),
            epoch_publisher("A", 1),
            publisher("B", ALL),
            epoch_publisher("B", 2),
            advancer(1),
            advancer(2),
            recoverer("A"),
            writer("put", "k"),
            sweeper(),
        ),
    ),
    "three operations in a chain, with an abort and a plain writer": Scenario(
        CHAIN,
        (
            *whole("A"),
            *whole("B"),
            *whole("C"),
            epoch_publisher("A", 1),
            epoch_publisher("B", 1),
            epoch_publisher("C", 2),
            publisher("C", ALL),
            advancer(1),
            advancer(2),
            aborter("B"),
            writer("insert", "k"),
            sweeper(),
        ),
    ),
    "shared claims, one of which becomes exclusive": Scenario(
        HOLDERS,
        (
            *whole("A", 2),
            *whole("B"),
            *whole("C"),
            publisher("A", ALL),
            epoch_publisher("A", 1),
            epoch_publisher("B", 2),
            epoch_publisher("C", 2),
            advancer(1, 2),
            writer("put", "k"),
            sweeper(),
        ),
        LIVE_K,
    ),
    "two cleaners": Scenario(
        {"A": (WITH_SCHEMA,), "B": (WITH_SCHEMA,)},
        (
            *whole("A"),
            *whole("B"),
            publisher("A", ALL),
            epoch_publisher("A", 1),
            publisher("B", ALL),
            advancer(1),
            aborter("B"),
            writer("drop", "k"),
            writer("insert", "l", fingerprint="f"),
            writer("drop", "l"),
            sweeper(),
            cleaner("f", ALL),
            cleaner("f", ALL),
        ),
    ),
}
