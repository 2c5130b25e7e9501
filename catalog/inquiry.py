"""What can be asked of a catalog: schemas, datasources and their data, promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from catalog.cache.holders import Caches
from catalog.contracts.store import read_policy
from catalog.delta import opening
from catalog.delta.layout import LAYOUT, of_datasource
from catalog.delta.location import Location
from catalog.delta.opening import Opened
from catalog.delta.store import AsOf, Store
from catalog.errors import InvalidInput, NotInSnapshot, RestoreUnfinished
from catalog.evolution.merge import Policy
from catalog.evolution.projection import OnLoss
from catalog.names.model import check_name, reference
from catalog.names.store import stored_name
from catalog.progress import Progress, silent
from catalog.read.datasource_schema import DatasourceSchema
from catalog.read.datasources import combined_schemas, frame_of
from catalog.read.reader import Reader, Request
from catalog.read.registry import Registry
from catalog.read.selection import Where
from catalog.schema import Schema
from catalog.schema.names import literal
from catalog.schema.prefix import MAX_DIGITS, is_prefix, resolve_prefix
from catalog.schema.stored import read_stored
from catalog.sql.frames import Frames
from catalog.sql.stats import Stats, stats_of
from catalog.verify import Verifier, VerifyReport
from catalog.words import chosen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Inquiry(Frames):
    """The verbs of `Catalog` that only read."""

    def __init__(self, spark: SparkSession, store: Store, opened: Opened) -> None:
        self._spark = spark
        self._store = store
        self._opened = opened
        self._caches = Caches()
        self._registry = Registry(lambda names: self._payloads(names, None), self._caches)

    @property
    def location(self) -> Location:
        """Where the catalog is, under the one path that it is written by."""
        return self._opened.location

    @property
    def version(self) -> int:
        """The newest version of the table."""
        return self._store.head().version

    @property
    def table_id(self) -> str | None:
        """Delta's id of the table that is there now; none if there is none, or not a complete one.

        A restore makes another table, whose versions begin anew.
        """
        try:
            found = opening.find(self._store.session, self.location, LAYOUT)
        except RestoreUnfinished:
            return None
        return None if found is None else found.detail.table_id

    def stats(self, *, version: int | None = None) -> Stats:
        """The catalog in figures, at the newest version or another."""
        return stats_of(self._store, self._store.version_as_of(version))

    def schema(self, beginning: str, as_of: AsOf = None) -> Schema:
        """The schema with this fingerprint, or with any unique beginning of it.

        A whole fingerprint is looked up in memory first; callers that have to wait share a load.
        """
        wanted = beginning.lower()
        if len(wanted) == MAX_DIGITS:
            name = resolve_prefix(wanted, [wanted])
            return self._registry.many([name], lambda missing: self._payloads(missing, as_of))[name]
        shape = resolve_prefix(wanted, [wanted.ljust(MAX_DIGITS, "0")])[: len(wanted)]
        begins = f"startswith(key, {literal(shape)})"
        found = self._store.definitions(self._store.version_as_of(as_of), begins, limit=6)
        fingerprint = resolve_prefix(beginning, found)
        schema = read_stored(fingerprint, found[fingerprint].payload)
        self._registry.learn(schema)
        return schema

    def read(
        self,
        datasource: str,
        *,
        schema: Schema | str | StructType | None = None,
        as_of: AsOf = None,
        where: Where = None,
        policy: str | None = None,
        on_loss: str = OnLoss.REFUSE,
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        segment_id: str | None = None,
    ) -> DataFrame:
        """A frame over the data of a datasource's segments, whatever their schemas.

        The files of each schema are read as such and given in the wanted one: columns are found by
        name, cast, and filled with null. The frame stays at the version at which it was made.

        Args:
            datasource: its name.
            schema: the schema to give the data in: a fingerprint or any unique beginning of one, a
                named one such as `orders@3` or `orders@current`, or a definition. If not given, the
                merge of all schemas of the datasource. Columns that it lacks are left out.
            as_of: the catalog as of a version, a time or an `Epoch`.
            where: only segments that overlap an interval `(from, until)`, or that fulfil a
                condition on the columns of the view `segments`. Rows are chosen by `.where` on the
                frame; that reaches the files.
            policy: what to do about columns whose types have no common one, see `merge`; if not
                given, what the datasource's contract says, or "strict".
            on_loss: "refuse" what would not fit the schema, or read it as "null".
            format: the format of locations that do not say theirs: parquet, orc, json, csv, delta.
            options: for Spark's reader.
            segment_id: the name of a column for the id of the segment that a row is from.

        Raises:
            WouldLose: Values of a column might not fit the schema.
            SchemaConflict: The schemas do not merge and the policy is strict.
            Unreadable: A segment has no location, no schema, or a format that is not known.
        """
        version = self._store.version_as_of(as_of)
        wanted = self._definition(schema, version) if isinstance(schema, str) else schema
        request = Request(
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
        reader = Reader(self._spark, self._store, self._buckets(), self._registry)
        return reader.read(request)

    def datasource_schema(
        self,
        datasource: str,
        *,
        as_of: AsOf = None,
        policy: str | None = None,
    ) -> DatasourceSchema:
        """The merge of the schemas of a datasource's segments, with where each column is from.

        For repeated questions there is the same on a cache. Without a policy it goes by that of the
        datasource's contract, or is strict.
        """
        condition = of_datasource(datasource, self._buckets())
        version = self._store.version_as_of(as_of)
        found = self._combined(version, self._policy(policy, datasource, version), condition)
        if not found:
            raise NotInSnapshot(
                f"Datasource {datasource} has no segments at version {version}.",
                datasource=datasource,
                version=version,
            )
        return found[0]

    def datasource_schemas(self, as_of: AsOf = None, policy: str = Policy.STRICT) -> DataFrame:
        """The schemas of all datasources as a frame, each the merge of its segments' schemas.

        Columns: datasource, fingerprint, ddl, num_columns, num_schemas, num_segments and conflicts.
        """
        version = self._store.version_as_of(as_of)
        return frame_of(self._spark, self._combined(version, policy))

    def verify(
        self,
        *,
        version: int | None = None,
        since: int | None = None,
        progress: Progress = silent,
    ) -> VerifyReport:
        """Checks the promises I1 to I6.

        Args:
            version: the version to check; the newest if not given.
            since: check every version from this one on too, by one replay of the change feed.
            progress: is told of each check.
        """
        last = self._store.version_as_of(version)
        if since is not None:
            self._store.version_as_of(since)
            if since > last:
                raise InvalidInput(f"since {since} is after version {last}.", since=since)
        verifier = Verifier(self._store, self._buckets(), progress)
        return verifier.verify(last, since)

    # --- inside -----------------------------------------------------------------------------------

    def _definition(self, text: str, as_of: AsOf) -> Schema:
        """A schema that is named by its fingerprint or by name and version, or written out."""
        if is_prefix(text):
            return self.schema(text, as_of)
        named = reference(text)
        if named is None:
            return Schema.of(text)
        at = self._store.version_as_of(as_of)
        name, number = named
        found = stored_name(self._store, check_name(name), at).version(number)
        return self.schema(found.version.fingerprint, at)

    def _policy(self, given: str | None, datasource: str, version: int) -> Policy:
        """The policy that a caller gives, or else the one of the datasource's contract."""
        if given is None:
            given = read_policy(self._store, self._opened.segment_buckets, datasource, version)
        return chosen(Policy, "policy", Policy.STRICT if given is None else given)

    def _buckets(self) -> int:
        """The number of segment buckets; raises if a table with another one is there by now."""
        return self._store.check_buckets(self._opened.segment_buckets)

    def _combined(
        self, version: int, policy: str, segments: str = "true"
    ) -> list[DatasourceSchema]:
        return combined_schemas(
            self._store, version, self._registry, chosen(Policy, "policy", policy), segments
        )

    def _payloads(self, fingerprints: Sequence[str], as_of: AsOf) -> dict[str, str]:
        return self._store.payloads_of(fingerprints, self._store.version_as_of(as_of))
