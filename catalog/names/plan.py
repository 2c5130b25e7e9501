"""The plan of a registration, given a name and its versions: the next version, or a refusal. Pure.

Besides the mode of the name it minds columns that were dropped, which come back only with a type
that may follow the one they had, and merges three ways what was made from an older version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import IncompatibleSchema, InvalidInput, SchemaConflict, UnknownName
from catalog.evolution.compatibility import ChangeKind, Mode, compatibility
from catalog.evolution.merge import Conflict, merged
from catalog.names.model import Dropped, NameHead, Reason, Version
from catalog.schema import Schema, SchemaColumn
from catalog.schema.names import folded, parts, quote, shown

DEFAULT_MODE = Mode.BACKWARD
_SHOWN = 5
# A column's names from the top, without regard to case.
Path = tuple[str, ...]


@dataclass(frozen=True)
class NameHistory:
    """A name with all its versions, from the first to the current one, and their schemas."""

    head: NameHead
    versions: tuple[Version, ...]
    schemas: Mapping[str, Schema]

    def schema(self, number: int) -> Schema:
        """The schema of a version."""
        return self.schemas[self.versions[number - 1].fingerprint]


@dataclass(frozen=True)
class Registration:
    """A request to register a schema under a name."""

    name: str
    schema: Schema
    mode: Mode | None = None
    base: int | None = None
    force: bool = False
    note: str = ""


@dataclass(frozen=True)
class Planned:
    """The name and its newest version afterwards; `repeated` if nothing has to be written."""

    head: NameHead
    version: Version
    schema: Schema
    repeated: bool = False


def plan(history: NameHistory | None, wanted: Registration) -> Planned:
    """What has to be written.

    Raises:
        IncompatibleSchema: The mode, or a dropped column that comes back, forbids it; unless
            forced.
        SchemaConflict: It does not merge with what was registered since its base.
        UnknownName: Its base does not exist.
    """
    if history is None:
        return _first(wanted)
    head = history.head
    if wanted.mode not in (None, head.mode):
        raise InvalidInput(
            f"Schema {wanted.name} has the mode {head.mode}, not {wanted.mode}; leave mode out, or "
            "change it with set_mode first.",
            name=wanted.name,
            mode=str(wanted.mode),
        )
    schema, current = _result(history, wanted), history.schema(head.current)
    if schema == current:
        return Planned(head, history.versions[-1], current, repeated=True)
    return _next(history, wanted, schema)


def _first(wanted: Registration) -> Planned:
    if wanted.base:
        raise UnknownName(
            f"There is no schema {wanted.name}, so it has no version {wanted.base} to start from; "
            "leave base out.",
            name=wanted.name,
        )
    version = Version(1, wanted.schema.fingerprint, base=wanted.base, note=wanted.note)
    return Planned(NameHead(wanted.mode or DEFAULT_MODE, 1, 1), version, wanted.schema)


def _result(history: NameHistory, wanted: Registration) -> Schema:
    """The given schema, or its merge with what others registered since its base."""
    head, base, given = history.head, wanted.base, wanted.schema
    if base is None or base == head.current:
        return given
    if base > head.current:
        raise unknown_version(wanted.name, base, head.current)
    start = history.schema(base) if base else None
    current = history.schema(head.current)
    if given == start:
        return current  # nothing was changed, so nothing is requested
    gone = [path for path, each in head.dropped.items() if each.since > base]
    try:
        return _three_way(start, current, given, gone)
    except SchemaConflict as conflict:
        conflict.values.update(name=wanted.name, base=base, current=head.current)
        raise


def _next(history: NameHistory, wanted: Registration, schema: Schema) -> Planned:
    head, number = history.head, history.head.current + 1
    earlier = history.versions if head.mode.transitive else history.versions[-1:]
    refused = [
        *_breaks(history, earlier, schema, head.mode),
        *_wrong_returns(head.dropped, schema, head.mode),
    ]
    if refused and not wanted.force:
        raise _incompatible(wanted.name, number, head.mode, _distinct(refused))
    # Against each of them: a dropped column may have come back with another type.
    since = history.versions[head.last_breaking - 1 :]
    broken = list(_breaks(history, since, schema, Mode.BACKWARD))
    version = Version(
        number,
        schema.fingerprint,
        compatible=not broken,
        reasons=_distinct([*broken, *refused]),
        forced=bool(refused),
        base=wanted.base,
        merged=wanted.base is not None and wanted.base < head.current,
        note=wanted.note,
    )
    after = NameHead(
        head.mode,
        number,
        number if broken else head.last_breaking,
        _dropped(head.dropped, history.schema(head.current), schema, number),
    )
    return Planned(after, version, schema)


def _breaks(
    history: NameHistory, versions: Sequence[Version], schema: Schema, mode: Mode
) -> Iterator[Reason]:
    """What a mode forbids against these versions, the newest of equal ones first."""
    # Versions that go back and forth have few different schemas.
    newest = {version.fingerprint: version.number for version in versions}
    for fingerprint, number in sorted(newest.items(), key=lambda each: -each[1]):
        for change in compatibility(history.schemas[fingerprint], schema).changes:
            if not mode.allows(change):
                yield Reason.of(change, number)


def _distinct(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """The first reason for each column and kind of change."""
    found: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        found.setdefault((reason.path, reason.kind), reason)
    return tuple(found.values())


def _incompatible(
    name: str, number: int, mode: Mode, reasons: tuple[Reason, ...]
) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"The schema may not become version {number} of {name}, whose mode is {mode}: "
        f"{_some(reasons)}. Change it, or register it with force=True.",
        name=name,
        version=number,
        mode=str(mode),
        reasons=[asdict(each) for each in reasons],
    )


def unknown_version(name: str, number: int, current: int) -> UnknownName:
    """The error for a version that a name does not have."""
    return UnknownName(
        f"Schema {name} has the versions 1 to {current}, and no version {number}.",
        name=name,
        version=number,
        current=current,
    )


def _some(items: Collection[object]) -> str:
    more = f"; and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return "; ".join(map(str, list(items)[:_SHOWN])) + more


# --- dropped columns ------------------------------------------------------------------------------


def _dropped(
    before: Mapping[str, Dropped], old: Schema, new: Schema, number: int
) -> dict[str, Dropped]:
    """The dropped columns once `new` follows `old` as version `number`; nested ones by path.

    A column that comes back is forgotten, so of each only the type that it had last is known.
    """
    present = _paths(new)
    gone = {path: each for path, each in before.items() if folded(path) not in present}
    for column in old.columns:
        if folded(column.path) not in present:
            gone[column.path] = Dropped(column.type, number)
    return dict(sorted(gone.items()))


def _wrong_returns(dropped: Mapping[str, Dropped], new: Schema, mode: Mode) -> tuple[Reason, ...]:
    """Columns that come back with a type that the mode does not allow after the dropped one."""
    known = {folded(path): (path, each) for path, each in dropped.items()}
    found: dict[Path, Reason] = {}
    for column in new.columns:
        was = known.get(folded(column.path))
        for reason in () if was is None else _wrong_return(*was, column, mode):
            # A struct that comes back gives the same reasons as the columns in it.
            found.setdefault(folded(reason.path), reason)
    return tuple(found.values())


def _wrong_return(path: str, was: Dropped, now: SchemaColumn, mode: Mode) -> Iterator[Reason]:
    def reason(path: str, kind: ChangeKind, old: str | None, new: str | None) -> Reason:
        why = (
            f"it was dropped by version {was.since} as {old}, and comes back only as what may "
            "follow that"
        )
        return Reason(path, str(kind), old, new, why, was.since - 1)

    # As columns of one name: a change inside of the type has its path below that name.
    for change in compatibility(f"c {was.type}", f"c {now.type}").changes:
        if not mode.allows(change):
            yield reason(now.path + change.path[1:], change.kind, change.old, change.new)
    before, after = parts(path)[-1], parts(now.path)[-1]
    if before != after and mode is not Mode.NONE:
        yield reason(now.path, ChangeKind.RESPELLED, quote(before), quote(after))


# --- three-way merge ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InsideDropped(Conflict):
    """A column that one side added inside a column that the other side dropped."""

    def __str__(self) -> str:
        return f"{shown(self.path)} was added inside a column that the other side dropped"


def _three_way(
    base: Schema | None, current: Schema, given: Schema, dropped: Collection[str]
) -> Schema:
    """The merge of two schemas that were both made from `base`.

    `dropped` are the paths that `current` dropped since the base: they do not come back. Columns
    of the base that `given` lacks are dropped, too. Otherwise the result is superior to both.

    Raises:
        SchemaConflict: The types of a column have no common one, one side added a column inside
            one that the other dropped, or no column is left.
    """
    theirs = {folded(path) for path in dropped}
    ours = _paths(base) - _paths(given) if base is not None else set()
    lost = [*_inside(given, theirs), *_inside(current, ours)]
    if lost:
        raise _conflict(lost)
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
        raise _conflict(done.conflicts)
    return done.schema


def _conflict(conflicts: Collection[Conflict]) -> SchemaConflict:
    return SchemaConflict(
        f"What was registered since the base and what is given do not merge: {_some(conflicts)}. "
        "Start from the current version.",
        conflicts=[
            {"path": each.path, "seen": list(each.seen), "kept": each.kept} for each in conflicts
        ],
    )


def _paths(schema: Schema) -> set[Path]:
    return {folded(column.path) for column in schema.columns}


def _inside(schema: Schema, dropped: set[Path]) -> Iterator[Conflict]:
    """Columns that were not dropped themselves, but are inside of one that was."""
    for column in schema.columns:
        path = folded(column.path)
        if path not in dropped and any(path[:end] in dropped for end in range(1, len(path))):
            yield InsideDropped(column.path, ("dropped", column.type), "dropped")


def _without(schema: Schema, paths: set[Path]) -> Schema | None:
    """The schema without some columns; none if nothing is left."""
    if not paths:
        return schema
    fields = [*_fields(schema.struct().fields, paths, ())]
    return Schema.of(StructType(fields)) if fields else None


def _pruned(kind: DataType, paths: set[Path], here: Path) -> DataType | None:
    """A type without some of the columns in it; none if no column is left."""
    if isinstance(kind, StructType):
        fields = [*_fields(kind.fields, paths, here)]
        return StructType(fields) if fields else None
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


def _fields(fields: Iterable[StructField], paths: set[Path], here: Path) -> Iterator[StructField]:
    for field in fields:
        path = (*here, field.name.casefold())
        kind = None if path in paths else _pruned(field.dataType, paths, path)
        if kind is not None:
            yield StructField(field.name, kind, field.nullable, field.metadata)
