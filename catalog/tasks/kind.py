"""What a task does: its steps, its arguments, and what must not run beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput
from catalog.progress import Progress

if TYPE_CHECKING:
    from catalog.catalog import Catalog

Arguments = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Any]]

# A result is for the next steps and for people; what is large belongs into a table.
LARGEST_RESULT = 64 * 1024


@dataclass(frozen=True)
class TaskWork:
    """What a step has at hand.

    Attributes:
        catalog: the catalog; its commits name the task as their run.
        arguments: those of the task.
        results: what the steps before it have given, by their names.
        progress: say now and then how far the step has come. It raises `TaskLost` when somebody
            else has taken the task over, so that the work stops.
        beat: renew the lease now, and see whether the task is still ours; otherwise that happens
            by itself while the step works.
        actor: who asked for it.
        reason: why.
        deadline: seconds that a commit may wait for others; the catalog's own if none.
    """

    catalog: Catalog
    arguments: Arguments
    results: Results
    progress: Progress
    beat: Callable[[], None]
    actor: str
    reason: str = ""
    deadline: float | None = None

    @property
    def how(self) -> dict[str, Any]:
        """What every verb that commits is told."""
        return {"actor": self.actor, "reason": self.reason, "deadline": self.deadline}


@dataclass(frozen=True)
class TaskStep:
    """A step of a task. It may be run again if its process dies, so it must not mind that."""

    name: str
    run: Callable[[TaskWork], Mapping[str, Any]]


@dataclass(frozen=True)
class TaskKind:
    """What tasks of one name do.

    Attributes:
        name: the name.
        steps: from the arguments and the results so far, all steps that are known, in order. The
            steps that are complete must be among them, whatever was planned since.
        exclusive: tasks with the same key run one at a time; none if others do not matter.
        arguments: the types of the arguments that it takes, by name.
        required: those that must be given.
        latest: figures of which the last step's counts; others are added up over the steps.
        found: figures that somebody should look at if they are not zero.
    """

    name: str
    steps: Callable[[Arguments, Results], Sequence[TaskStep]]
    exclusive: str | None = None
    arguments: Mapping[str, type] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    latest: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()

    def check(self, arguments: Arguments) -> dict[str, Any]:
        """The arguments that were given, if the task takes them."""
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
        """The first step that is not complete, and how many steps are known."""
        known = self.steps(arguments, results)
        return next((step for step in known if step.name not in results), None), len(known)

    def figures(self, results: Results) -> dict[str, float]:
        """What the steps have counted, together. The version is no count."""
        counted: dict[str, float] = {}
        for result in results.values():
            for name, value in result.items():
                counts = isinstance(value, int | float) and not isinstance(value, bool)
                if counts and name != "version":
                    before = 0 if name in self.latest else counted.get(name, 0)
                    counted[name] = before + value
        return counted


def in_order(*steps: TaskStep) -> Callable[[Arguments, Results], Sequence[TaskStep]]:
    """The steps of a task that always has the same."""
    return lambda arguments, results: steps


def check_result(step: str, result: Any) -> dict[str, Any]:
    """What a step gave, if it can be kept."""
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
