"""A table beside the entries: made when it is first needed, and no part of the catalog itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from catalog.delta.layout import TABLE_PROPERTY, ColumnSpec, properties_sql
from catalog.delta.location import Location
from catalog.delta.lock import TableLock
from catalog.delta.opening import create_table, ours_exists
from catalog.delta.session import Tuning, release
from catalog.delta.store import Store
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Beside:
    """One such table, with a session and a lock of its own; a class below says which."""

    name: ClassVar[str]
    comment: ClassVar[str]
    columns: ClassVar[Sequence[ColumnSpec]]
    properties: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        location: Location,
        entries: Path | None,
        environment: Environment,
        tuning: Tuning,
    ) -> None:
        self._open_session = open_session
        self._location = location
        self._lock = TableLock.beside(None if entries is None else entries.parent / self.name)
        self._environment = environment
        self._tuning = tuning
        self._known = False

    @cached_property
    def _session(self) -> SparkSession:
        return self._open_session()

    @cached_property
    def store(self) -> Store:
        """The table as it is read."""
        return Store(self._session, self._location, self.name)

    @cached_property
    def writer(self) -> Writer:
        """The one way to write the table."""
        return Writer(self.store, self._lock, self._environment, self._tuning)

    def close(self) -> None:
        """Ends the session, if there was need of one."""
        if "_session" in self.__dict__:
            release(self._session)

    def exists(self) -> bool:
        """Whether the table was made yet."""
        self._known = self._known or ours_exists(self._session, self.store.relation, self.name)
        return self._known

    def make(self, deadline: Deadline) -> None:
        """Makes the table, unless it is there."""
        if self.exists():
            return
        properties = {TABLE_PROPERTY: self.name, **self.properties}
        columns = columns_sql(self.columns)
        with self._lock.held(deadline), deadline.not_counting():
            create_table(
                self._session,
                f"CREATE TABLE IF NOT EXISTS {self.store.relation} ({columns}) USING DELTA "
                f"COMMENT {literal(self.comment)} TBLPROPERTIES ({properties_sql(properties)})",
                self.store.relation,
            )

    def frame(self, spark: SparkSession) -> DataFrame:
        """All rows; none if the table was not made yet."""
        if not self.exists():
            return spark.createDataFrame([], ddl(self.columns))
        return spark.sql(f"SELECT * FROM {self.store.relation}")


def columns_sql(columns: Iterable[ColumnSpec]) -> str:
    """The columns as a statement adds them, with their comments."""
    return ", ".join(f"{c.name} {c.type} COMMENT {literal(c.comment)}" for c in columns)


def ddl(columns: Sequence[ColumnSpec]) -> str:
    """The columns as the schema of a frame."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)
