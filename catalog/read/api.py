"""Schemas by fingerprint and by datasource, and the data that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from catalog.context import Context
from catalog.contracts.store import read_policy
from catalog.delta.layout import of_datasource
from catalog.delta.store import AsOf
from catalog.errors import NotInSnapshot
from catalog.evolution.merge import Policy
from catalog.evolution.projection import OnLoss
from catalog.names.model import check_name, reference
from catalog.names.store import stored_name
from catalog.read.datasource import DatasourceSchema, combined_schemas, frame_of
from catalog.read.reader import DataReader, ReadRequest
from catalog.read.registry import Holders, Registry
from catalog.read.scan import Where
from catalog.schema import Schema
from catalog.schema.canonical import MAX_DIGITS, is_prefix, resolve_prefix
from catalog.schema.model import read_stored
from catalog.schema.names import literal
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class SchemaReader:
    """The verbs `schema`, `datasource_schema`, `datasource_schemas` and `read` of a catalog."""

    def __init__(self, context: Context, holders: Holders) -> None:
        self._context = context
        self._registry = Registry(lambda names: self._payloads(names, None), holders)

    def schema(self, beginning: str, as_of: AsOf = None) -> Schema:
        wanted = beginning.lower()
        if len(wanted) == MAX_DIGITS:
            name = resolve_prefix(wanted, [wanted])
            return self._registry.many([name], lambda missing: self._payloads(missing, as_of))[name]
        shape = resolve_prefix(wanted, [wanted.ljust(MAX_DIGITS, "0")])[: len(wanted)]
        begins = f"startswith(key, {literal(shape)})"
        version = self._context.version(as_of)
        found = self._context.store.definitions(version, begins, limit=6)
        fingerprint = resolve_prefix(beginning, found)
        schema = read_stored(fingerprint, found[fingerprint].payload)
        self._registry.learn(schema)
        return schema

    def datasource_schema(
        self, datasource: str, as_of: AsOf, policy: str | None
    ) -> DatasourceSchema:
        condition = of_datasource(datasource, self._context.buckets)
        version = self._context.version(as_of)
        found = self._combined(version, self._policy(policy, datasource, version), condition)
        if not found:
            raise NotInSnapshot(
                f"Datasource {datasource} has no segments at version {version}.",
                datasource=datasource,
                version=version,
            )
        return found[0]

    def datasource_schemas(self, as_of: AsOf, policy: str) -> DataFrame:
        combined = self._combined(self._context.version(as_of), chosen(Policy, "policy", policy))
        return frame_of(self._context.spark, combined)

    def read(
        self,
        datasource: str,
        schema: Schema | str | StructType | None,
        as_of: AsOf,
        where: Where,
        policy: str | None,
        on_loss: str,
        format: str | None,
        options: Mapping[str, str] | None,
        segment_id: str | None,
    ) -> DataFrame:
        context = self._context
        version = context.version(as_of)
        wanted = self._definition(schema, version) if isinstance(schema, str) else schema
        request = ReadRequest(
            datasource,
            version,
            None if wanted is None else Schema.of(wanted),
            where,
            self._policy(policy, datasource, version),
            chosen(OnLoss, "on_loss", on_loss),
            format,
            options,
            segment_id,
        )
        return DataReader(context.spark, context.store, context.buckets, self._registry).read(
            request
        )

    def _definition(self, text: str, version: int) -> Schema:
        """A schema given by its fingerprint, by name and version, or written out."""
        if is_prefix(text):
            return self.schema(text, version)
        named = reference(text)
        if named is None:
            return Schema.of(text)
        name, number = named
        found = stored_name(self._context.store, check_name(name), version).version(number)
        return self.schema(found.version.fingerprint, version)

    def _policy(self, given: str | None, datasource: str, version: int) -> Policy:
        """The given policy, or else the one of the datasource's contract."""
        if given is None:
            buckets = self._context.opened.segment_buckets
            given = read_policy(self._context.store, buckets, datasource, version)
        return chosen(Policy, "policy", Policy.STRICT if given is None else given)

    def _combined(
        self, version: int, policy: Policy, segments: str = "true"
    ) -> list[DatasourceSchema]:
        return combined_schemas(self._context.store, version, self._registry, policy, segments)

    def _payloads(self, fingerprints: Sequence[str], as_of: AsOf) -> dict[str, str]:
        return self._context.store.payloads_of(fingerprints, self._context.version(as_of))
