"""Keeps the record of one run up to date: running, alive, ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from catalog.cli.exits import Exit, condition_of
from catalog.delta.runs import Run

if TYPE_CHECKING:
    from catalog.catalog import Catalog

log = logging.getLogger(__name__)

# A job that follows the catalog for days says this often that it is alive; each time is a commit.
ALIVE_EVERY = timedelta(minutes=10)
_LONGEST_MESSAGE = 4000


class Recorder:
    """Writes the run's row when it begins, now and then while it goes on, and when it ends."""

    def __init__(self, catalog: Catalog, run: Run) -> None:
        self._catalog = catalog
        self._run = run

    def begin(self) -> None:
        """The run is under way."""
        self._run = replace(self._run, version_before=self._catalog.version)
        self._catalog.audit.record(self._run)

    def alive(self, figures: Mapping[str, float]) -> None:
        """The run goes on; recorded at most every ten minutes."""
        now = datetime.now(UTC)
        if now - self._run.seen_at >= ALIVE_EVERY:
            self._run = replace(self._run, seen_at=now, figures=dict(figures))
            self._record()

    def end(self, code: Exit, figures: Mapping[str, float], error: BaseException | None) -> None:
        """The run is over."""
        now = datetime.now(UTC)
        self._run = replace(
            self._run,
            status=code.status,
            seen_at=now,
            ended_at=now,
            figures=dict(figures),
            error_condition=None if error is None else condition_of(error),
            error_message=None if error is None else str(error)[:_LONGEST_MESSAGE],
        )
        self._record()

    def _record(self) -> None:
        """What the run did is done: a record that fails is logged, not raised."""
        try:
            self._run = replace(self._run, version_after=self._catalog.version)
            self._catalog.audit.record(self._run)
        except Exception as failure:
            log.warning("Run %s could not be recorded: %s", self._run.run_id, failure)
