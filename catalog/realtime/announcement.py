"""What a writer says of its open segments, as values and as the JSON document that carries them.

    {"format": 1, "writer": "w", "session": "5e…", "beat": 7,
     "renewed_at": "2024-05-01T10:00:00+00:00", "ttl": 120.0,
     "base": {"sequence": 1, "segments": {"<id>": {"schema": "<fingerprint>", "num_rows": 5}}},
     "deltas": [{"sequence": 2, "segments": {"<id>": …}, "gone": ["<id>"]}],
     "schemas": {"<fingerprint>": {"type": "struct", "fields": […]}}}

A delta has new segments as the base has them. Of a known one it has the new and widened columns,
with the fingerprint of the result, or only the rows:

    {"columns": [<Spark's JSON of a field>], "result": "<fingerprint>", "num_rows": 9}
    {"num_rows": 9}

Within a session a sequence number stands for one content for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any

from catalog.errors import InvalidInput, InvalidSchema
from catalog.model import LARGEST_COUNT, check_segment_id
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.schema.spark_json import compact

FORMAT = 1
LONGEST_TTL = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Announced:
    """What is known of an open segment: its schema so far, and its rows if they are counted."""

    schema: Schema
    num_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", Schema.of(self.schema))
        if self.num_rows is not None:
            _check_number("num_rows", self.num_rows, least=0)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a known segment: its rows, and the new and widened columns if there are any.

    `result` is the fingerprint of the schema that the columns lead to.
    """

    num_rows: int | None
    columns: Schema | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """All that a writer announces after the delta with this sequence number."""

    sequence: int = 0
    segments: Mapping[str, Announced] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delta:
    """What leads to the state with this sequence number from the one before it."""

    sequence: int
    segments: Mapping[str, Announced | Change] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a delta does not fit a state: something between them was missed, or is damaged."""

    why: str


@dataclass(frozen=True, slots=True)
class Document:
    """A writer's file: one absolute state, and the deltas since.

    Attributes:
        session: random id of one announcer's life.
        beat: counts the writes of a session, also those that change nothing.
        renewed_at: when it was written, by the writer's clock.
        ttl: for how many seconds it is good.
    """

    writer: str
    session: str
    beat: int
    renewed_at: datetime
    ttl: float
    base: State = State()
    deltas: tuple[Delta, ...] = ()

    def __post_init__(self) -> None:
        _check_number("beat", self.beat, least=1)
        if self.renewed_at.utcoffset() is None:
            raise _malformed("renewed_at must have a time zone", self.renewed_at)
        if not 0 < self.ttl <= LONGEST_TTL:
            raise _malformed(f"ttl must be above 0 and at most {LONGEST_TTL:.0f} s", self.ttl)

    @property
    def sequence(self) -> int:
        """The sequence number that it ends with."""
        return self.deltas[-1].sequence if self.deltas else self.base.sequence

    def expired(self, now: datetime) -> bool:
        """Whether it is no longer good, for who trusts the writer's clock."""
        return now - self.renewed_at >= timedelta(seconds=self.ttl)

    def to_json(self) -> str:
        """The document as JSON, in which each schema stands once."""
        schemas: dict[str, str] = {}
        document = {
            "format": FORMAT,
            "writer": self.writer,
            "session": self.session,
            "beat": self.beat,
            "renewed_at": self.renewed_at.astimezone(UTC).isoformat(),
            "ttl": float(self.ttl),
            "base": _written(self.base, schemas),
            "deltas": [_written(each, schemas) | {"gone": each.gone} for each in self.deltas],
            "schemas": {key: json.loads(text) for key, text in schemas.items()},
        }
        return compact(document)

    @classmethod
    def from_json(cls, text: str | bytes) -> Document:
        """The document in a text; what is none is refused with `InvalidInput`."""
        try:
            return _document(json.loads(text))
        except InvalidInput:
            raise
        except (ValueError, OverflowError, RecursionError) as error:
            raise _malformed(f"it cannot be read ({error})") from None


def change(before: Announced | None, after: Announced) -> Announced | Change | None:
    """The least that leads from what was known of a segment to what is now; none if nothing did."""
    if before is None:
        return after
    if before.schema.json == after.schema.json:
        return None if before.num_rows == after.num_rows else Change(after.num_rows)
    old, new = _fields(before.schema), _fields(after.schema)
    if list(new)[: len(old)] != list(old):
        return after
    columns = _schema(each for name, each in new.items() if old.get(name) != each)
    return Change(after.num_rows, columns, after.schema.fingerprint)


def apply(state: State, delta: Delta) -> State | Gap:
    """The state after a delta, or why the delta does not follow it."""
    if delta.sequence != state.sequence + 1:
        return Gap(f"delta {delta.sequence} does not follow {state.sequence}")
    segments = dict(state.segments)
    for segment_id, each in delta.segments.items():
        after = each if isinstance(each, Announced) else _after(segments.get(segment_id), each)
        if isinstance(after, Gap):
            return Gap(f"delta {delta.sequence} does not fit segment {segment_id}: {after.why}")
        segments[segment_id] = after
    for segment_id in delta.gone:
        if segments.pop(segment_id, None) is None:
            return Gap(f"delta {delta.sequence} ends segment {segment_id}, which was not announced")
    return State(delta.sequence, segments)


def replay(state: State, deltas: Iterable[Delta]) -> State | Gap:
    """The state after those of the deltas that are newer than it."""
    for delta in deltas:
        if delta.sequence > state.sequence:
            after = apply(state, delta)
            if isinstance(after, Gap):
                return after
            state = after
    return state


def _after(before: Announced | None, each: Change) -> Announced | Gap:
    if before is None:
        return Gap("it has no base")
    if each.columns is None:
        return Announced(before.schema, each.num_rows)
    try:
        # A known column keeps its place and a new one goes to the end, as in a merge.
        schema = _schema((_fields(before.schema) | _fields(each.columns)).values())
    except InvalidSchema as error:
        return Gap(error.message)
    if schema.fingerprint != each.result:
        return Gap(f"the result is schema {schema.fingerprint}, not {each.result}")
    return Announced(schema, each.num_rows)


def _fields(schema: Schema) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(schema.json)["fields"]}


def _schema(fields: Iterable[Any]) -> Schema:
    # As text, because a text that was parsed once is remembered.
    return Schema.of(compact({"type": "struct", "fields": list(fields)}, sort_keys=True))


def _written(part: State | Delta, schemas: dict[str, str]) -> dict[str, Any]:
    segments = {name: _segment(each, schemas) for name, each in part.segments.items()}
    return {"sequence": part.sequence, "segments": segments}


def _segment(each: Announced | Change, schemas: dict[str, str]) -> dict[str, Any]:
    if isinstance(each, Announced):
        return {"schema": _key(each.schema, schemas), "num_rows": each.num_rows}
    if each.columns is None:
        return {"num_rows": each.num_rows}
    columns = list(_fields(each.columns).values())
    return {"columns": columns, "result": each.result, "num_rows": each.num_rows}


def _key(schema: Schema, schemas: dict[str, str]) -> str:
    """What segments refer to a schema by: its fingerprint, with a number behind it if the document
    has the fingerprint already with other comments or another order of columns.
    """
    key, number = schema.fingerprint, 1
    while schemas.setdefault(key, schema.json) != schema.json:
        number += 1
        key = f"{schema.fingerprint}#{number}"
    return key


def _document(document: Any) -> Document:
    found = document.get("format") if isinstance(document, dict) else None
    if type(found) is not int or found != FORMAT:
        raise _malformed(f"it must be a JSON object of format {FORMAT}", found)
    schemas = {key: _stored(key, each) for key, each in _get(document, "schemas", dict).items()}
    base = _delta(_get(document, "base", dict) | {"gone": []}, schemas)
    state = apply(State(base.sequence - 1), base)
    if isinstance(state, Gap):
        raise _malformed(f"its base is not absolute, {state.why}")
    return Document(
        _get(document, "writer", str),
        _get(document, "session", str),
        _get(document, "beat", int),
        datetime.fromisoformat(_get(document, "renewed_at", str)),
        _get(document, "ttl", float),
        state,
        tuple(_delta(each, schemas) for each in _get(document, "deltas", list)),
    )


def _delta(document: Any, schemas: dict[str, Schema]) -> Delta:
    segments, gone = _get(document, "segments", dict), _get(document, "gone", list)
    for segment_id in (*segments, *gone):
        check_segment_id(segment_id)
    changes = {name: _change(each, schemas) for name, each in segments.items()}
    return Delta(_get(document, "sequence", int), changes, tuple(gone))


def _change(document: Any, schemas: dict[str, Schema]) -> Announced | Change:
    num_rows = _get(document, "num_rows", int, NoneType)
    if "schema" in document:
        key = _get(document, "schema", str)
        if key not in schemas:
            raise _malformed("a segment refers to a schema that is not there", key)
        return Announced(schemas[key], num_rows)
    _check_number("num_rows", num_rows or 0, least=0)
    if "columns" not in document:
        return Change(num_rows)
    return Change(num_rows, _schema(_get(document, "columns", list)), _get(document, "result", str))


def _stored(key: str, document: Any) -> Schema:
    schema = Schema.of(compact(document, sort_keys=True))
    if schema.fingerprint != key.partition("#")[0]:
        raise _malformed(f"what stands as schema {shown(key)} is {schema.fingerprint}")
    return schema


def _get(document: Any, key: str, *kinds: type) -> Any:
    if not isinstance(document, dict) or key not in document:
        raise _malformed(f"an object with {key} is expected", document)
    if type(document[key]) not in kinds:
        raise _malformed(f"{key} must be of type {kinds[0].__name__}", document[key])
    return document[key]


def _check_number(name: str, number: Any, least: int) -> None:
    if type(number) is not int or not least <= number <= LARGEST_COUNT:
        raise _malformed(f"{name} must be a whole number from {least} to 2^63-1", number)


def _malformed(problem: str, *value: Any) -> InvalidInput:
    found = "".join(f", not {shown(repr(each))}" for each in value)
    return InvalidInput(f"The announcement is malformed: {problem}{found}.", problem=problem)
