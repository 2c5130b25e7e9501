"""Avro schemas to Spark's and back; fastavro checks what others wrote.

What Avro can hold but not name (`varchar(10)`, `smallint`, a collation) is noted in the attribute
`spark.type`, so that every type with an Avro form comes back as it was. Names that Avro does not
have and unions of several types are refused: a renamed or widened column would be another schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from catalog.errors import InvalidInput, InvalidSchema
from catalog.schema import atoms
from catalog.schema.ddl import parse_type
from catalog.schema.model import Schema
from catalog.schema.names import child, shown
from catalog.schema.rules import refused
from catalog.schema.translation import (
    DocumentReader,
    DocumentWriter,
    Reading,
    Translation,
    fitting,
    plain_document,
)

_NOTE = "spark.type"
_KEY_NOTE = "spark.key.type"
# The note that Spark itself writes, on intervals.
_SPARKS_NOTE = "spark.sql.catalyst.type"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_RECORDS = ("record", "error")
# What fastavro adds to a schema that it has parsed; it would not check such a schema again.
_MARKS = ("__fastavro_parsed", "__named_schemas")


def to_avro(schema: Schema, *, name: str = "record", namespace: str | None = None) -> Translation:
    """The Avro record of a schema.

    Args:
        name: The record's name; the names of nested records begin with it.
        namespace: Names joined by dots, if the record has one.

    Raises:
        InvalidSchema: Avro has no form of a column's type or name; the message has its path.
    """
    _check_names(name, namespace)
    writer = _AvroWriter(name)
    document = writer.struct(schema.struct(), "")
    if namespace is not None:
        document = {"type": "record", "name": name, "namespace": namespace} | document
    return Translation(document, tuple(writer.unsaid))


def from_avro(document: Mapping[str, Any] | str) -> Reading:
    """The schema of an Avro record, given as a mapping or as JSON text.

    Raises:
        InvalidSchema: The document is not valid Avro, or has what Spark has no equal of.
    """
    top, named = _parsed(plain_document(document))
    if top["type"] not in _RECORDS:
        kind = shown(str(top["type"]))
        raise refused("", f"must be a record in Avro, not {kind}; wrap it in a record", kind)
    reader = _AvroReader(named)
    return Reading(Schema.of(reader.record(top, "", 0)), tuple(reader.unsaid))


# --- atomic types ---

_WRITTEN: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "tinyint": {"type": "int"},
    "smallint": {"type": "int"},
    "int": {"type": "int"},
    "bigint": {"type": "long"},
    "float": {"type": "float"},
    "double": {"type": "double"},
    "string": {"type": "string"},
    "char": {"type": "string"},
    "varchar": {"type": "string"},
    "binary": {"type": "bytes"},
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
    "time": {"type": "long", "logicalType": "time-micros"},
    # As Spark itself writes them: months, and microseconds.
    "year-month": {"type": "int"},
    "day-time": {"type": "long"},
    "void": {"type": "null"},
}

_READ = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
    "null": "void",
}

# Nanoseconds are left out: Spark would lose digits, and a bigint holds them as they are.
_LOGICAL = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time(3)",
    ("long", "time-micros"): "time(6)",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}


def _written(kind: DataType) -> dict[str, Any] | None:
    if isinstance(kind, DecimalType):
        decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", **decimal}
    found = _WRITTEN.get(atoms.stem(kind))
    return None if found is None else dict(found)


def _plainly(kind: DataType) -> DataType | None:
    """The type that an atomic type is read as without its note."""
    found = _written(kind)
    return None if found is None else _atom(found)


def _atom(found: dict[str, Any]) -> DataType:
    """The atomic type that a checked Avro type is read as without its note."""
    if _is_decimal(found):
        return DecimalType(found["precision"], found.get("scale", 0))
    return parse_type(_logical(found) or _READ[found["type"]])


def _is_decimal(found: dict[str, Any]) -> bool:
    # On any other type the specification ignores that word.
    return found.get("logicalType") == "decimal" and found["type"] in ("bytes", "fixed")


def _logical(found: dict[str, Any]) -> str | None:
    logical = found.get("logicalType")
    return _LOGICAL.get((found["type"], logical)) if isinstance(logical, str) else None


def _expressed(found: dict[str, Any], kind: DataType) -> set[str]:
    """The attributes that the type read from them expresses."""
    said = {key for key, value in (_written(kind) or {}).items() if found.get(key) == value}
    if _is_decimal(found):
        said |= {"precision", "scale", "logicalType"}
    return said | ({"logicalType"} if _logical(found) else set())


# --- to Avro ---


def _check_names(name: str, namespace: str | None) -> None:
    if not _NAME.fullmatch(name) or name in _PRIMITIVE:
        raise InvalidInput(
            f"an Avro record cannot be named {shown(name)!r}; use letters, digits and _ without a "
            "digit in front, not the name of a primitive type, and give the namespace by itself",
            name=name,
        )
    if namespace is not None and not all(map(_NAME.fullmatch, namespace.split("."))):
        raise InvalidInput(
            f"an Avro namespace cannot be {shown(namespace)!r}; use names of letters, digits and "
            "_, joined by dots",
            namespace=namespace,
        )


class _AvroWriter(DocumentWriter):
    dialect, maps, note = "Avro", "maps", _NOTE
    written = staticmethod(_written)
    plainly = staticmethod(_plainly)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._top = name
        self._names: set[str] = set()

    def struct(self, struct: StructType, path: str) -> dict[str, Any]:
        name = self._free_name(path)
        fields = [self._field(field, path) for field in struct.fields]
        return {"type": "record", "name": name, "fields": fields}

    def _free_name(self, path: str) -> str:
        """A name for the record at a path that no other has: `record_address` for `address`."""
        wanted = f"{self._top}_{path.replace('.', '_')}" if path else self._top
        name, count = wanted, 1
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def _field(self, field: StructField, path: str) -> dict[str, Any]:
        here = child(path, field.name)
        if not _NAME.fullmatch(field.name):
            raise refused(
                here,
                "has a name that Avro does not allow; rename it with letters, digits and _, and no "
                "digit in front",
                field.name,
            )
        made = {"name": field.name, "type": self.field(field, here)}
        if (comment := field.metadata.get("comment")) is not None:
            made["doc"] = comment
        return made | ({"default": None} if field.nullable else {})

    def optional(self, made: Any) -> Any:
        return ["null", made]

    def map(self, key: Any, value: Any) -> dict[str, Any]:
        noted = {} if key == "string" else {_KEY_NOTE: key[_NOTE]}
        return {"type": "map", "values": value, **noted}

    def atom(self, kind: DataType, path: str) -> Any:
        made = super().atom(kind, path)
        return made["type"] if len(made) == 1 else made


# --- from Avro ---


def _parsed(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The document as fastavro understands it, and its named types by their full names."""
    try:
        from fastavro.schema import UnknownType, parse_schema
    except ImportError:
        raise InvalidInput(
            "reading Avro needs fastavro: pip install 'strata-catalog[avro]'"
        ) from None
    named: dict[str, Any] = {}
    given = {key: value for key, value in document.items() if key not in _MARKS}
    try:
        top: Any = parse_schema(given, named)
    # It raises whatever its code trips on: its own errors, KeyError, TypeError and others.
    except Exception as error:
        problem = str(error) or type(error).__name__
        if isinstance(error, UnknownType):
            problem = f"type {error.name!r} is not known"
        elif isinstance(error, KeyError):
            problem = f"{error} is missing"
        raise InvalidSchema(
            f"fastavro refuses the Avro schema: {shown(problem, 200)}; repair it",
            value=shown(repr(document)),
        ) from None
    return {key: value for key, value in top.items() if key not in _MARKS}, named


class _AvroReader(DocumentReader):
    quiet = frozenset({"type", "name", "fields", "items", "values", "avro.java.string"})

    def __init__(self, named: Mapping[str, dict[str, Any]]) -> None:
        super().__init__()
        self._named = named
        self._inside: list[str] = []

    def record(self, found: dict[str, Any], path: str, depth: int) -> StructType:
        name = found["name"]
        if name in self._inside:
            raise refused(
                path,
                f"has the record {shown(name)} inside itself, and Spark's columns end somewhere; "
                "unroll it to the depth that the data has",
                name,
            )
        self.count(path, depth, found)
        self.leave_out(path, found, ())
        self._inside.append(name)
        fields = [self._field(field, path, depth) for field in found["fields"]]
        self._inside.pop()
        return StructType(fields)

    def _field(self, found: dict[str, Any], path: str, depth: int) -> StructField:
        name, comment = found["name"], found.get("doc")
        if not isinstance(name, str):
            raise refused(path, f"has a field named {shown(repr(name))}; use text", name)
        here = child(path, name)
        if comment is not None and not isinstance(comment, str):
            raise refused(here, f"has the doc {shown(repr(comment))}; use text", comment)
        kind, nullable = self._value(found["type"], here, depth)
        plain_default = nullable and found.get("default") is None
        self.leave_out(here, found, {"doc", "default"} if plain_default else {"doc"})
        return StructField(name, kind, nullable, None if comment is None else {"comment": comment})

    def _value(self, found: Any, path: str, depth: int) -> tuple[DataType, bool]:
        if not isinstance(found, list):
            kind = self._type(self._definition(found), path, depth + 1)
            return kind, atoms.stem(kind) == "void"
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
        kind = self._type((others or branches)[0], path, depth + 1)
        return kind, len(branches) > len(others)

    def _definition(self, found: Any) -> dict[str, Any]:
        if isinstance(found, dict):
            return found
        return {"type": found} if found in _PRIMITIVE else self._named[found]

    def _type(self, found: dict[str, Any], path: str, depth: int) -> DataType:
        if found["type"] in _RECORDS:
            return self.record(found, path, depth)
        if found["type"] in _READ:
            self.count(path, 0, found)
            return self._noted_atom(found, path)
        self.count(path, depth, found)
        if found["type"] == "array":
            self.leave_out(path, found, ())
            return ArrayType(*self._value(found["items"], f"{path}.element", depth))
        key = fitting(found.get(_KEY_NOTE), StringType(), _plainly)
        self.leave_out(path, found, () if key is None else (_KEY_NOTE,))
        value, nullable = self._value(found["values"], f"{path}.value", depth)
        return MapType(key or StringType(), value, nullable)

    def _noted_atom(self, found: dict[str, Any], path: str) -> DataType:
        if _is_decimal(found):
            decimal = DecimalType(found.get("precision", 0), found.get("scale", 0))
            if fault := atoms.fault(decimal):
                raise refused(path, f"cannot be read: {fault}", shown(repr(found)))
        kind = _atom(found)
        said = _expressed(found, kind)
        for note in (_NOTE, _SPARKS_NOTE):
            noted = fitting(found.get(note), kind, _plainly)
            if noted is not None:
                self.leave_out(path, found, said | {_NOTE, _SPARKS_NOTE})
                return noted
        self.leave_out(path, found, said)
        return kind
