"""The least schema that can hold the data of several, and the partial order of schemas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from catalog.errors import InvalidInput, SchemaConflict
from catalog.evolution.projection import Leeway, refusals
from catalog.evolution.widening import widest
from catalog.schema import Schema
from catalog.schema.names import child, quote, shown, type_text
from catalog.words import chosen, listed


class Policy(StrEnum):
    """What becomes of a column whose types have no common type."""

    STRICT = "strict"
    WIDEST = "widest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A column that two schemas cannot share.

    Attributes:
        path: the column, by its names from the top.
        seen: the types of the earlier and of the later schema, or both names if only their case
            differs.
        kept: the type or name that the merge continued with: the earlier (strict), the later
            (latest), or string (widest).
    """

    path: str
    seen: tuple[str, str]
    kept: str

    def __str__(self) -> str:
        earlier, later = map(shown, self.seen)
        return f"{shown(self.path)}: {earlier} and {later} have no common type"


@dataclass(frozen=True, slots=True)
class Spelling(Conflict):
    """A column whose names in two schemas differ only in case, so that Spark sees one."""

    def __str__(self) -> str:
        earlier, later = map(shown, self.seen)
        return f"{shown(self.path)}: {earlier} and {later} differ only in case"


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge, and where it had to choose."""

    schema: Schema
    conflicts: tuple[Conflict, ...] = ()


def merge(*schemas: Schema | str, policy: str = Policy.STRICT) -> Schema:
    """The least schema that can hold the data of all of these.

    A column that some of them lack may be null; columns are in the order of their first
    appearance. With the strict policy nothing else depends on the order of the schemas.

    Args:
        schemas: one or more, as schemas or as anything that `Schema.of` takes.
        policy: for columns without a common type: "strict" refuses, "widest" takes string,
            "latest" takes the type of the later schema. `merged` reports these columns.

    Raises:
        SchemaConflict: The policy is strict and a column has no common type.
    """
    wanted = chosen(Policy, "policy", policy)
    done = merged(schemas, wanted)
    if done.conflicts and wanted is Policy.STRICT:
        raise conflict_error(done.conflicts)
    return done.schema


def merged(schemas: Iterable[Schema | str], policy: str = Policy.STRICT) -> Merged:
    """Like `merge`, with the conflicts as part of the result; the strict policy then keeps the
    earlier type, and all other columns are merged."""
    wanted = chosen(Policy, "policy", policy)
    given = [Schema.of(each) for each in schemas]
    if not given:
        raise InvalidInput("merge takes at least one schema.")
    if all(each is given[0] for each in given):
        return Merged(given[0])
    return extended(Merged(given[0]), given[1:], wanted)


def extended(done: Merged, more: Iterable[Schema], policy: Policy) -> Merged:
    """A merge continued with more schemas; the cost is that of the additional ones."""
    merger = _Merger(policy)
    struct = done.schema.struct()
    for schema in more:
        struct = merger.structs(struct, schema.struct(), "")
    # The same column may be in conflict with one schema after another.
    conflicts = dict.fromkeys((*done.conflicts, *merger.conflicts))
    result = Schema.of(struct)
    # Equal schemas may differ in comments and order; those of the first one are kept.
    return Merged(done.schema if result.json == done.schema.json else result, tuple(conflicts))


def superior(a: Schema | str, b: Schema | str) -> bool:
    """Whether `a` can hold all data that `b` can: merging `b` into it does not change it."""
    first, second = Schema.of(a), Schema.of(b)
    # Without merging: the merge of two schemas may have more columns than a schema is allowed.
    return first == second or not refusals(second.struct(), first.struct(), Leeway())


def conflict_error(conflicts: tuple[Conflict, ...]) -> SchemaConflict:
    """The error for columns that do not merge."""
    return SchemaConflict(
        f"The schemas do not merge: {listed(conflicts)}. Rename a column, or merge with policy "
        '"widest" or "latest".',
        conflicts=[
            {"path": each.path, "seen": list(each.seen), "kept": each.kept} for each in conflicts
        ],
    )


class _Merger:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.conflicts: list[Conflict] = []

    def structs(self, a: StructType, b: StructType, path: str) -> StructType:
        theirs = {field.name.casefold(): field for field in b.fields}
        fields = [self._field(field, theirs.pop(field.name.casefold(), None), path) for field in a]
        fields += [_optional(field) for field in theirs.values()]
        return StructType(fields)

    def _field(self, a: StructField, b: StructField | None, path: str) -> StructField:
        if b is None:
            return _optional(a)
        name = a.name
        if b.name != name:
            name = b.name if self._policy is Policy.LATEST else name
            seen = (quote(a.name), quote(b.name))
            self.conflicts.append(Spelling(child(path, a.name), seen, quote(name)))
        kind = self._types(a.dataType, b.dataType, path, a.name)
        nullable = a.nullable or b.nullable
        metadata = {**b.metadata, **a.metadata}
        if (name, nullable, metadata) == (a.name, a.nullable, a.metadata) and kind is a.dataType:
            return a
        return StructField(name, kind, nullable, metadata)

    def _types(self, a: DataType, b: DataType, path: str, name: str | None = None) -> DataType:
        """The join of two types, of the column `name` inside `path` or of the value at `path`."""
        if a is b:  # most columns; a path is built only where it is needed
            return a
        here = path if name is None else child(path, name)
        if isinstance(a, StructType) and isinstance(b, StructType):
            return self.structs(a, b, here)
        if isinstance(a, ArrayType) and isinstance(b, ArrayType):
            element = self._types(a.elementType, b.elementType, f"{here}.element")
            return ArrayType(element, a.containsNull or b.containsNull)
        if isinstance(a, MapType) and isinstance(b, MapType):
            key = self._types(a.keyType, b.keyType, f"{here}.key")
            value = self._types(a.valueType, b.valueType, f"{here}.value")
            return MapType(key, value, a.valueContainsNull or b.valueContainsNull)
        common = widest(a, b)
        return self._conflicting(a, b, here) if common is None else common

    def _conflicting(self, a: DataType, b: DataType, path: str) -> DataType:
        kept = {Policy.STRICT: a, Policy.WIDEST: StringType(), Policy.LATEST: b}[self._policy]
        self.conflicts.append(Conflict(path, (type_text(a), type_text(b)), type_text(kept)))
        return kept


def _optional(field: StructField) -> StructField:
    if field.nullable:
        return field
    return StructField(field.name, field.dataType, True, field.metadata)
