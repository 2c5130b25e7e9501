"""What every capability is given: an open catalog (`Context`) and one call of a user (`Call`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from catalog.delta.layout import Layout
from catalog.delta.location import Location
from catalog.delta.queue import CommitQueue
from catalog.delta.statements import Statement
from catalog.delta.store import AsOf, Store
from catalog.delta.tables import Opened
from catalog.delta.writer import Executed, Writer
from catalog.environment import Deadline, Environment
from catalog.errors import ReadOnly, UpgradeNeeded
from catalog.model import Caller, check_actor
from catalog.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class CallOptions(TypedDict, total=False):
    """Keyword arguments that every verb takes.

    Attributes:
        actor: who the change is recorded for; by default the actor of the open catalog.
        reason: why; actor and reason are kept in the commit's metadata.
        deadline: seconds that each commit may wait for others before the call gives up; by
            default the setting `deadline`.
        progress: called with a `Step` as long work goes on.
    """

    actor: str | None
    reason: str
    deadline: float | None
    progress: Progress


@dataclass(frozen=True)
class Call:
    """One call of a user: for whom changes are recorded, how long it waits, who sees progress."""

    caller: Caller
    deadline: Deadline
    progress: Progress = silent

    def anew(self) -> Call:
        """The same call with its whole deadline, for the next of several commits."""
        return replace(self, deadline=Deadline(self.deadline.seconds))


@dataclass
class Context:
    """An open catalog as its capabilities see it."""

    spark: SparkSession
    store: Store
    opened: Opened
    layout: Layout
    writer: Writer
    queue: CommitQueue
    environment: Environment
    setting: Callable[[str], Any]
    actor: str
    run_id: str
    session_name: str
    read_only: bool

    @property
    def location(self) -> Location:
        return self.opened.location

    @property
    def buckets(self) -> int:
        """The number of segment buckets; raises if another table with another number is there."""
        return self.store.check_buckets(self.opened.segment_buckets)

    def chosen(self, name: str, given: Any) -> Any:
        """The argument of a call, or the setting where the call gave none."""
        return self.setting(name) if given is None else given

    def call(self, **options: Unpack[CallOptions]) -> Call:
        """The call that a user makes with these options."""
        actor = options.get("actor")
        caller = Caller(
            check_actor("actor", self.actor if actor is None else actor),
            check_actor("reason", options.get("reason", "")),
            self.run_id,
            self.session_name,
        )
        deadline = Deadline(self.chosen("deadline", options.get("deadline")))
        return Call(caller, deadline, options.get("progress", silent))

    def writing(self, **options: Unpack[CallOptions]) -> Call:
        """The same, for a verb that writes."""
        self.check_writable()
        return self.call(**options)

    def check_writable(self) -> None:
        """Raises if the catalog was opened for reading, or its table has an older layout."""
        if self.read_only:
            raise ReadOnly("The catalog was opened with read_only=True; open it for writing.")
        if self.opened.layout_found < self.layout.number:
            raise UpgradeNeeded(
                f"The catalog at {self.location} has layout {self.opened.layout_found} and this "
                f"release writes layout {self.layout.number}; run `strata upgrade` or call "
                "catalog.upgrade() first.",
                location=str(self.location),
            )

    def alone(self, call: Call, work: Callable[[], T]) -> T:
        """Runs work in the commit thread, between the commits of other calls."""
        return self.queue.alone(work, call.deadline)

    def commit(
        self,
        call: Call,
        make: Callable[[str], Statement],
        verb: str,
        writer: Writer | None = None,
    ) -> Executed:
        """Commits the statement made for a new commit id, to the catalog's table or another."""
        commit_id = self.environment.new_id()
        return self.alone(
            call,
            lambda: (writer or self.writer).commit(
                lambda _: make(commit_id), commit_id, verb, lambda: [call.caller], call.deadline
            ),
        )

    def version(self, as_of: AsOf) -> int:
        """The version that a user means by a number, a time, an `Epoch`, or nothing: the newest."""
        return self.store.version_as_of(as_of)
