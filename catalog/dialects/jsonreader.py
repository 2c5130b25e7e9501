"""A JSON Schema read as the schema of a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from catalog.dialects import jsontypes, notes
from catalog.dialects.jsonkinds import kind_of
from catalog.dialects.jsonrefs import Node, follow
from catalog.dialects.translation import Findings, refused
from catalog.schema.names import child, shown

NOTE = "x-spark-type"

_QUIET = frozenset(
    {"type", "nullable", "title", "examples", "$comment"}
    | {"$schema", "$id", "$anchor", "$defs", "definitions"}
)


class Reader:
    """Reads one document, and finds what stays unsaid."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.findings = Findings(_QUIET)
        self._root = root

    def top(self) -> StructType:
        """The columns of the objects that the document describes."""
        node = follow(self._root, self._root, "", frozenset())
        kind, nullable = self._value(node, "", 0, set())
        if not isinstance(kind, StructType):
            raise refused(
                "", "must be an object with properties; wrap it in one", kind.simpleString()
            )
        if nullable:
            self.findings.add("", "the whole object may be null")
        return kind

    def _value(self, node: Node, path: str, depth: int, said: set[str]) -> tuple[DataType, bool]:
        keywords = node.keywords
        word, nullable = kind_of(keywords, path)
        self.findings.meet(path, depth if word in ("object", "array") else 0, keywords)
        nullable = nullable or node.nullable or keywords.get("nullable") is True
        if nullable and keywords.get("default") is None:
            said = said | {"default"}
        if word == "object":
            return self._object(node, path, depth, said), nullable
        if word == "array":
            return self._array(node, path, depth, said), nullable
        if word in ("any", "null"):
            self.findings.leave_out(path, keywords, said)
            return VariantType() if word == "any" else NullType(), nullable
        kind, words = _atom(keywords, word, path)
        self.findings.leave_out(path, keywords, said | words)
        return kind, nullable

    def _array(self, node: Node, path: str, depth: int, said: set[str]) -> ArrayType:
        items = node.keywords.get("items", True)
        if "prefixItems" in node.keywords or isinstance(items, list):
            raise refused(
                path,
                "is a tuple, with a schema for each place; use one schema in items, or an object "
                "with a property for each place",
                "prefixItems",
            )
        self.findings.leave_out(path, node.keywords, said | {"items"})
        here = f"{path}.element"
        element = follow(self._root, items, here, node.inside)
        return ArrayType(*self._value(element, here, depth + 1, set()))

    def _object(self, node: Node, path: str, depth: int, said: set[str]) -> DataType:
        keywords = node.keywords
        if "patternProperties" in keywords:
            raise refused(
                path,
                "has patternProperties, and a column is a struct or a map; use properties or "
                "additionalProperties",
                "patternProperties",
            )
        properties = keywords.get("properties", {})
        if not isinstance(properties, dict):
            raise refused(path, "must have an object as properties; repair it", properties)
        more = keywords.get("additionalProperties", "properties" not in keywords)
        if properties or more is False:
            return self._struct(node, path, depth, said)
        self.findings.leave_out(path, keywords, said | {"additionalProperties", "propertyNames"})
        key = self._key(keywords.get("propertyNames", True), f"{path}.key", node)
        here = f"{path}.value"
        value = follow(self._root, more, here, node.inside)
        return MapType(key, *self._value(value, here, depth + 1, set()))

    def _struct(self, node: Node, path: str, depth: int, said: set[str]) -> StructType:
        keywords = node.keywords
        required = keywords.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise refused(path, "must have a list of names as required; repair it", required)
        said = said | {"properties", "required"}
        if isinstance(keywords.get("additionalProperties"), bool):
            said = said | {"additionalProperties"}
        self.findings.leave_out(path, keywords, said)
        properties = keywords.get("properties", {})
        needed = set(required)
        for name in sorted(needed - properties.keys()):
            self.findings.add(path, f"required {name}, which is not among the properties")
        return StructType(
            [
                self._field(name, schema, name not in needed, child(path, name), depth, node)
                for name, schema in properties.items()
            ]
        )

    def _field(
        self, name: str, schema: object, optional: bool, path: str, depth: int, node: Node
    ) -> StructField:
        inner = follow(self._root, schema, path, node.inside)
        kind, nullable = self._value(inner, path, depth + 1, {"description"})
        comment = inner.keywords.get("description", "")
        if not isinstance(comment, str):
            raise refused(path, f"has the description {shown(repr(comment))}; use text", comment)
        metadata = {"comment": comment} if "description" in inner.keywords else None
        return StructField(name, kind, nullable or optional, metadata)

    def _key(self, schema: object, path: str, node: Node) -> DataType:
        keywords = {"type": "string"} | follow(self._root, schema, path, node.inside).keywords
        word, _ = kind_of(keywords, path)
        if word != "string":
            raise refused(
                path, f"is {word}, and the keys of JSON objects are text; use string", word
            )
        kind, said = _atom(keywords, word, path)
        if not isinstance(kind, notes.TEXT):
            kind, said = StringType(), set()
        self.findings.leave_out(path, keywords, said)
        return kind


def _atom(keywords: dict[str, Any], word: str, path: str) -> tuple[DataType, set[str]]:
    found, said = jsontypes.read(keywords, word, path)
    noted = notes.fitting(keywords.get(NOTE), found, jsontypes.plainly)
    kind = noted or found
    jsontypes.check_range(kind, keywords, path)
    written = jsontypes.written(kind) or {}
    said |= {key for key, value in written.items() if keywords.get(key) == value}
    return kind, said | ({NOTE} if noted else set())
