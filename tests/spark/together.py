"""Callers that wait at the same time, so that they share a commit."""

from __future__ import annotations

import threading
import time
from typing import Any

from catalog import Catalog, CatalogError, PublishResult, Segment
from catalog.environment import Deadline


class Together:
    """Holds the commit thread until all callers are waiting, so that they form one group."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def publish(self, batches: list[list[Segment]]) -> list[Any]:
        outcomes: dict[int, PublishResult | CatalogError] = {}
        running, release = threading.Event(), threading.Event()

        def hold() -> None:
            running.set()
            release.wait(60)

        deadline = Deadline(60)
        threads = [
            threading.Thread(target=self._catalog._context.queue.alone, args=(hold, deadline))
        ]
        threads[0].start()
        running.wait(60)
        for number, batch in enumerate(batches):
            thread = threading.Thread(target=self._one, args=(number, batch, outcomes))
            thread.start()
            threads.append(thread)
            while len(self._catalog._context.queue._waiting) <= number and thread.is_alive():
                time.sleep(0.001)
        release.set()
        for thread in threads:
            thread.join()
        return [outcomes[number] for number in range(len(batches))]

    def _one(self, number: int, batch: list[Segment], outcomes: dict[int, Any]) -> None:
        try:
            outcomes[number] = self._catalog.publish(batch, actor=f"caller {number}")
        except CatalogError as error:
            outcomes[number] = error
