"""Work of several commits for one caller, such as a clean-up: what it has at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.delta.queue import CommitQueue
from catalog.delta.statements import Statement
from catalog.delta.writer import Executed, Writer
from catalog.environment import Deadline, Environment
from catalog.model import Caller
from catalog.progress import Progress, silent


@dataclass(frozen=True)
class Errand:
    """Each of its commits takes a turn in the queue, so that publishes go in between."""

    writer: Writer
    queue: CommitQueue
    environment: Environment
    caller: Caller
    deadline: Deadline
    progress: Progress = silent

    def commit(
        self, make: Callable[[str], Statement], verb: str, writer: Writer | None = None
    ) -> Executed:
        """Runs the statement made for a new commit id, on the catalog's table or another's."""
        commit_id = self.environment.new_id()
        return self.queue.alone(
            lambda: (writer or self.writer).commit(
                lambda _: make(commit_id), commit_id, verb, lambda: [self.caller], self.deadline
            ),
            self.deadline,
        )
