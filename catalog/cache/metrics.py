"""The figures of a cache, for people and for monitoring."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import Any

from catalog.exposition import Gauge


def _figure(text: str, default: float | None = 0) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True)
class CacheMetrics:
    """The figures of a cache at a moment; `gauges_of` describes each."""

    version: int | None = _figure("Table version that lookups answer from", None)
    published: int = _figure("Segments in the snapshot")
    without_schema: int = _figure("Segments in the snapshot whose schema is not known there")
    realtime: int = _figure("Open segments that streaming jobs announce")
    pending: int = _figure("Schemas that were found in the data and are not stored yet")
    backfilled: int = _figure("Schemas that are stored and not polled yet")
    oldest_pending_seconds: float = _figure("Age of the oldest schema that is not stored yet", 0.0)
    misses: int = _figure("Lookups of a segment whose schema was not known")
    resolved: int = _figure("Schemas that were found in the data on a miss")
    resolver_failures: int = _figure("Segments whose data has no readable schema")
    resolver_seconds: float = _figure("Seconds spent on reading schemas from the data", 0.0)
    resolver_refused: int = _figure("Found schemas that were not kept: too many were pending")
    quarantined: int = _figure("Segments that are not read again yet or could not be stored")
    stored: int = _figure("Schemas that were found and stored")
    store_failures: int = _figure("Commits of found schemas that failed and were tried again")
    announcers: int = _figure("Streaming jobs whose announcements are valid")
    announcements_broken: int = _figure("Announcements that could not be read")
    mismatches: int = _figure("Lookups whose first answer was not the expected schema")
    mismatch_retries: int = _figure("Repetitions of such lookups after a poll")
    mismatches_remained: int = _figure("Such lookups that polls did not settle")

    @property
    def backfill_per_second(self) -> float:
        """Schemas found per second of searching the data."""
        return self.resolved / self.resolver_seconds if self.resolver_seconds else 0.0


class CacheCounters:
    """Counts under the names of `CacheMetrics`, from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: dict[str, float] = {}

    def add(self, **more: float) -> None:
        """Adds to some counts."""
        with self._guard:
            for name, count in more.items():
                self._counts[name] = self._counts.get(name, 0) + count

    def read(self) -> dict[str, float]:
        """All counts at one moment."""
        with self._guard:
            return dict(self._counts)


def gauges_of(metrics: CacheMetrics) -> list[Gauge]:
    """The figures for monitoring; unknown ones are left out."""
    found = [
        Gauge(f"strata_cache_{each.name}", each.metadata["text"], getattr(metrics, each.name))
        for each in fields(metrics)
        if getattr(metrics, each.name) is not None
    ]
    rate = "Schemas found per second of reading the data"
    return [*found, Gauge("strata_cache_backfill_per_second", rate, metrics.backfill_per_second)]
