"""Projections as Spark SQL: one expression for each column of the target."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import DataType

from catalog.evolution.projection import (
    Cast,
    Elements,
    Entries,
    Field,
    Fields,
    Fill,
    How,
    Keep,
    stored,
)
from catalog.schema.names import identifier, literal, type_text


def expressions(fields: Iterable[Field]) -> list[str]:
    """What a SELECT over the data lists, with the names of the target."""
    return [f"{_field(field, '')} AS {identifier(field.name)}" for field in fields]


def type_sql(kind: DataType) -> str:
    """A type as CAST takes it; a char or a varchar is a string in a DataFrame."""
    return type_text(kind, atom=stored, name=identifier)


def _field(field: Field, parent: str, depth: int = 0) -> str:
    name = field.source or field.name
    # Not by a dot: a table of the parent's name may have a column of this name.
    value = f"{parent}[{literal(name)}]" if parent else identifier(name)
    return _value(field.how, value, depth)


def _value(how: How, value: str, depth: int) -> str:
    """The expression that makes a value; `depth` keeps the variables of nested lambdas apart."""
    match how:
        case Keep():
            return value
        case Cast(to):
            return f"CAST({value} AS {type_sql(to)})"
        case Fill(to):
            return f"CAST(NULL AS {type_sql(to)})"
        case Fields(fields, nullable):
            inner = (f"{_field(f, value, depth)} AS {identifier(f.name)}" for f in fields)
            made = f"struct({', '.join(inner)})"
            return f"IF({value} IS NULL, NULL, {made})" if nullable else made
        case Elements(element):
            each = f"x{depth}"
            return f"transform({value}, {each} -> {_value(element, each, depth + 1)})"
        case Entries(key, entry):
            each = f"x{depth}"
            made = (
                f"struct({_value(key, each + '.key', depth + 1)} AS key, "
                f"{_value(entry, each + '.value', depth + 1)} AS value)"
            )
            return f"map_from_entries(transform(map_entries({value}), {each} -> {made}))"
