"""The schemas that tables name: registered names and versions, which are rows of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from catalog.delta.store import Store
from catalog.names.keys import name_bucket, parts_of
from catalog.objects.declared import REFERENCE, Types
from catalog.objects.judging import violation
from catalog.objects.limits import TABLE
from catalog.objects.model import Named
from catalog.objects.rules import Broken
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The name of a schema, and the version of it if one is given.
Wanted = tuple[str, int | None]


def named_schemas(
    types: Types, objects: Mapping[str, Named], before: Mapping[str, Named]
) -> dict[str, Wanted]:
    """The schemas that tables name by their declared fields, if others than they named before."""
    declared = types.get(TABLE)
    if declared is None or "schema" not in declared.fields:
        return {}
    # Before the type was declared, they named nothing.
    known = before if declared.key in before else {}
    found = {}
    for key, each in objects.items():
        wanted = None if known.get(key) == each else _wanted(each)
        if wanted is not None and wanted != _wanted(known.get(key)):
            found[key] = wanted
    return found


def _wanted(found: Named | None) -> Wanted | None:
    if found is None or found.type != TABLE:
        return None
    body = found.body
    name, number = body.get("schema"), body.get("schema_version")
    # What is of another type breaks another rule.
    return (name, number if type(number) is int else None) if isinstance(name, str) else None


def missing_schemas(
    wanted: Mapping[str, Wanted], known: Mapping[str, Collection[int]]
) -> list[Broken]:
    """Tables whose schemas are not there; `known` has the versions of names that are."""
    found = []
    for key, (name, number) in sorted(wanted.items()):
        if name not in known:
            what = f"refers to the schema {name!r:.80}, which is not registered"
        elif number is not None and number not in known[name]:
            last = max(known[name], default=0)
            what = f"refers to version {number} of the schema {name!r:.80}, which has {last}"
        else:
            continue
        found.append(Broken(REFERENCE, key, f"{what}; register it before"))
    return found


def known_versions(
    session: SparkSession, pinned: str, names: Collection[str]
) -> dict[str, set[int]]:
    """The numbers of the versions that some names have in the table, pinned to a version."""
    if not names:
        return {}
    buckets = ", ".join(map(str, sorted({name_bucket(name) for name in names})))
    rows = session.sql(
        f"SELECT key FROM {pinned} WHERE kind = 'version' "
        f"AND bucket IN ({buckets}) "
        f"AND regexp_replace(key, '/[0-9]+$', '') IN ({', '.join(map(literal, sorted(names)))})"
    ).collect()
    found: dict[str, set[int]] = {}
    for row in rows:
        name, number = parts_of(row["key"])
        found.setdefault(name, set()).add(number)
    return found


def check_schemas(
    store: Store, version: int, before: Mapping[str, Named], after: Mapping[str, Named]
) -> None:
    """Refuses tables that name a schema which is not there; one that is never goes away.

    So what was read at the version of a plan holds for its commit.
    """
    wanted = named_schemas(Types.among(after), after, before)
    names = {name for name, _ in wanted.values()}
    known = known_versions(store.session, store.pinned(version), names)
    broken = missing_schemas(wanted, known)
    if broken:
        raise violation(broken)
