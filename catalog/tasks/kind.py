"""A kind of task: its steps, its arguments, and what must not run concurrently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import InvalidInput
from catalog.progress import Progress

Arguments = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Any]]

# A result is for later steps and for people; larger data belongs into a table.
LARGEST_RESULT = 64 * 1024


@dataclass(frozen=True)
class TaskWork:
    """What a step is given.

    Attributes:
        catalog: the open `Catalog`; its commits record the task as their run.
        arguments: the arguments of the task.
        results: the results of earlier steps, by step name.
        progress: to be called now and then with the progress of the step. It raises `TaskLost` if
            the task was cancelled or taken over, so that the work stops.
        beat: renews the lease now and checks that the task is still ours; this also happens in the
            background while the step runs.
        actor: who started the task.
        reason: why.
        deadline: seconds that a commit may wait for others; None for the catalog's setting.
    """

    # A Catalog: typed loosely, since the catalog is composed of this package too.
    catalog: Any
    arguments: Arguments
    results: Results
    progress: Progress
    beat: Callable[[], None]
    actor: str
    reason: str = ""
    deadline: float | None = None

    @property
    def how(self) -> dict[str, Any]:
        """The options of a verb that commits."""
        return {"actor": self.actor, "reason": self.reason, "deadline": self.deadline}


@dataclass(frozen=True)
class TaskStep:
    """A step of a task. It must be safe to run again: its process may die before it is recorded."""

    name: str
    run: Callable[[TaskWork], Mapping[str, Any]]


@dataclass(frozen=True)
class TaskKind:
    """What the tasks of one name do.

    Attributes:
        name: the name.
        steps: from the arguments and the results so far, all known steps in order. It must always
            include the completed ones.
        exclusive: only one task with this key runs at a time; None for no such limit.
        arguments: types of the arguments, by name.
        required: names of the required ones.
        latest: figures that the last step sets; all others are summed over the steps.
        found: figures that call for attention unless they are zero.
    """

    name: str
    steps: Callable[[Arguments, Results], Sequence[TaskStep]]
    exclusive: str | None = None
    arguments: Mapping[str, type] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    latest: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()

    def check(self, arguments: Arguments) -> dict[str, Any]:
        """The arguments that are not None, if the task accepts them."""
        given = {name: value for name, value in arguments.items() if value is not None}
        unknown = sorted(given.keys() - self.arguments.keys())
        if unknown:
            takes = ", ".join(sorted(self.arguments)) or "none"
            raise InvalidInput(
                f"The task {self.name} takes no argument {unknown[0]!r}; it takes {takes}.",
                task=self.name,
                argument=unknown[0],
            )
        missing = sorted(self.required - given.keys())
        if missing:
            raise InvalidInput(
                f"The task {self.name} needs the argument {missing[0]!r}.",
                task=self.name,
                argument=missing[0],
            )
        for name, value in given.items():
            self._check_type(name, value)
        return given

    def _check_type(self, name: str, value: Any) -> None:
        wanted = self.arguments[name]
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if not fits or (wanted is list and not all(isinstance(each, str) for each in value)):
            what = "a list of texts" if wanted is list else f"of type {wanted.__name__}"
            raise InvalidInput(
                f"The argument {name!r} of the task {self.name} must be {what}, not {value!r}.",
                task=self.name,
                argument=name,
            )

    def next_step(self, arguments: Arguments, results: Results) -> tuple[TaskStep | None, int]:
        """The first step that is not complete, and the number of known steps."""
        known = self.steps(arguments, results)
        return next((step for step in known if step.name not in results), None), len(known)

    def figures(self, results: Results) -> dict[str, float]:
        """The figures of all steps together, without the version."""
        counted: dict[str, float] = {}
        for result in results.values():
            for name, value in result.items():
                counts = isinstance(value, int | float) and not isinstance(value, bool)
                if counts and name != "version":
                    before = 0 if name in self.latest else counted.get(name, 0)
                    counted[name] = before + value
        return counted


def in_order(*steps: TaskStep) -> Callable[[Arguments, Results], Sequence[TaskStep]]:
    """The steps of a task that always has the same steps."""
    return lambda arguments, results: steps


def check_result(step: str, result: Any) -> dict[str, Any]:
    """The result of a step, if it can be stored."""
    if not isinstance(result, Mapping):
        raise InvalidInput(
            f"The step {step} gave {type(result).__name__}; it must give a mapping.", step=step
        )
    try:
        text = json.dumps(dict(result), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"What the step {step} gave cannot be kept as JSON: {error}.", step=step
        ) from error
    if len(text) > LARGEST_RESULT:
        raise InvalidInput(
            f"The step {step} gave {len(text)} characters of JSON; at most {LARGEST_RESULT} are "
            "kept. Put what is large into a table or a file, and give its name.",
            step=step,
        )
    kept: dict[str, Any] = json.loads(text)
    return kept
