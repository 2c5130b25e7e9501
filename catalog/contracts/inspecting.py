"""Segments on their way in, checked by the contracts that are known or, if need be, read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from catalog.contracts.checking import Offence, offences_among, refused_only
from catalog.contracts.reading import KnownTerms
from catalog.contracts.terms import Terms
from catalog.model import Segment


class Inspection:
    """The terms that one publish or backfill goes by, until its commit.

    It begins with what is remembered, which costs nothing. Nothing is refused by that alone: the
    contract may have been changed since.
    """

    def __init__(self, known: KnownTerms) -> None:
        self._known = known
        self._terms: dict[str, Terms] = {}
        self._learned = False

    def __bool__(self) -> bool:
        """Whether there are terms to go by; most catalogs have none."""
        return self._learned or bool(self._known)

    def offences(
        self, batches: Sequence[Collection[Segment]], datasources: Collection[str]
    ) -> list[tuple[Offence, ...]]:
        """What each of some batches breaks; `datasources` are all that the statement writes to."""
        if not self._learned:
            self._terms = self._known.of(datasources)
        found = [offences_among(batch, self._terms) for batch in batches]
        if self._learned or not any(map(refused_only, found)):
            return found
        self.learn(datasources)
        return [offences_among(batch, self._terms) for batch in batches]

    def learn(self, datasources: Collection[str]) -> None:
        """Reads the terms as they are now: a statement refused itself because of others."""
        self._terms = self._known.learn(datasources)
        self._learned = True

    def digests(self, datasources: Collection[str]) -> dict[str, str]:
        """What a statement carries: it refuses itself if a datasource has others by then."""
        return {
            name: terms.digest
            for name, terms in self._terms.items()
            if name in datasources and terms.digest is not None
        }
