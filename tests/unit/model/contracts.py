"""A model of one datasource whose contract is set and removed while others write into it.

As in `protocol`, a statement begins on a snapshot, where it is checked, and commits later unless
Delta sees that a partition which it tracks was touched in between. The row of the datasource holds
the terms. Whoever publishes carries the terms that it was checked by; whoever stages expects the
row that it has read, and holds the datasource until it is decided.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .search import Search, visit

DATASOURCE, SEGMENT, STAGED = "datasource", "segment", "staged"
# What a row says: that there is none, that it has no contract, or one that some segments break.
ABSENT, NONE, STRICT = "absent", "none", "strict"


class Rules(NamedTuple):
    """The protocol as designed; a field that is false breaks that part of it."""

    delta_refuses_conflicts: bool = True
    publish_carries_terms: bool = True
    publish_compares_null: bool = True
    publish_names_datasource: bool = True
    publish_checks_what_it_learns: bool = True
    backfill_carries_terms: bool = True
    stage_expects_row: bool = True
    stage_names_datasource: bool = True
    set_minds_holds: bool = True
    set_names_staged: bool = True


class Row(NamedTuple):
    """The datasource's row; the token stands for its commit id."""

    terms: str = ABSENT
    token: int = 0


class Table(NamedTuple):
    """The row, who holds the datasource, the segments, and whether one came that must not."""

    row: Row = Row()
    holds: frozenset[str] = frozenset()
    segments: frozenset[str] = frozenset()
    broken: bool = False


class Statement(NamedTuple):
    """What a running statement tracks and is about to write."""

    tracks: frozenset[str] = frozenset()
    row: Row | None = None
    hold: str = ""
    release: str = ""
    segment: str = ""
    conflict: bool = False


IDLE = Statement()


class Process(NamedTuple):
    """A writer: what it is about to do, what it has read, and its statement if one has begun.

    `known` is the row that it last read, or what it remembers from before.
    """

    verb: str
    name: str
    fits: bool = True
    known: Row = Row(NONE)
    running: Statement = IDLE
    left: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        return self.verb == "end"

    def then(self, verb: str, **changes: object) -> "Process":
        return self._replace(verb=verb, running=IDLE, **changes)  # type: ignore[arg-type]


class State(NamedTuple):
    """The table and the processes in sorted order."""

    table: Table
    processes: tuple[Process, ...]


def publisher(name: str, fits: bool, remembers: str = NONE) -> Process:
    """Publishes a segment, planned with the terms that it remembers."""
    return Process("publish", name, fits, Row(remembers))


def backfiller(name: str, fits: bool) -> Process:
    """Gives a segment its schema."""
    return Process("backfill", name, fits)


def operation(name: str, fits: bool) -> Process:
    """Stages a segment and publishes it, or aborts."""
    return Process("plan to stage", name, fits)


def setter(*terms: str) -> Process:
    """Sets these terms, one after the other."""
    return Process("plan to set", terms[0], left=terms[1:])


def search(tables: Iterable[Table], processes: Sequence[Process], rules: Rules) -> Search:
    """Visit every state that can be reached from these tables, up to the first broken promise."""
    return visit(
        [State(table, tuple(sorted(processes))) for table in tables],
        lambda state: _successors(state, rules),
        lambda state: "contract" if state.table.broken else "",
        lambda state: all(process.done for process in state.processes),
    )


def _successors(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    for i, process in enumerate(state.processes):
        others = state.processes[:i] + state.processes[i + 1 :]
        if process.running.conflict:
            # Planned again: what a plan reads it reads anew.
            again = process.then(
                {"stage": "plan to stage", "set": "plan to set"}.get(process.verb, process.verb)
            )
            yield f"{process.verb} is refused", _with(state.table, others, again)
        elif process.running != IDLE:
            yield f"{process.verb} {process.name} commits", _commit(state, process, others, rules)
        elif not process.done:
            for action, moved in _moves(process, state.table, rules):
                yield action, _with(state.table, others, moved)


def _with(table: Table, others: tuple[Process, ...], process: Process) -> State:
    return State(table, tuple(sorted((*others, process))))


def _terms(row: Row) -> str:
    return NONE if row.terms == ABSENT else row.terms


def _moves(process: Process, table: Table, rules: Rules) -> Iterator[tuple[str, Process]]:
    """What a process can do that leaves the table as it is."""
    name, row = process.name, table.row
    match process.verb:
        case "publish" | "backfill":
            yield _begin_publish(process, table, rules)
        case "learn":
            # A plain read, which Delta does not check.
            if _terms(row) == STRICT and not process.fits and rules.publish_checks_what_it_learns:
                yield f"{name} is told", process.then("end")
            else:
                verb = process.left[0]
                yield f"{name} learns", process.then(verb, known=Row(_terms(row)), left=())
        case "plan to stage":
            if _terms(row) == STRICT and not process.fits:
                yield f"{name} is told", process.then("end")
            else:
                yield f"{name} plans", process.then("stage", known=row)
        case "stage":
            if rules.stage_expects_row and row != process.known:
                yield "stage plans again", process.then("plan to stage")
            else:
                tracks = {STAGED} | ({DATASOURCE} if rules.stage_names_datasource else set())
                begun = Statement(frozenset(tracks), hold=name)
                yield "stage begins", process._replace(running=begun)
        case "decide":
            # By rule Z it reads neither the row nor the bucket of its segments.
            yield "publishes", process._replace(running=Statement(release=name, segment=name))
            yield "aborts", process._replace(running=Statement(release=name))
        case "plan to set":
            if table.holds and rules.set_minds_holds:
                yield "is refused by a claim", _next_terms(process)
            elif row.terms == name:
                yield "is set already", _next_terms(process)
            else:
                yield "plans to set", process.then("set", known=row)
        case "set":
            claimed = table.holds and rules.set_minds_holds
            if claimed or row != process.known:
                yield "plans again", process.then("plan to set")
            else:
                tracks = {DATASOURCE} | ({STAGED} if rules.set_names_staged else set())
                begun = Statement(frozenset(tracks), row=Row(name, process.known.token + 1))
                yield f"set {name} begins", process._replace(running=begun)


def _begin_publish(process: Process, table: Table, rules: Rules) -> tuple[str, Process]:
    carries = (
        rules.publish_carries_terms if process.verb == "publish" else rules.backfill_carries_terms
    )
    there, carried = _terms(table.row), process.known.terms
    # In SQL a null differs from nothing unless it is told to.
    compared = rules.publish_compares_null or NONE not in (there, carried)
    if carries and compared and there != carried:
        return f"{process.verb} refuses itself", process.then("learn", left=(process.verb,))
    tracks = {SEGMENT} | ({DATASOURCE} if rules.publish_names_datasource else set())
    new = Row(NONE, table.row.token + 1) if table.row.terms == ABSENT else None
    begun = Statement(
        frozenset(tracks),
        row=new if process.verb == "publish" else None,
        segment=process.name,
    )
    return f"{process.verb} begins", process._replace(running=begun)


def _next_terms(process: Process) -> Process:
    if not process.left:
        return process.then("end")
    return process.then("plan to set", name=process.left[0], left=process.left[1:])


def _commit(state: State, process: Process, others: tuple[Process, ...], rules: Rules) -> State:
    table, statement = state.table, process.running
    forbidden = bool(statement.segment) and not process.fits and table.row.terms == STRICT
    after = Table(
        statement.row or table.row,
        (table.holds | {statement.hold}) - {statement.release, ""},
        (table.segments | {statement.segment}) - {""},
        forbidden,
    )
    touched = {
        *([DATASOURCE] if statement.row else []),
        *([STAGED] if statement.hold else []),
        *([SEGMENT] if statement.segment else []),
    }
    met = [
        other._replace(running=other.running._replace(conflict=True))
        if rules.delta_refuses_conflicts and not touched.isdisjoint(other.running.tracks)
        else other
        for other in others
    ]
    following = {"stage": "decide"}.get(process.verb, "end")
    ended = _next_terms(process) if process.verb == "set" else process.then(following)
    return _with(after, tuple(met), ended)
