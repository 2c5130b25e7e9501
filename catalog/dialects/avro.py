"""Avro schemas to Spark's and back; fastavro judges what others wrote.

What Avro can hold but not say (`varchar(10)`, `smallint`, a collation) is noted in the attribute
`spark.type`, so that every type with an Avro form comes back as it was. Names that Avro does not
have and unions of several types are refused: a renamed or widened column would be another schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from catalog.dialects import avrotypes, notes
from catalog.dialects.avronames import PRIMITIVE, Names, check_field_name, check_record_name, parsed
from catalog.dialects.documents import plain
from catalog.dialects.translation import (
    Findings,
    Reading,
    Translation,
    Unsaid,
    metadata_unsaid,
    refused,
)
from catalog.schema import Schema, atoms
from catalog.schema.names import child, shown

_NOTE = "spark.type"
_KEY_NOTE = "spark.key.type"
# Spark's own note, on the intervals that it writes.
_SPARKS_NOTE = "spark.sql.catalyst.type"

_QUIET = frozenset({"type", "name", "fields", "items", "values", "avro.java.string"})


def to_avro(schema: Schema, *, name: str = "record", namespace: str | None = None) -> Translation:
    """The Avro record of a schema.

    Args:
        name: The record's name; those of the structs inside begin with it.
        namespace: Names joined by dots, if the record has one.

    Raises:
        InvalidSchema: A column has a type or a name that Avro has not; the message has its path.
    """
    check_record_name(name, namespace)
    writer = _Writer(name)
    document = writer.record(schema.struct(), "", name)
    if namespace is not None:
        document = {"type": "record", "name": name, "namespace": namespace} | document
    return Translation(document, tuple(writer.unsaid))


def from_avro(document: Mapping[str, Any] | str) -> Reading:
    """The schema of an Avro record, given as a mapping or as JSON text.

    Raises:
        InvalidSchema: The document is not valid Avro, or holds what Spark has no equal of.
    """
    top, named = parsed(plain(document))
    if top["type"] not in _RECORDS:
        kind = shown(str(top["type"]))
        raise refused("", f"must be a record in Avro, not {kind}; wrap it in a record", kind)
    reader = _Reader(named)
    struct = reader.record(top, "", 0, frozenset())
    return Reading(Schema.of(struct), tuple(reader.findings.unsaid))


# --- to Avro ---


class _Writer:
    def __init__(self, name: str) -> None:
        self.unsaid: list[Unsaid] = []
        self._names = Names(name)

    def record(self, struct: StructType, path: str, name: str) -> dict[str, Any]:
        fields = [self._field(field, path) for field in struct.fields]
        return {"type": "record", "name": name, "fields": fields}

    def _field(self, field: StructField, path: str) -> dict[str, Any]:
        here = child(path, field.name)
        check_field_name(field.name, here)
        self.unsaid.extend(metadata_unsaid(field, here))
        made = {"name": field.name, "type": self._value(field.dataType, field.nullable, here)}
        if (comment := field.metadata.get("comment")) is not None:
            made["doc"] = comment
        return made | ({"default": None} if field.nullable else {})

    def _value(self, kind: DataType, nullable: bool, path: str) -> Any:
        made = self._type(kind, path)
        if made == "null":
            if not nullable:
                raise refused(
                    path, "is void and never null; let it be null or leave it out", "void"
                )
            return made
        return ["null", made] if nullable else made

    def _type(self, kind: DataType, path: str) -> Any:
        if isinstance(kind, StructType):
            return self.record(kind, path, self._names.of(path))
        if isinstance(kind, ArrayType):
            element = self._value(kind.elementType, kind.containsNull, f"{path}.element")
            return {"type": "array", "items": element}
        if isinstance(kind, MapType):
            key = self._key(kind.keyType, f"{path}.key")
            value = self._value(kind.valueType, kind.valueContainsNull, f"{path}.value")
            return {"type": "map", "values": value, **key}
        return self._atom(kind, path, _NOTE)

    def _atom(self, kind: DataType, path: str, note: str) -> Any:
        made = avrotypes.written(kind)
        text = atoms.text_of(kind)
        if made is None:
            raise refused(
                path,
                f"has type {text}, which Avro has no equal of; cast it, for instance to string, or "
                "leave it out",
                text,
            )
        if not notes.same(avrotypes.plainly(kind), kind):
            words = made.get("logicalType", made["type"])
            self.unsaid.append(Unsaid(path, notes.lost(kind, words)))
            made[note] = text
        return made["type"] if len(made) == 1 else made

    def _key(self, kind: DataType, path: str) -> dict[str, Any]:
        if not isinstance(kind, notes.TEXT):
            raise refused(
                path,
                "is not text, and the keys of Avro maps are; cast it to string, or use an array of "
                "structs of key and value",
                str(kind),
            )
        made = self._atom(kind, path, _KEY_NOTE)
        return {_KEY_NOTE: made[_KEY_NOTE]} if isinstance(made, dict) else {}


# --- from Avro ---

_RECORDS = ("record", "error")


class _Reader:
    def __init__(self, named: Mapping[str, dict[str, Any]]) -> None:
        self.findings = Findings(_QUIET)
        self._named = named

    def record(
        self, found: dict[str, Any], path: str, depth: int, inside: frozenset[str]
    ) -> StructType:
        name = found["name"]
        if name in inside:
            raise refused(
                path,
                f"has the record {shown(name)} inside itself, and Spark's columns end somewhere; "
                "unroll it to the depth that the data has",
                name,
            )
        self.findings.meet(path, depth, found)
        self.findings.leave_out(path, found, ())
        inner = inside | {name}
        return StructType([self._field(field, path, depth, inner) for field in found["fields"]])

    def _field(
        self, found: dict[str, Any], path: str, depth: int, inside: frozenset[str]
    ) -> StructField:
        name, comment = found["name"], found.get("doc")
        if not isinstance(name, str):
            raise refused(path, f"has a field named {shown(repr(name))}; use text", name)
        here = child(path, name)
        if comment is not None and not isinstance(comment, str):
            raise refused(here, f"has the doc {shown(repr(comment))}; use text", comment)
        kind, nullable = self._value(found["type"], here, depth, inside)
        plain_default = nullable and found.get("default") is None
        self.findings.leave_out(here, found, {"doc", "default"} if plain_default else {"doc"})
        return StructField(name, kind, nullable, None if comment is None else {"comment": comment})

    def _value(
        self, found: Any, path: str, depth: int, inside: frozenset[str]
    ) -> tuple[DataType, bool]:
        if not isinstance(found, list):
            kind = self._type(self._definition(found), path, depth + 1, inside)
            return kind, notes.stem(kind) == "void"
        branches = [self._definition(branch) for branch in found if not isinstance(branch, list)]
        others = [branch for branch in branches if branch["type"] != "null"]
        if not found or len(branches) < len(found) or len(others) > 1:
            names = [str(branch.get("name", branch["type"])) for branch in others]
            names += ["other unions"] if len(branches) < len(found) else []
            raise refused(
                path,
                f"is a union of {shown(' and '.join(names) or 'nothing')}, and a column has one "
                "type; make it a record with one field for each choice",
                names,
            )
        kind = self._type((others or branches)[0], path, depth + 1, inside)
        return kind, len(branches) > len(others)

    def _definition(self, found: Any) -> dict[str, Any]:
        if isinstance(found, dict):
            return found
        return {"type": found} if found in PRIMITIVE else self._named[found]

    def _type(
        self, found: dict[str, Any], path: str, depth: int, inside: frozenset[str]
    ) -> DataType:
        if found["type"] in _RECORDS:
            return self.record(found, path, depth, inside)
        if avrotypes.is_atom(found):
            self.findings.meet(path, 0, found)
            return self._atom(found, path)
        self.findings.meet(path, depth, found)
        if found["type"] == "array":
            self.findings.leave_out(path, found, ())
            return ArrayType(*self._value(found["items"], f"{path}.element", depth, inside))
        key = notes.fitting(found.get(_KEY_NOTE), StringType(), avrotypes.plainly)
        self.findings.leave_out(path, found, () if key is None else (_KEY_NOTE,))
        value, nullable = self._value(found["values"], f"{path}.value", depth, inside)
        return MapType(key or StringType(), value, nullable)

    def _atom(self, found: dict[str, Any], path: str) -> DataType:
        if avrotypes.is_decimal(found) and (fault := avrotypes.decimal_fault(found)):
            raise refused(path, f"cannot be read: {fault}", shown(repr(found)))
        kind = avrotypes.read(found)
        said = avrotypes.said(found, kind)
        for note in (_NOTE, _SPARKS_NOTE):
            noted = notes.fitting(found.get(note), kind, avrotypes.plainly)
            if noted is not None:
                self.findings.leave_out(path, found, said | {_NOTE, _SPARKS_NOTE})
                return noted
        self.findings.leave_out(path, found, said)
        return kind
