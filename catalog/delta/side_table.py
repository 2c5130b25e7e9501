"""A side table of the catalog, such as `runs` and `audit`: created when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from catalog.delta.layout import TABLE_PROPERTY, ColumnSpec, columns_sql, ddl, properties_sql
from catalog.delta.location import Location, TableLock
from catalog.delta.session import Tuning, release
from catalog.delta.store import Store
from catalog.delta.tables import create_table, ours_exists
from catalog.delta.writer import Writer
from catalog.environment import Deadline, Environment
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The arguments of the constructor.
SideTableParts = tuple[Callable[[], "SparkSession"], Location, Path | None, Environment, Tuning]


class SideTable:
    """One such table, with a session and a lock of its own; subclasses define it."""

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
        self._lock = TableLock.of(None if entries is None else entries.parent / self.name)
        self._environment = environment
        self._tuning = tuning
        self._known = False

    @cached_property
    def _session(self) -> SparkSession:
        return self._open_session()

    @cached_property
    def store(self) -> Store:
        """Reads of the table."""
        return Store(self._session, self._location, self.name)

    @cached_property
    def writer(self) -> Writer:
        """Commits to the table."""
        return Writer(self.store, self._lock, self._environment, self._tuning)

    def close(self) -> None:
        """Ends the session, if it was used."""
        if "_session" in self.__dict__:
            release(self._session)

    def exists(self) -> bool:
        """Whether the table exists."""
        self._known = self._known or ours_exists(self._session, self.store.relation, self.name)
        return self._known

    def make(self, deadline: Deadline) -> None:
        """Creates the table, unless it exists."""
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
        """All rows; empty if the table does not exist."""
        if not self.exists():
            return spark.createDataFrame([], ddl(self.columns))
        return spark.sql(f"SELECT * FROM {self.store.relation}")
