"""Segments beside the terms of their datasources: what breaks which, as values."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.contracts.model import Breach
from catalog.contracts.terms import Terms
from catalog.errors import CatalogError, ContractViolation
from catalog.model import Segment
from catalog.schema import Schema

log = logging.getLogger(__name__)

_SHOWN = 3


@dataclass(frozen=True)
class Offence:
    """Segments with one schema that break the terms of their datasource.

    Attributes:
        fingerprint: of their schema; none if it is not known yet.
        breaches: what is wrong with them; of sizes, those of the largest.
        segments: how many there are.
        segment_ids: their ids; of a frame, or of what is there already, only some.
        refused: whether they are refused; a contract may only warn.
    """

    datasource: str
    fingerprint: str | None
    breaches: tuple[Breach, ...]
    segments: int
    segment_ids: tuple[str, ...] = ()
    refused: bool = True

    def __str__(self) -> str:
        schema = "without a schema" if self.fingerprint is None else f"with {self.fingerprint[:8]}"
        named = ", ".join(self.segment_ids[:_SHOWN])
        more = ", …" if self.segments > _SHOWN else ""
        words = "; ".join(map(str, self.breaches))
        return f"{self.datasource}, {self.segments} {schema} ({named}{more}): {words}"

    def told(self) -> dict[str, Any]:
        """The same for programs, as an error's values and the shell's JSON have it."""
        return {
            "datasource": self.datasource,
            "fingerprint": self.fingerprint,
            "segments": self.segments,
            "segment_ids": list(self.segment_ids),
            "breaches": [
                {
                    "column": each.path or None,
                    "rule": each.rule,
                    "words": each.words,
                    "table": each.table,
                }
                for each in self.breaches
            ],
        }


@dataclass(frozen=True)
class Group:
    """Segments of a datasource with one schema, counted where they lie.

    Attributes:
        segments: how many there are.
        beyond: how many of them are larger than is allowed.
        num_rows: of the one with the most rows, which is `most_rows`.
        size_bytes: of the one with the most bytes, which is `most_bytes`.
        example: the first of them.
    """

    datasource: str
    fingerprint: str | None
    segments: int
    beyond: int
    num_rows: int | None
    most_rows: str | None
    size_bytes: int | None
    most_bytes: str | None
    example: str


def offences_of(
    groups: Iterable[Group], terms: Mapping[str, Terms], schemas: Mapping[str, Schema]
) -> tuple[Offence, ...]:
    """What groups of segments break; `schemas` has those of all their fingerprints."""
    found: list[Offence] = []
    for group in groups:
        asked = terms.get(group.datasource)
        if asked is None:
            continue
        schema = None if group.fingerprint is None else schemas[group.fingerprint]
        of_schema = asked.check_schema(schema)
        of_size = asked.check_size(group.num_rows, group.size_bytes)
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
                    asked.refuses,
                )
            )
    return tuple(sorted(found, key=lambda each: (each.datasource, each.fingerprint or "")))


def offences_among(segments: Iterable[Segment], terms: Mapping[str, Terms]) -> tuple[Offence, ...]:
    """What some segments break of their datasources' terms."""
    asking = {name: each for name, each in terms.items() if each.asks}
    if not asking:
        return ()
    of_schemas: dict[tuple[str, str | None], tuple[Breach, ...]] = {}
    found: dict[tuple[str, str | None, tuple[str, ...]], list[tuple[Segment, tuple[Breach, ...]]]]
    found = {}
    for segment in segments:
        asked = asking.get(segment.datasource)
        if asked is None:
            continue
        place = (segment.datasource, segment.fingerprint)
        if place not in of_schemas:
            of_schemas[place] = asked.check_schema(segment.schema)
        of_size = asked.check_size(segment.num_rows, segment.size_bytes)
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
    """Those that are refused."""
    return tuple(each for each in offences if each.refused)


def warned(offences: Collection[Offence]) -> tuple[Offence, ...]:
    """Those that go in all the same; each is logged."""
    warnings = tuple(each for each in offences if not each.refused)
    for each in warnings:
        log.warning("Published though the contract is broken: %s", each)
    return warnings


def violation(offences: Collection[Offence]) -> ContractViolation:
    """The refusal that says of each schema what is wrong with it, column by column."""
    some = list(offences)
    shown = " | ".join(map(str, some[:_SHOWN]))
    more = f" | and {len(some) - _SHOWN} more schemas" if len(some) > _SHOWN else ""
    ids = tuple(key for each in some for key in each.segment_ids)
    tables = {each.table for offence in some for each in offence.breaches if each.table}
    repair = f"the contract by set_contract, or limits of {', '.join(sorted(tables)[:_SHOWN])}"
    return ContractViolation(
        f"The contract does not allow {shown}{more}. Nothing was written. Change the data, or "
        f"{repair if tables else 'the contract by set_contract'}.",
        datasource=some[0].datasource,
        segment_ids=ids,
        breaches=[each.told() for each in some],
    )


def reasons_of(error: CatalogError) -> dict[str, str]:
    """What is wrong with each segment that a refusal names."""
    return {
        segment_id: f"breaks the contract of {offence['datasource']}: "
        + "; ".join(" ".join(filter(None, (b["column"], b["words"]))) for b in offence["breaches"])
        for offence in error.values.get("breaches", ())
        for segment_id in offence["segment_ids"]
    }
