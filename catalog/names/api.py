"""`catalog.names`: schemas with a name, numbered versions and a compatibility mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from catalog.commit.committer import Committer
from catalog.context import CallOptions, Context
from catalog.delta.store import AsOf
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import Mode, compatibility
from catalog.model import check_actor, check_positive
from catalog.names.model import ModeSet, NamedSchema, Registered, StillWorks, check_name
from catalog.names.plan import Registration
from catalog.names.store import Registrar, stored_name
from catalog.schema import Schema
from catalog.words import chosen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# Gives the schema of a fingerprint at a version.
FindSchema = Callable[[str, int], Schema]


class NamesApi:
    """Named schemas. `catalog.inspect.named_schemas()` lists them."""

    def __init__(self, context: Context, committer: Committer, find_schema: FindSchema) -> None:
        self._context = context
        self._registrar = Registrar(committer)
        self._find_schema = find_schema

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
        **options: Unpack[CallOptions],
    ) -> Registered:
        """Makes a schema the next version of a name; the current one again is no change.

        Args:
            name: a text without a slash, such as "orders".
            schema: anything that `Schema.of` takes.
            mode: for a new name, how a version must be compatible with those before it: one of the
                modes of `judge`, by default "backward". `set_mode` changes it.
            base: the version that the schema was made from, 0 if there was none. If others have
                registered since, the new version is the merge of theirs and this one. Without it
                the schema is taken as it is, and columns that it lacks are dropped.
            force: register it though the mode forbids it, or a dropped column comes back with
                another type; that is recorded.
            note: a text that is kept with the version.
            dry_run: only report what would be done.

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
        call = self._context.writing(**options)
        return self._context.alone(call, lambda: self._registrar.register(wanted, call))

    def get(self, name: str, version: int | None = None, as_of: AsOf = None) -> NamedSchema:
        """A version of a named schema; without a number the current one.

        Raises:
            UnknownName: There is no such name, or no such version of it.
        """
        if version is not None:
            check_positive("version", version)
        at = self._context.version(as_of)
        found = stored_name(self._context.store, check_name(name), at)
        schema = self._find_schema(found.version(version).version.fingerprint, at)
        return found.named(version, schema)

    def versions(self, name: str, as_of: AsOf = None) -> tuple[NamedSchema, ...]:
        """All versions of a named schema, the first one first.

        Raises:
            UnknownName: There is no such name.
        """
        at = self._context.version(as_of)
        found = stored_name(self._context.store, check_name(name), at)
        versions = [each.version for _, each in sorted(found.versions.items())]
        schemas = self._context.store.schemas_of({each.fingerprint for each in versions}, at)
        return tuple(found.named(each.number, schemas[each.fingerprint]) for each in versions)

    def set_mode(self, name: str, mode: str, **options: Unpack[CallOptions]) -> ModeSet:
        """Gives a name another compatibility mode, for later registrations."""
        check_name(name)
        wanted = chosen(Mode, "mode", mode)
        call = self._context.writing(**options)
        return self._context.alone(call, lambda: self._registrar.set_mode(name, wanted, call))

    def still_works(self, name: str, version: int, as_of: AsOf = None) -> StillWorks:
        """Whether readers of a version still work: no later version is a breaking one.

        Then data of that version can be read in the current schema.
        """
        check_positive("version", version)
        at = self._context.version(as_of)
        found = stored_name(self._context.store, check_name(name), at)
        old, new = (
            self._find_schema(found.version(number).version.fingerprint, at)
            for number in (version, None)
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


def _base(base: Any) -> int | None:
    if base is not None and (isinstance(base, bool) or not isinstance(base, int) or base < 0):
        raise InvalidInput(
            f"base is the number of a version, or 0 if there was none, not {base!r}.", base=base
        )
    return base
