"""Named schemas as the table has them at one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from catalog.delta.store import Store
from catalog.errors import UnknownName, UnknownSchema
from catalog.model import from_micros
from catalog.names.keys import name_bucket, parts_of
from catalog.names.model import Head, NamedSchema, Version
from catalog.names.plan import History, unknown_version
from catalog.schema import Schema
from catalog.schema.names import literal
from catalog.schema.stored import read_stored


@dataclass(frozen=True)
class StoredVersion:
    """A version with the commit that wrote its row."""

    version: Version
    commit_id: str
    registered_by: str | None
    registered_at: datetime


@dataclass(frozen=True)
class StoredName:
    """A name with its versions by number, and the commit that changed its row last."""

    name: str
    head: Head
    commit_id: str
    versions: Mapping[int, StoredVersion]

    def version(self, number: int | None) -> StoredVersion:
        """A version, or the current one."""
        found = self.versions.get(self.head.current if number is None else number)
        if found is None:
            raise unknown_version(self.name, number or 0, self.head.current)
        return found

    def of_commit(self, commit_id: str) -> StoredVersion | None:
        """The version that a commit wrote. Versions never change, so it is found for good."""
        return next((v for v in self.versions.values() if v.commit_id == commit_id), None)

    def named(self, number: int | None, schema: Schema) -> NamedSchema:
        """One of the versions, with its schema, as callers see it."""
        stored, head = self.version(number), self.head
        version = stored.version
        return NamedSchema(
            name=self.name,
            version=version.number,
            schema=schema,
            mode=head.mode,
            current=head.current,
            last_breaking=head.last_breaking,
            dropped=head.dropped,
            compatible=version.compatible,
            reasons=version.reasons,
            forced=version.forced,
            merged=version.merged,
            base=version.base,
            note=version.note,
            registered_by=stored.registered_by,
            registered_at=stored.registered_at,
            commit_id=stored.commit_id,
        )


def find_name(store: Store, name: str, version: int) -> StoredName | None:
    """A name at a version of the table; none if it is not there."""
    rows = store.session.sql(
        "SELECT kind, key, commit_id, fingerprint, payload, changed_by, "
        f"unix_micros(published_at) AS published FROM {store.pinned(version)} "
        f"WHERE kind IN ('named', 'version') AND bucket = {name_bucket(name)} "
        f"AND (key = {literal(name)} OR startswith(key, {literal(name + '/')}))"
    ).collect()
    heads = [row for row in rows if row["kind"] == "named"]
    if not heads:
        return None
    versions = {}
    for row in rows:
        if row["kind"] == "version":
            number = parts_of(row["key"])[1]
            versions[number] = StoredVersion(
                Version.from_payload(row["key"], number, row["fingerprint"], row["payload"]),
                row["commit_id"],
                row["changed_by"],
                from_micros(row["published"]),
            )
    head = Head.from_payload(name, heads[0]["payload"])
    return StoredName(name, head, heads[0]["commit_id"], dict(sorted(versions.items())))


def stored_name(store: Store, name: str, version: int) -> StoredName:
    """The same; a name that is not there is an error."""
    found = find_name(store, name, version)
    if found is None:
        raise UnknownName(
            f"There is no schema with the name {name} at version {version} of the table.", name=name
        )
    return found


def history_of(store: Store, found: StoredName, version: int) -> History:
    """A name with the schemas of all its versions."""
    versions = tuple(each.version for each in found.versions.values())
    return History(found.head, versions, version_schemas(store, versions, version))


def version_schemas(store: Store, versions: Iterable[Version], version: int) -> dict[str, Schema]:
    wanted = sorted({each.fingerprint for each in versions})
    payloads = store.payloads_of(wanted, version)
    for fingerprint in wanted:
        if fingerprint not in payloads:
            raise UnknownSchema(
                f"Schema {fingerprint} of a registered version is not stored at version {version}; "
                "run verify.",
                fingerprint=fingerprint,
            )
    return {name: read_stored(name, payload) for name, payload in payloads.items()}
