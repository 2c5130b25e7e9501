"""The questions that a cache and a broadcast handle answer alike, from the snapshot they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from catalog.cache.expectation import Told, check_expect, mismatch, told_by
from catalog.cache.snapshot import Snapshot
from catalog.evolution.merge import Policy
from catalog.read.datasource import DatasourceSchema
from catalog.schema import Schema


class Answers(ABC):
    """Answers from one snapshot."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that is asked."""

    def schema_of(self, segment_id: str, *, expect: Schema | str | None = None) -> Schema:
        """The schema of a segment; raises `NotInSnapshot` with the version.

        With `expect`, a whole fingerprint or a schema, the answer has that fingerprint. A cache
        that says otherwise polls and looks again, three times 100 ms apart; a broadcast handle
        cannot. If it stays so, `SchemaVersionMismatch` says what was expected, what was found, and
        at which version.
        """
        if expect is not None:
            return self._as_expected(segment_id, check_expect(expect))
        return self.snapshot.schema_of(segment_id)

    def fingerprint_of(self, segment_id: str, *, expect: Schema | str | None = None) -> str | None:
        """The fingerprint of a segment's schema; none if its schema is not known.

        With `expect` it is that of `expect`, or an error; see `schema_of`.
        """
        if expect is not None:
            return self._as_expected(segment_id, check_expect(expect)).fingerprint
        return self.snapshot.fingerprint_of(segment_id)

    def num_rows(self, segment_id: str) -> int | None:
        """The row count of a segment."""
        return self.snapshot.num_rows(segment_id)

    def schema(self, beginning: str) -> Schema:
        """The schema with this fingerprint, or with any unique beginning of it."""
        return self.snapshot.schema(beginning)

    def lookup(self, segment_ids: Any) -> pa.Table:
        """Answers many ids at once; see `Snapshot.lookup`."""
        return self.snapshot.lookup(segment_ids)

    def lookup_keys(self, k1: Any, k2: Any) -> pa.Table:
        """Answers keys that Spark computed; see `Snapshot.lookup_keys`."""
        return self.snapshot.lookup_keys(k1, k2)

    def datasources(self) -> dict[str, int]:
        """How many segments each datasource has."""
        return self.snapshot.datasources()

    def datasource_schema(self, datasource: str, policy: str = Policy.STRICT) -> DatasourceSchema:
        """The schema of a datasource; see `Snapshot.datasource_schema`."""
        return self.snapshot.datasource_schema(datasource, policy)

    def _told(self, segment_id: str) -> Told:
        """What is known of a segment's schema now, and at which version."""
        return told_by(self.snapshot, segment_id)

    def _as_expected(self, segment_id: str, expected: str) -> Schema:
        """The schema with this fingerprint, if the segment has it."""
        told = self._told(segment_id)
        schema = told.as_expected(expected)
        if schema is None:
            advice = (
                "a broadcast handle stays at its version. Poll the cache and make a new handle."
            )
            raise mismatch(segment_id, expected, told, advice) from told.reason
        return schema
