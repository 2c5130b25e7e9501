"""What a registration makes of a name and its versions: a plan, or a refusal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from catalog.errors import IncompatibleSchema, InvalidInput, SchemaConflict, UnknownName
from catalog.evolution.compatibility import Mode, compatibility
from catalog.names.dropped import remembered, wrong_returns
from catalog.names.joining import joined
from catalog.names.model import Head, Reason, Version
from catalog.schema import Schema

DEFAULT_MODE = Mode.BACKWARD
_NAMED = 5


@dataclass(frozen=True)
class History:
    """A name with all its versions, from the first to the current one, and their schemas."""

    head: Head
    versions: tuple[Version, ...]
    schemas: Mapping[str, Schema]

    @property
    def current(self) -> Version:
        return self.versions[-1]

    def schema(self, number: int) -> Schema:
        """The schema of a version."""
        return self.schemas[self.versions[number - 1].fingerprint]


@dataclass(frozen=True)
class Wanted:
    """What a caller asks for; see `Catalog.register`."""

    name: str
    schema: Schema
    mode: Mode | None = None
    base: int | None = None
    force: bool = False
    note: str = ""


@dataclass(frozen=True)
class Planned:
    """What the name and its newest version are afterwards; `repeated` if they are so already."""

    head: Head
    version: Version
    schema: Schema
    repeated: bool = False


def plan(history: History | None, wanted: Wanted) -> Planned:
    """What has to be written.

    Raises:
        IncompatibleSchema: The mode, or a column that was dropped, forbids it; unless forced.
        SchemaConflict: It does not merge with what was registered since its base.
        UnknownName: Its base is not there.
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
    schema = _result(history, wanted)
    if schema == history.schema(head.current):
        return Planned(head, history.current, history.schema(head.current), repeated=True)
    return _next(history, wanted, schema)


def _first(wanted: Wanted) -> Planned:
    if wanted.base:
        raise UnknownName(
            f"There is no schema {wanted.name}, so it has no version {wanted.base} to start from; "
            "leave base out.",
            name=wanted.name,
        )
    version = Version(1, wanted.schema.fingerprint, base=wanted.base, note=wanted.note)
    return Planned(Head(wanted.mode or DEFAULT_MODE, 1, 1), version, wanted.schema)


def _result(history: History, wanted: Wanted) -> Schema:
    """The schema as it is given, or its merge with what others registered since its base."""
    head, base, given = history.head, wanted.base, wanted.schema
    if base is None or base == head.current:
        return given
    if base > head.current:
        raise unknown_version(wanted.name, base, head.current)
    start = history.schema(base) if base else None
    current = history.schema(head.current)
    if given == start:
        return current  # who changed nothing asks for nothing
    gone = [path for path, each in head.dropped.items() if each.since > base]
    try:
        return joined(start, current, given, gone)
    except SchemaConflict as conflict:
        conflict.values.update(name=wanted.name, base=base, current=head.current)
        raise


def _next(history: History, wanted: Wanted, schema: Schema) -> Planned:
    head, number = history.head, history.head.current + 1
    asked = history.versions if head.mode.transitive else history.versions[-1:]
    refused = list(_breaks(history, asked, schema, head.mode))
    refused += wrong_returns(head.dropped, schema, head.mode)
    if refused and not wanted.force:
        raise incompatible(wanted.name, number, head.mode, distinct(refused))
    # Against each of them: a column that was dropped may have come back otherwise than it was.
    since = history.versions[head.last_breaking - 1 :]
    broken = list(_breaks(history, since, schema, Mode.BACKWARD))
    version = Version(
        number,
        schema.fingerprint,
        compatible=not broken,
        reasons=distinct([*broken, *refused]),
        forced=bool(refused),
        base=wanted.base,
        merged=wanted.base is not None and wanted.base < head.current,
        note=wanted.note,
    )
    after = Head(
        head.mode,
        number,
        number if broken else head.last_breaking,
        remembered(head.dropped, history.schema(head.current), schema, number),
    )
    return Planned(after, version, schema)


def _breaks(
    history: History, versions: Sequence[Version], schema: Schema, mode: Mode
) -> Iterator[Reason]:
    """What a mode forbids against these versions, the newest of equal ones first."""
    # Versions that come and go are often the same few schemas.
    newest = {version.fingerprint: version.number for version in versions}
    for fingerprint, number in sorted(newest.items(), key=lambda each: -each[1]):
        for change in compatibility(history.schemas[fingerprint], schema).changes:
            if not mode.allows(change):
                yield Reason.of(change, number)


def distinct(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """One reason for each column and kind of change, the first."""
    found: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        found.setdefault((reason.path, reason.kind), reason)
    return tuple(found.values())


def incompatible(
    name: str, number: int, mode: Mode, reasons: tuple[Reason, ...]
) -> IncompatibleSchema:
    """The refusal of a schema that may not follow those before it."""
    named = "; ".join(map(str, islice(reasons, _NAMED)))
    more = f"; and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    return IncompatibleSchema(
        f"The schema may not become version {number} of {name}, whose mode is {mode}: "
        f"{named}{more}. Change it, or register it with force=True.",
        name=name,
        version=number,
        mode=str(mode),
        reasons=[asdict(each) for each in reasons],
    )


def unknown_version(name: str, number: int, current: int) -> UnknownName:
    """The refusal of a version that a name does not have."""
    return UnknownName(
        f"Schema {name} has the versions 1 to {current}, and no version {number}.",
        name=name,
        version=number,
        current=current,
    )
