"""The `runs` table: what jobs did, one row for each run, beside the catalog and not part of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from catalog.model import Caller
from catalog.table.beside import Beside, ddl
from catalog.table.layout import ColumnSpec
from catalog.table.location import literal
from catalog.table.statements import Statement
from catalog.waiting import Deadline

RUNS = "runs"

COLUMNS = (
    ColumnSpec("run_id", "STRING", "Random id of the run; the metadata of its commits repeats it"),
    ColumnSpec(
        "job",
        "STRING",
        "What was run: publish, publish-files, backfill, cleanup, maintain, verify, poll or drop",
    ),
    ColumnSpec("arguments", "STRING", "The arguments as a JSON document"),
    ColumnSpec("actor", "STRING", "Who it was run for"),
    ColumnSpec("status", "STRING", "running, done, found, failed, gave_up or interrupted"),
    ColumnSpec("started_at", "TIMESTAMP", "When it began"),
    ColumnSpec("ended_at", "TIMESTAMP", "When it ended; null while it runs or if it was killed"),
    ColumnSpec("seen_at", "TIMESTAMP", "When it last said that it was alive"),
    ColumnSpec("version_before", "BIGINT", "Version of the catalog when it began"),
    ColumnSpec("version_after", "BIGINT", "Version of the catalog when it ended"),
    ColumnSpec("figures", "MAP<STRING, DOUBLE>", "What it counted, by name"),
    ColumnSpec("error_condition", "STRING", "Stable name of the error that ended it"),
    ColumnSpec("error_message", "STRING", "What the error said"),
)
DDL = ddl(COLUMNS)
# By name: a later release may have added columns to the table.
_NAMES = ", ".join(column.name for column in COLUMNS)
_VALUES = ", ".join(f"s.{column.name}" for column in COLUMNS)
_SET = ", ".join(f"{column.name} = s.{column.name}" for column in COLUMNS)


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    DONE = "done"
    FOUND = "found"
    FAILED = "failed"
    GAVE_UP = "gave_up"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Run:
    """One run of a job, as it is known now; recording it again replaces what was known."""

    run_id: str
    job: str
    arguments: Mapping[str, object]
    actor: str
    started_at: datetime
    seen_at: datetime
    status: Status = Status.RUNNING
    ended_at: datetime | None = None
    version_before: int | None = None
    version_after: int | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    error_condition: str | None = None
    error_message: str | None = None

    def row(self) -> tuple[object, ...]:
        """The values in the order of the table's columns."""
        arguments = json.dumps(self.arguments, ensure_ascii=False, sort_keys=True, default=str)
        values = {
            **vars(self),
            "arguments": arguments,
            "status": self.status.value,
            "figures": {name: float(value) for name, value in self.figures.items()},
        }
        return tuple(values[column.name] for column in COLUMNS)


class RunLog(Beside):
    """Records runs, and shows what was recorded. The table is made by the first record."""

    name = RUNS
    comment = "Runs of jobs on the Strata catalog, one row each"
    columns = COLUMNS
    properties: ClassVar = {
        "delta.checkpointInterval": "100",
        "delta.dataSkippingStatsColumns": "run_id,started_at",
    }

    def record(self, run: Run, deadline: Deadline) -> None:
        """Writes the run's row, in place of the one that it had."""
        self.make(deadline)
        source = self._session.createDataFrame([run.row()], DDL)
        # The same statement for the first record and for the last: whichever gets through
        # leaves the row as it is known then.
        self.writer.commit(
            lambda _: Statement(
                "record",
                lambda view: (
                    f"MERGE INTO {self.store.relation} AS t USING {view} AS s "
                    f"ON t.run_id = s.run_id AND t.run_id = {literal(run.run_id)} "
                    f"WHEN MATCHED THEN UPDATE SET {_SET} "
                    f"WHEN NOT MATCHED THEN INSERT ({_NAMES}) VALUES ({_VALUES})"
                ),
                source,
            ),
            self._surroundings.new_id(),
            "record",
            lambda: [Caller(run.actor, run_id=run.run_id)],
            deadline,
        )
