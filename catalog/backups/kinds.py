"""What becomes of each kind of row when a catalog goes back, and which buckets can be changed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from catalog.delta import layout
from catalog.errors import CommitFailed
from catalog.model import Kind


class Behaviour(StrEnum):
    """What a rollback does with the rows of a kind."""

    # As it was: what came since goes, what went comes back, what changed is changed back.
    RESTORED = "restored"
    # The same, but what came since stays.
    RETURNED = "returned"
    # What went comes back; nothing that is there changes or goes. (A name that gets versions back
    # counts these too, see `contrast`.)
    GROW_ONLY = "grow-only"
    # As it is: it tells of what happened, and that is not undone.
    KEPT = "kept"


BEHAVIOURS = {
    # A clean-up takes away what nothing refers to any more, with all its care; no rollback does.
    Kind.SCHEMA.value: Behaviour.GROW_ONLY,
    Kind.RETIRED.value: Behaviour.KEPT,
    Kind.SEGMENT.value: Behaviour.RESTORED,
    # Publishes and claims lean on these rows, so none is taken away.
    Kind.DATASOURCE.value: Behaviour.RETURNED,
    Kind.OBJECT.value: Behaviour.RESTORED,
    "setting": Behaviour.RESTORED,
    # The numbers of schema versions are given once: neither they nor who counts them go back.
    "named": Behaviour.GROW_ONLY,
    "version": Behaviour.GROW_ONLY,
    # I8: the stable epoch never goes down, and what was decided stays so.
    Kind.EPOCH.value: Behaviour.KEPT,
    Kind.OPERATION.value: Behaviour.KEPT,
    Kind.PART.value: Behaviour.KEPT,
    Kind.STAGED.value: Behaviour.KEPT,
    Kind.GUARD.value: Behaviour.KEPT,
}


def check_known(kinds: Iterable[str]) -> None:
    """Refuses to go back where there are rows of which nobody knows how they behave."""
    unknown = sorted(set(kinds) - BEHAVIOURS.keys())
    if unknown:
        raise CommitFailed(
            f"This release does not know how rows of kind {', '.join(unknown)} go back; nothing "
            "was written. Use the release that wrote them.",
            kinds=unknown,
        )


def kinds_that(*behaviours: Behaviour) -> str:
    """The kinds with one of these behaviours, for an IN clause; objects go a way of their own."""
    names = (kind for kind, found in BEHAVIOURS.items() if found in behaviours)
    return ", ".join(f"'{kind}'" for kind in names if kind != Kind.OBJECT)


def bucket_sql(buckets: int) -> str:
    """The bucket of a row in a catalog with so many segment buckets."""
    return (
        "CAST(CASE WHEN kind IN ('segment', 'datasource') OR (kind = 'staged' AND target IN "
        f"('segment', 'datasource')) THEN {layout.bucket_sql(layout.BEFORE_SLASH, buckets)} "
        "ELSE bucket END AS INT)"
    )
