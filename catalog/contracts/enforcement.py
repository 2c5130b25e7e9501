"""Segments checked against the terms of their datasources, which a catalog remembers or reads."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from catalog.contracts.model import Terms
from catalog.contracts.store import Group, read_terms
from catalog.delta.layout import bucket_of
from catalog.delta.store import Store
from catalog.errors import CatalogError, ContractViolation
from catalog.model import Breach, Offence, Segment
from catalog.schema import Schema

log = logging.getLogger(__name__)

_SHOWN = 3


def offences_of(
    groups: Iterable[Group], terms: Mapping[str, Terms], schemas: Mapping[str, Schema]
) -> tuple[Offence, ...]:
    """The offences among groups of segments; `schemas` has those of all their fingerprints."""
    found: list[Offence] = []
    for group in groups:
        if group.datasource not in terms:
            continue
        checked = terms[group.datasource]
        schema = None if group.fingerprint is None else schemas[group.fingerprint]
        of_schema = checked.check_schema(schema)
        of_size = checked.check_size(group.num_rows, group.size_bytes)
        largest = {"max_rows": group.most_rows, "max_bytes": group.most_bytes}
        ids = [largest[breach.rule] for breach in of_size]
        if of_schema or of_size:
            found.append(
                Offence(
                    group.datasource,
                    group.fingerprint,
                    (*of_schema, *of_size),
                    group.segments if of_schema else group.beyond,
                    tuple(dict.fromkeys(each for each in ids if each)) or (group.example,),
                    checked.refuses,
                )
            )
    return tuple(sorted(found, key=lambda each: (each.datasource, each.fingerprint or "")))


def offences_among(segments: Iterable[Segment], terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
    """The offences among some segments, grouped by schema and by the limits that they exceed."""
    asking = {name: each for name, each in terms.items() if each.asks}
    if not asking:
        return ()
    of_schemas: dict[tuple[str, str | None], tuple[Breach, ...]] = {}
    found: dict[tuple[str, str | None, tuple[str, ...]], list[tuple[Segment, tuple[Breach, ...]]]]
    found = {}
    for segment in segments:
        checked = asking.get(segment.datasource)
        if checked is None:
            continue
        place = (segment.datasource, segment.fingerprint)
        if place not in of_schemas:
            of_schemas[place] = checked.check_schema(segment.schema)
        of_size = checked.check_size(segment.num_rows, segment.size_bytes)
        if of_schemas[place] or of_size:
            rules = tuple(breach.rule for breach in of_size)
            found.setdefault((*place, rules), []).append((segment, of_size))
    return tuple(
        Offence(
            datasource,
            fingerprint,
            (*of_schemas[datasource, fingerprint], *some[0][1]),
            len(some),
            tuple(segment.id for segment, _ in some),
            asking[datasource].refuses,
        )
        for (datasource, fingerprint, _), some in sorted(
            found.items(), key=lambda each: (each[0][0], each[0][1] or "", each[0][2])
        )
    )


def refused_only(offences: Iterable[Offence]) -> tuple[Offence, ...]:
    """The offences that are refused."""
    return tuple(each for each in offences if each.refused)


def warned(offences: Collection[Offence]) -> tuple[Offence, ...]:
    """The offences that are published all the same; each is logged."""
    warnings = tuple(each for each in offences if not each.refused)
    for each in warnings:
        log.warning("Published though the contract is broken: %s", each)
    return warnings


def violation(offences: Collection[Offence]) -> ContractViolation:
    """The error that says for each schema what is wrong with it, column by column."""
    some = list(offences)
    shown = " | ".join(map(str, some[:_SHOWN]))
    more = f" | and {len(some) - _SHOWN} more schemas" if len(some) > _SHOWN else ""
    tables = {each.table for offence in some for each in offence.breaches if each.table}
    limits = f", or limits of {', '.join(sorted(tables)[:_SHOWN])}" if tables else ""
    return ContractViolation(
        f"The contract does not allow {shown}{more}. Nothing was written. Change the data, or the "
        f"contract by contracts.set{limits}.",
        datasource=some[0].datasource,
        segment_ids=tuple(key for each in some for key in each.segment_ids),
        breaches=[each.facts() for each in some],
    )


def reasons_of(error: CatalogError) -> dict[str, str]:
    """What is wrong with each segment that a `ContractViolation` names."""
    return {
        segment_id: f"breaks the contract of {offence['datasource']}: "
        + "; ".join(" ".join(filter(None, (b["column"], b["words"]))) for b in offence["breaches"])
        for offence in error.values.get("breaches", ())
        for segment_id in offence["segment_ids"]
    }


class KnownTerms:
    """The terms of datasources as a catalog read them last: what its publishes plan with.

    They may be outdated. A statement carries their digests and refuses itself if a datasource has
    other terms by then; `learn` reads them again.
    """

    def __init__(self, store: Store, buckets: int) -> None:
        self._store = store
        self._buckets = buckets
        self._terms: dict[str, Terms] = {}

    def of(self, datasources: Iterable[str]) -> dict[str, Terms]:
        """The terms of those of some datasources that have any."""
        return {name: self._terms[name] for name in datasources if name in self._terms}

    def __bool__(self) -> bool:
        """Whether some datasource is known to have terms: most catalogs have no contracts."""
        return bool(self._terms)

    def within(self, homes: Collection[int]) -> dict[str, Terms]:
        """The terms of all datasources in some buckets."""
        return {
            name: terms
            for name, terms in self._terms.items()
            if bucket_of(name, self._buckets) in homes
        }

    def learn(self, datasources: Collection[str]) -> dict[str, Terms]:
        """Reads the current terms of some datasources."""
        learned = self.learn_within({bucket_of(name, self._buckets) for name in datasources})
        return {name: terms for name, terms in learned.items() if name in datasources}

    def learn_within(self, homes: Collection[int]) -> dict[str, Terms]:
        """Reads the current terms of all datasources in some buckets."""
        learned = read_terms(self._store, self._store.head().version, homes)
        for name in self.within(homes):
            del self._terms[name]
        self._terms |= learned
        return learned


class Inspection:
    """The terms that one publish or backfill checks its segments against, until its commit.

    It starts with the remembered terms, which costs nothing. Nothing is refused by those alone:
    they are read again first, since a contract may have changed.
    """

    def __init__(self, known: KnownTerms) -> None:
        self._known = known
        self._terms: dict[str, Terms] = {}
        self._learned = False

    def __bool__(self) -> bool:
        """Whether there are terms to check against; most catalogs have none."""
        return self._learned or bool(self._known)

    def offences(
        self, batches: Sequence[Collection[Segment]], datasources: Collection[str]
    ) -> list[tuple[Offence, ...]]:
        """The offences of each batch; `datasources` are all that the statement writes to."""
        if not self._learned:
            self._terms = self._known.of(datasources)
        found = [offences_among(batch, self._terms) for batch in batches]
        if self._learned or not any(map(refused_only, found)):
            return found
        self.learn(datasources)
        return [offences_among(batch, self._terms) for batch in batches]

    def learn(self, datasources: Collection[str]) -> None:
        """Reads the current terms, after a statement refused itself because of them."""
        self._terms = self._known.learn(datasources)
        self._learned = True

    def digests(self, datasources: Collection[str]) -> dict[str, str]:
        """The digests that a statement carries for these datasources."""
        return {
            name: terms.digest
            for name, terms in self._terms.items()
            if name in datasources and terms.digest is not None
        }
