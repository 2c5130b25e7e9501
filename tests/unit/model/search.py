"""Visit every state that a system of processes can reach, and tell of the first broken promise."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

Trace = tuple[tuple[str, Any], ...]  # each action with the table after it


class Tabled(Protocol):
    """A state of which a trace shows the table."""

    @property
    def table(self) -> Any: ...


State = TypeVar("State", bound=Tabled)


class Search(NamedTuple):
    """What a search found; the trace is the shortest way to the first broken promise."""

    states: int
    ends: int
    stuck: int
    broken: str = ""
    trace: Trace = ()


def visit(
    starts: Iterable[State],
    successors: Callable[[State], Iterable[tuple[str, State]]],
    broken_promise: Callable[[State], str],
    finished: Callable[[State], bool],
) -> Search:
    """Visit every state that can be reached, breadth first, up to the first broken promise."""
    queue = deque(starts)
    origins: dict[State, tuple[str, State] | None] = dict.fromkeys(queue)
    ends = stuck = 0
    while queue:
        state = queue.popleft()
        if broken := broken_promise(state):
            return Search(len(origins), ends, stuck, broken, _trace(state, origins))
        following = list(successors(state))
        done = finished(state)
        ends += done
        stuck += not done and not following
        for action, successor in following:
            if successor not in origins:
                origins[successor] = action, state
                queue.append(successor)
    return Search(len(origins), ends, stuck)


def _trace(state: State, origins: dict[State, tuple[str, State] | None]) -> Trace:
    steps: list[tuple[str, Any]] = []
    while origin := origins[state]:
        steps.append((origin[0], state.table))
        state = origin[1]
    return (("start", state.table), *reversed(steps))


def hopeless(
    starts: Iterable[State],
    successors: Callable[[State], Iterable[tuple[str, State]]],
    finished: Callable[[State], bool],
) -> int:
    """Count the states from which no end can be reached, however lucky the processes are."""
    queue = deque(starts)
    origins: dict[State, list[State]] = {state: [] for state in queue}
    ends: list[State] = []
    while queue:
        state = queue.popleft()
        if finished(state):
            ends.append(state)
        for _, successor in successors(state):
            if successor not in origins:
                origins[successor] = []
                queue.append(successor)
            origins[successor].append(state)
    hopeful = set(ends)
    while ends:
        for origin in origins[ends.pop()]:
            if origin not in hopeful:
                hopeful.add(origin)
                ends.append(origin)
    return len(origins) - len(hopeful)
