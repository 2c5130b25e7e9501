"""A schema's columns in a flat list, nested ones included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from catalog.schema import atoms
from catalog.schema.names import child, quote


@dataclass(frozen=True, slots=True)
class Column:
    """A column at any level.

    Attributes:
        path: Names from the top, joined by dots; what an array or a map holds continues as
            `element`, `key` or `value`. Odd names are in backquotes.
        position: Place among the columns of the same struct, from 0.
        depth: How many columns it is inside of.
        type: Spark's short name for the type, such as `array<struct<x:int>>`.
    """

    path: str
    name: str
    position: int
    depth: int
    type: str
    nullable: bool
    comment: str | None


def flatten(struct: StructType, path: str = "", depth: int = 0) -> Iterator[Column]:
    """Every column of the struct and, right after each, the columns inside it."""
    for position, field in enumerate(struct.fields):
        here = child(path, field.name)
        yield Column(
            path=here,
            name=field.name,
            position=position,
            depth=depth,
            type=type_text(field.dataType),
            nullable=bool(field.nullable),
            comment=field.metadata.get("comment"),
        )
        yield from _inside(field.dataType, here, depth + 1)


def _inside(kind: DataType, path: str, depth: int) -> Iterator[Column]:
    if isinstance(kind, StructType):
        yield from flatten(kind, path, depth)
    elif isinstance(kind, ArrayType):
        yield from _inside(kind.elementType, f"{path}.element", depth)
    elif isinstance(kind, MapType):
        yield from _inside(kind.keyType, f"{path}.key", depth)
        yield from _inside(kind.valueType, f"{path}.value", depth)


def _atom_text(kind: DataType) -> str:
    return atoms.text_of(kind) or kind.simpleString()


def type_text(
    kind: DataType,
    atom: Callable[[DataType], str] = _atom_text,
    name: Callable[[str], str] = quote,
    order: Callable[[Iterable[str]], Iterable[str]] = list,
) -> str:
    """The type as DESCRIBE shows it: lower case, without nullability and comments.

    Others may spell atoms and names in their way, and put the columns of a struct in their order.
    """

    def text(inner: DataType) -> str:
        if isinstance(inner, StructType):
            columns = (f"{name(field.name)}:{text(field.dataType)}" for field in inner.fields)
            return f"struct<{','.join(order(columns))}>"
        if isinstance(inner, ArrayType):
            return f"array<{text(inner.elementType)}>"
        if isinstance(inner, MapType):
            return f"map<{text(inner.keyType)},{text(inner.valueType)}>"
        return atom(inner)

    return text(kind)
