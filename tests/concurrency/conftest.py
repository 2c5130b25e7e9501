"""What tests of races share: catalogs that really meet, gates, processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog import Catalog, Settings
from catalog.environment import Environment
from tests.concurrency.gates import Gate
from tests.concurrency.processes import Process


@pytest.fixture
def free(open_catalog: Callable[..., Catalog]) -> Callable[..., Catalog]:
    """Opens catalogs without the file lock."""

    def open_one(environment: Environment | None = None) -> Catalog:
        return open_catalog(settings=Settings(file_lock=False), environment=environment)

    return open_one


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts modules of this package in processes of their own, which end with the test."""
    started: list[Process] = []

    def one(module: str, *arguments: object) -> Process:
        started.append(Process(f"tests.concurrency.{module}", *arguments))
        return started[-1]

    yield one
    for process in started:
        process.end()
