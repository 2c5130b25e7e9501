"""Spark's DDL read and written without a session; pyspark's own parser needs a JVM.

`parse_ddl` reads what `StructType.fromDDL` of Spark 4.2 reads. Some of it is refused on purpose:
`decimal(0)`, which Arrow does not have; a collation on `char` or `varchar`, which pyspark loses;
escapes beyond Unicode, which Spark garbles; and nesting deeper than the rules allow.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn

import pyspark.sql.types as spark
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from catalog.errors import InvalidSchema
from catalog.schema import atoms
from catalog.schema.names import quote
from catalog.schema.rules import MAX_DEPTH
from catalog.schema.tokens import END, NUMBER, QUOTED, STRING, WORD, Cursor, Token, tokenize


def parse_ddl(text: str) -> StructType:
    """The columns of a table written as DDL: `a INT, b STRING NOT NULL`, or `struct<a: int>`."""
    parser = _Parser(text)
    schema = parser.wrapped() if parser.begins_wrapped() else parser.columns(depth=0)
    parser.expect_end()
    return schema


def parse_type(text: str) -> DataType:
    """One type written as DDL, such as `decimal(10,2)` or `array<int>`."""
    parser = _Parser(text)
    kind = parser.type(depth=0)
    parser.expect_end()
    return kind


def print_ddl(schema: StructType) -> str:
    """The schema as one line of DDL that Spark reads back.

    DDL cannot say that an array's elements or a map's values are never null, so that is lost.
    """
    return ", ".join(_print_field(field, " ") for field in schema.fields)


def _print_field(field: StructField, separator: str) -> str:
    null = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    said = "" if comment is None else f" COMMENT {_print_string(comment)}"
    return f"{quote(field.name)}{separator}{_print_type(field.dataType)}{null}{said}"


def _print_type(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(_print_field(field, ': ') for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_print_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_print_type(kind.keyType)}, {_print_type(kind.valueType)}>"
    text = atoms.text_of(kind)
    if text is None:
        raise InvalidSchema(f"type {kind} cannot be written as DDL; check the schema", value=kind)
    if text.startswith("string collate "):
        return "STRING COLLATE " + text.rpartition(" ")[2]
    return text.upper()


def _print_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


class _Parser(Cursor):
    # --- columns ---

    def begins_wrapped(self) -> bool:
        return self.is_word("struct") and self.is_symbol("<", ahead=1)

    def wrapped(self) -> StructType:
        self.skip(2)
        return self._closed_columns(depth=0)

    def columns(self, depth: int, closing: str = "") -> StructType:
        empty = self.is_symbol(closing) if closing else self.peek().kind == END
        fields = [] if empty else [self._column(depth)]
        while fields and self.accept(","):
            fields.append(self._column(depth))
        return StructType(fields)

    def _closed_columns(self, depth: int) -> StructType:
        struct = self.columns(depth, closing=">")
        self.expect(">", "a comma or '>'")
        return struct

    def _column(self, depth: int) -> StructField:
        name = self._name()
        self.accept(":")
        kind = self.type(depth)
        nullable = not (self.accept("!") or self.accept_words("not"))
        if not nullable and not self.accept_words("null"):
            self.expected("NULL after NOT")
        metadata = {"comment": self._strings()} if self.accept_words("comment") else None
        return StructField(name, kind, nullable, metadata)

    def _name(self) -> str:
        if self.is_word("identifier") and self.is_symbol("(", ahead=1):
            return self._identifier_literal()
        if self.peek().kind not in (WORD, QUOTED):
            self.expected("a column name (odd ones in backquotes)")
        return self.take().text

    def _identifier_literal(self) -> str:
        self.skip(2)
        at = self.peek()
        inner = tokenize(self._strings())
        if len(inner) != 2 or inner[0].kind not in (WORD, QUOTED):
            self.fail(at, "IDENTIFIER() must hold one name")
        self.expect(")", "')'")
        return inner[0].text

    def _strings(self) -> str:
        if self.peek().kind != STRING:
            self.expected("text in quotes")
        parts = []
        while self.peek().kind == STRING:
            parts.append(self.take().text)
        return "".join(parts)

    # --- types ---

    def type(self, depth: int) -> DataType:
        token = self.peek()
        if token.kind != WORD:
            self.expected("a type")
        word = token.text.lower()
        if word in ("array", "map", "struct"):
            return self._complex(word, depth + 1)
        self.skip(1)
        if word == "timestamp":
            return self._timestamp()
        if word == "interval":
            return self._interval()
        if (name := atoms.ALIASES.get(word, word)) in atoms.SIMPLE:
            return atoms.SIMPLE[name]()
        if word not in _PARAMETRIC:
            self._unknown(token, word)
        kind = _PARAMETRIC[word](self)
        if problem := atoms.fault(kind):
            self.fail(token, problem)
        return kind

    def _unknown(self, token: Token, word: str) -> NoReturn:
        known = [*atoms.SIMPLE, *atoms.ALIASES, *_PARAMETRIC, "array", "map", "struct"]
        close = difflib.get_close_matches(word[:80], known, n=1)
        hint = f"did you mean {close[0]}?" if close else "use a type of Spark SQL"
        self.fail(token, f"type {token.text[:40]!r} is not known; {hint}")

    def _complex(self, word: str, depth: int) -> DataType:
        if depth > MAX_DEPTH:
            self.fail(self.peek(), f"nested deeper than {MAX_DEPTH} levels; flatten the schema")
        self.skip(1)
        self.expect("<", f"'<' and what the {word} holds")
        if word == "struct":
            return self._closed_columns(depth)
        first = self.type(depth)
        if word == "array":
            self.expect(">", "'>'")
            return ArrayType(first)
        self.expect(",", "a comma and the type of the values")
        second = self.type(depth)
        self.expect(">", "'>'")
        return MapType(first, second)

    def _timestamp(self) -> DataType:
        if self.accept_words("without", "time", "zone"):
            return spark.TimestampNTZType()
        self.accept_words("with", "local", "time", "zone")
        return spark.TimestampType()

    def _interval(self) -> DataType:
        for fields, kind in (
            (atoms.YEAR_MONTH, spark.YearMonthIntervalType),
            (atoms.DAY_TIME, spark.DayTimeIntervalType),
        ):
            token = self.peek()
            if token.kind == WORD and token.text.lower() in fields:
                start = fields.index(self.take().text.lower())
                if not self.accept_words("to"):
                    return kind(start)
                end = self.take()
                if end.kind != WORD or end.text.lower() not in fields[start + 1 :]:
                    self.fail(end, f"expected a unit smaller than {fields[start].upper()}")
                return kind(start, fields.index(end.text.lower()))
        return spark.CalendarIntervalType()

    def _number(self) -> int:
        token = self.peek()
        if token.kind != NUMBER or not token.text.isdigit():
            self.expected("a whole number")
        # Longer than any limit, and Python refuses to convert thousands of digits.
        if len(token.text) > 10:
            self.fail(token, f"number {token.text[:12]} is too large")
        return int(self.take().text)

    def string(self) -> DataType:
        if not self.accept_words("collate"):
            return StringType()
        token = self.peek()
        parts = [self._name()]
        while self.accept("."):
            parts.append(self._name())
        builtin = [part.lower() for part in parts[:-1]] in ([], ["system", "builtin"])
        name = atoms.normalize_collation(parts[-1]) if builtin else None
        if name is None:
            self.fail(token, f"collation {'.'.join(parts)[:80]!r} is not known; see collations()")
        return StringType(name)

    def sized(self, kind: Callable[[int], DataType]) -> DataType:
        self.expect("(", "'(' and a length")
        length = self._number()
        self.expect(")", "')'")
        if self.is_word("collate"):
            self.fail(self.peek(), "only STRING can have a collation; use STRING COLLATE")
        return kind(length)

    def decimal(self) -> DataType:
        if not self.accept("("):
            return spark.DecimalType(10, 0)
        precision = self._number()
        scale = self._number() if self.accept(",") else 0
        self.expect(")", "')'")
        return spark.DecimalType(precision, scale)

    def time(self) -> DataType:
        token, precision = self.peek(), atoms.MAX_TIME_PRECISION
        if self.accept("("):
            precision = self._number()
            self.expect(")", "')'")
        self.accept_words("without", "time", "zone")
        return self._build(token, "TimeType", precision)

    def spatial(self, kind: str) -> DataType:
        self.expect("(", "'(' and an SRID or ANY")
        token = self.peek()
        srid = "ANY" if self.accept_words("any") else self._number()
        self.expect(")", "')'")
        return self._build(token, kind, srid)

    def _build(self, token: Token, kind: str, parameter: int | str) -> DataType:
        # By name: Spark 4.0, which some managed runtimes still carry, lacks these types.
        cls: Any = getattr(spark, kind, None)
        if cls is None:
            self.fail(token, f"this Spark has no {kind}; use Spark 4.1 or newer")
        try:
            built: DataType = cls(parameter)
        except PySparkException:
            self.fail(token, f"SRID {parameter} is not one that Spark knows for a {kind}")
        return built


_PARAMETRIC: dict[str, Callable[[_Parser], DataType]] = {
    "string": _Parser.string,
    **dict.fromkeys(("char", "character"), lambda parser: parser.sized(spark.CharType)),
    "varchar": lambda parser: parser.sized(spark.VarcharType),
    **dict.fromkeys(("decimal", "dec", "numeric"), _Parser.decimal),
    "time": _Parser.time,
    "geometry": lambda parser: parser.spatial("GeometryType"),
    "geography": lambda parser: parser.spatial("GeographyType"),
}
