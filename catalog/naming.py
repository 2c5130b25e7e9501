"""Named schemas: the verbs of `Catalog` for schemas with a name and numbered versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from catalog.delta.store import AsOf
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import Mode, compatibility
from catalog.model import check_actor, check_positive
from catalog.names.model import ModeSet, NamedSchema, Registered, StillWorks, check_name
from catalog.names.plan import Registration
from catalog.names.store import Registrar, stored_name
from catalog.operating import Operating
from catalog.schema import Schema
from catalog.words import chosen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Naming(Operating):
    """The verbs of `Catalog` on named schemas."""

    _registrar: Registrar

    def register(
        self,
        name: str,
        schema: Schema | str | StructType | pa.Schema | Mapping[str, Any],
        *,
        mode: str | None = None,
        base: int | None = None,
        force: bool = False,
        note: str = "",
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> Registered:
        """Makes a schema the next version of a name; the current one again is no change.

        Args:
            name: a text without a slash, such as "orders".
            schema: anything that `Schema.of` takes.
            mode: how versions must get on with those before them, for a name that is not there
                yet: one of the modes of `judge`, "backward" if not given. `set_mode` changes it.
            base: the version that the schema was made from, 0 if there was none. If others have
                registered since, the new version is the merge of theirs and this one. Without it
                the schema is taken as it is, and columns that it lacks are dropped.
            force: register it though the mode forbids it, or a column comes back as something else
                than it was; that is recorded.
            note: a text that is kept with the version.
            dry_run: only say what would be done.
            actor: who registers.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            IncompatibleSchema: It may not follow the versions before it, and is not forced.
            SchemaConflict: It does not merge with what was registered since its base.
            UnknownName: There is no version `base`.
        """
        wanted = Registration(
            check_name(name),
            Schema.of(schema),
            None if mode is None else chosen(Mode, "mode", mode),
            _base(base),
            force,
            check_actor("note", note),
        )
        if dry_run:
            return self._registrar.rehearse(wanted)
        self._check_writable()
        asking = self._asking(actor, reason, deadline)
        return self._queue.alone(lambda: self._registrar.register(wanted, asking), asking.deadline)

    def set_mode(
        self,
        name: str,
        mode: str,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> ModeSet:
        """Gives a name another mode; later registrations are judged by it, past ones are not."""
        self._check_writable()
        check_name(name)
        wanted = chosen(Mode, "mode", mode)
        asking = self._asking(actor, reason, deadline)
        return self._queue.alone(
            lambda: self._registrar.set_mode(name, wanted, asking), asking.deadline
        )

    def named_schema(
        self, name: str, version: int | None = None, as_of: AsOf = None
    ) -> NamedSchema:
        """A version of a named schema, the current one if no number is given.

        Raises:
            UnknownName: There is no such name, or no such version of it.
        """
        if version is not None:
            check_positive("version", version)
        at = self._store.version_as_of(as_of)
        found = stored_name(self._store, check_name(name), at)
        schema = self.schema(found.version(version).version.fingerprint, at)
        return found.named(version, schema)

    def still_works(self, name: str, version: int, as_of: AsOf = None) -> StillWorks:
        """Whether what was made with a version still works: no later version is a breaking one.

        Then data of that version can be read in the current schema.
        """
        check_positive("version", version)
        at = self._store.version_as_of(as_of)
        found = stored_name(self._store, check_name(name), at)
        old, new = (
            self.schema(found.version(number).version.fingerprint, at) for number in (version, None)
        )
        return StillWorks(
            name=name,
            version=version,
            current=found.head.current,
            last_breaking=found.head.last_breaking,
            breaking={
                number: each.version.reasons
                for number, each in found.versions.items()
                if number > version and each.version.breaking
            },
            compatibility=compatibility(old, new),
        )

    def named_schemas(self, as_of: AsOf = None) -> DataFrame:
        """Named schemas with their modes and current versions, as a frame."""
        return self._view("named_schemas", as_of)

    def schema_versions(self, name: str | None = None, as_of: AsOf = None) -> DataFrame:
        """Versions of all named schemas or of one, as a frame."""
        frame = self._view("schema_versions", as_of)
        return frame if name is None else frame.where(F.col("name") == F.lit(check_name(name)))


def _base(base: Any) -> int | None:
    if base is not None and (isinstance(base, bool) or not isinstance(base, int) or base < 0):
        raise InvalidInput(
            f"base is the number of a version, or 0 if there was none, not {base!r}.", base=base
        )
    return base
