"""Two schemas that were made from one: the merge of both, without what either of them dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import SchemaConflict
from catalog.evolution.merge import Conflict, merged
from catalog.schema import Schema
from catalog.schema.names import folded, shown

Path = tuple[str, ...]
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Inside(Conflict):
    """A column that one side added inside a column that the other side dropped."""

    def __str__(self) -> str:
        return f"{shown(self.path)} was added inside a column that the other side dropped"


def joined(base: Schema | None, current: Schema, given: Schema, dropped: Collection[str]) -> Schema:
    """What both sides made of `base`, together.

    `dropped` are the paths that others dropped since the base: they do not come back. What `given`
    lacks of the base is dropped, too. Otherwise the result is superior to both.

    Raises:
        SchemaConflict: The types of a column have no common one, one side added a column inside
            one that the other dropped, or no column is left.
    """
    theirs = {folded(path) for path in dropped}
    ours = _paths(base) - _paths(given) if base is not None else set()
    lost = [*_inside(given, theirs), *_inside(current, ours)]
    if lost:
        raise _refusal(lost)
    sides = [
        each for each in (_without(current, ours), _without(given, theirs)) if each is not None
    ]
    if not sides:
        raise SchemaConflict(
            "Together the two sides dropped every column, and no schema is left; start from the "
            "current version.",
            conflicts=[],
        )
    done = merged(sides)
    if done.conflicts:
        raise _refusal(done.conflicts)
    return done.schema


def _refusal(conflicts: Collection[Conflict]) -> SchemaConflict:
    named = "; ".join(str(each) for each in list(conflicts)[:_NAMED])
    more = f"; and {len(conflicts) - _NAMED} more" if len(conflicts) > _NAMED else ""
    return SchemaConflict(
        f"What was registered since the base and what is given do not merge: {named}{more}. Start "
        "from the current version.",
        conflicts=[
            {"path": each.path, "seen": list(each.seen), "kept": each.kept} for each in conflicts
        ],
    )


def _paths(schema: Schema) -> set[Path]:
    return {folded(column.path) for column in schema.columns}


def _inside(schema: Schema, dropped: set[Path]) -> Iterator[Conflict]:
    """Columns that are not among the dropped ones themselves, but inside of one."""
    for column in schema.columns:
        path = folded(column.path)
        if path in dropped:
            continue
        if any(path[:end] in dropped for end in range(1, len(path))):
            yield Inside(column.path, ("dropped", column.type), "dropped")


def _without(schema: Schema, paths: set[Path]) -> Schema | None:
    """The schema without some columns; none if nothing is left."""
    if not paths:
        return schema
    left = _struct(schema.struct(), paths, ())
    return None if left is None else Schema.of(left)


def _struct(struct: StructType, paths: set[Path], here: Path) -> StructType | None:
    fields = [field for each in struct.fields if (field := _field(each, paths, here)) is not None]
    return StructType(fields) if fields else None


def _pruned(kind: DataType, paths: set[Path], here: Path) -> DataType | None:
    """A type without some of the columns in it; none for what has no columns left."""
    if isinstance(kind, StructType):
        return _struct(kind, paths, here)
    if isinstance(kind, ArrayType):
        element = _pruned(kind.elementType, paths, (*here, "element"))
        return None if element is None else ArrayType(element, kind.containsNull)
    if isinstance(kind, MapType):
        key = _pruned(kind.keyType, paths, (*here, "key"))
        value = _pruned(kind.valueType, paths, (*here, "value"))
        if key is None or value is None:
            return None
        return MapType(key, value, kind.valueContainsNull)
    return kind


def _field(field: StructField, paths: set[Path], here: Path) -> StructField | None:
    path = (*here, field.name.casefold())
    kind = None if path in paths else _pruned(field.dataType, paths, path)
    return None if kind is None else StructField(field.name, kind, field.nullable, field.metadata)
