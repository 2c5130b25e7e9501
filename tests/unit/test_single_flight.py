"""Concurrent callers share a load, its value and its failure."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from catalog.errors import LoadInterrupted
from catalog.single_flight import SingleFlight


def nothing(key: str) -> None:
    return None


def test_a_known_value_is_not_loaded_and_others_are_loaded_in_one_call() -> None:
    flight = SingleFlight[int]("interrupted")
    calls: list[Sequence[str]] = []

    def load(keys: Sequence[str]) -> dict[str, int | Exception]:
        calls.append(keys)
        return {key: len(key) for key in keys}

    shared = flight.run(["a", "bb", "ccc", "bb"], {"a": 7}.get, load)
    assert shared.result() == {"a": 7, "bb": 2, "ccc": 3}
    assert calls == [("bb", "ccc")]
    assert flight.run(["a"], {"a": 7}.get, load).result() == {"a": 7}
    assert len(calls) == 1


def test_one_key_may_fail_alone() -> None:
    flight = SingleFlight[int]("interrupted")
    shared = flight.run(["a", "b"], nothing, lambda keys: {"a": 1, "b": ValueError("no")})
    assert shared.mine["a"].result() == 1
    with pytest.raises(ValueError, match="no"):
        shared.result()
    assert "b" not in flight


@pytest.mark.parametrize(
    ("raised", "received"), [(OSError, OSError), (KeyboardInterrupt, LoadInterrupted)]
)
def test_a_load_that_raises_leaves_nobody_waiting(
    raised: type[BaseException], received: type[Exception]
) -> None:
    flight = SingleFlight[int]("interrupted; call again")
    began, go = threading.Event(), threading.Event()

    def load(keys: Sequence[str]) -> dict[str, int | Exception]:
        began.set()
        assert go.wait(10)
        raise raised("stop")

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(flight.run, ["a"], nothing, load)
        assert began.wait(10)
        waiting = flight.run(["a"], nothing, load)
        go.set()
        with pytest.raises(raised):
            loading.result()
    with pytest.raises(received):
        waiting.result()
    assert "a" not in flight


def test_a_value_that_becomes_known_ends_a_load() -> None:
    flight = SingleFlight[int]("interrupted")

    def load(keys: Sequence[str]) -> dict[str, int | Exception]:
        flight.settle("a", 1)
        return {"a": 2}

    assert flight.run(["a"], nothing, load).result() == {"a": 1}
    flight.settle("a", 3)  # nobody loads it
