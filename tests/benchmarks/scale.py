"""How large a run is: the short form proves that everything runs, the full one is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """Sizes and repetitions.

    Attributes:
        rounds: rounds of works that take a second or so.
        few_rounds: rounds of works that take many seconds.
        bulk: segments in one call.
        many: segments in a large catalog; `small` in a small one.
        schemas: different schemas in a large catalog.
        changes: changes between two polls.
        orphans: schemas that a clean-up retires while others publish.
        seconds: how long crowds of writers publish.
        growth: sizes for the slopes.
        judged: whether the ratios mean something.
    """

    name: str
    rounds: int
    few_rounds: int
    bulk: int
    many: int
    small: int
    schemas: int
    changes: int
    orphans: int
    seconds: float
    growth: tuple[int, ...]
    judged: bool = True

    def warm(self, rounds: int = 1) -> int:
        """So many rounds to warm up; none where nothing is judged."""
        return rounds if self.judged else 0


SHORT = Scale(
    name="short",
    rounds=1,
    few_rounds=1,
    bulk=200,
    many=1_000,
    small=200,
    schemas=10,
    changes=20,
    orphans=20,
    seconds=2.0,
    growth=(100, 200),
    judged=False,
)
FULL = Scale(
    name="full",
    rounds=15,
    few_rounds=3,
    bulk=100_000,
    many=1_000_000,
    small=10_000,
    schemas=1_000,
    changes=1_000,
    orphans=10_000,
    seconds=60.0,
    growth=(10_000, 100_000, 1_000_000),
)
LONG = replace(
    FULL, name="long", rounds=31, few_rounds=5, growth=(10_000, 100_000, 1_000_000, 10_000_000)
)
SCALES = {scale.name: scale for scale in (SHORT, FULL, LONG)}
