"""The way from data of one schema to another schema, as a value: by name, without loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyspark.sql.types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from catalog.errors import WouldLose
from catalog.evolution.widening import widest
from catalog.schema import Schema
from catalog.schema.names import child, quote, shown, type_text

_NAMED = 5
# Their text gives the value back, whatever the settings of the session are.
_TELLING = (
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.FloatType,
    spark.DoubleType,
    spark.DecimalType,
    spark.DateType,
    spark.TimestampNTZType,
    spark.StringType,
    spark.CharType,
    spark.VarcharType,
)


class OnLoss(StrEnum):
    """What becomes of a column whose values may not fit."""

    REFUSE = "refuse"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Keep:
    """The value as it is."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The value in a type that holds it."""

    to: DataType


@dataclass(frozen=True, slots=True)
class Fill:
    """Null, in place of a value that is not there."""

    to: DataType


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a struct: its new name, and how it is made of which column of the old struct."""

    name: str
    source: str | None
    how: How


@dataclass(frozen=True, slots=True)
class Fields:
    """A struct, column by column."""

    fields: tuple[Field, ...]
    nullable: bool


@dataclass(frozen=True, slots=True)
class Elements:
    """An array, each element alike."""

    how: How


@dataclass(frozen=True, slots=True)
class Entries:
    """A map, each key and each value alike."""

    key: How
    value: How


How = Keep | Cast | Fill | Fields | Elements | Entries


@dataclass(frozen=True, slots=True)
class Refusal:
    """A column that the way would lead to a loss for, and what would be lost.

    `lossy` says that its values may not fit; the others cannot be given at all.
    """

    path: str
    why: str
    lossy: bool = False

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.why}"


@dataclass(frozen=True, slots=True)
class Projection:
    """How each column of the target is made.

    Attributes:
        fields: the columns of the target, in its order.
        nulled: columns that come as null because their values may not fit.
        dropped: columns of the data that the target does not have.
    """

    target: Schema
    fields: tuple[Field, ...]
    nulled: tuple[Refusal, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leeway:
    """What a projection may do besides widening.

    Attributes:
        drop: leave out columns that the target does not have.
        text: turn values into text where the target has a string.
        on_loss: what becomes of columns whose values may not fit.
    """

    drop: bool = False
    text: bool = False
    on_loss: OnLoss = OnLoss.REFUSE


def fields_of(source: StructType, target: StructType, leeway: Leeway) -> tuple[Field, ...]:
    """How the columns of the target are made, for who knows already that nothing stands in the way:
    a scan over files of several schemas may hold nulls that no value of any of them is."""
    return _Way(leeway).structs(source, target, "")


def refusals(source: StructType, target: StructType, leeway: Leeway) -> tuple[Refusal, ...]:
    """What stands in the way from one schema to another; nothing if there is a projection."""
    way = _Way(leeway)
    way.structs(source, target, "")
    return tuple(way.refused)


def projection(source: Schema, target: Schema, leeway: Leeway | None = None) -> Projection:
    """The way from data of `source` to `target`.

    Raises:
        WouldLose: Something in the data would be lost.
    """
    way = _Way(leeway or Leeway())
    fields = way.structs(source.struct(), target.struct(), "")
    if way.refused:
        raise _error(way.refused)
    return Projection(target, fields, tuple(way.nulled), tuple(way.dropped))


def _error(refused: list[Refusal]) -> WouldLose:
    named = "; ".join(map(str, refused[:_NAMED]))
    more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    return WouldLose(
        f"The data cannot be given in this schema without loss: {named}{more}. Ask for a schema "
        "that holds the data, for instance the merge of both.",
        columns=[{"path": each.path, "why": each.why} for each in refused],
    )


class _Way:
    def __init__(self, leeway: Leeway) -> None:
        self._leeway = leeway
        self.refused: list[Refusal] = []
        self.nulled: list[Refusal] = []
        self.dropped: list[str] = []

    def structs(self, source: StructType, target: StructType, path: str) -> tuple[Field, ...]:
        there = {field.name.casefold(): field for field in source.fields}
        fields = tuple(
            self._field(there.pop(field.name.casefold(), None), field, path) for field in target
        )
        for field in there.values():
            here = child(path, field.name)
            self.dropped.append(here)
            if not self._leeway.drop:
                self.refused.append(Refusal(here, "would be left out"))
        return fields

    def _field(self, source: StructField | None, target: StructField, path: str) -> Field:
        here = child(path, target.name)
        if source is None:
            if not target.nullable:
                self.refused.append(Refusal(here, "is required and the data has no such column"))
            return Field(target.name, None, Fill(target.dataType))
        if source.name != target.name and not self._leeway.text:
            spelled = f"is {quote(source.name)} in the data, which differs only in case"
            self.refused.append(Refusal(here, spelled))
        how = self._slot(source.dataType, target.dataType, source.nullable, target.nullable, here)
        return Field(target.name, source.name, how)

    def _slot(self, source: DataType, target: DataType, may: bool, allowed: bool, path: str) -> How:
        """How a value is made that may be null in the data, and is allowed to be in the target."""
        if may and not allowed:
            self.refused.append(Refusal(path, "is required and may be null in the data"))
        return self._type(source, target, may, allowed, path)

    def _type(self, source: DataType, target: DataType, may: bool, allowed: bool, path: str) -> How:
        if isinstance(source, StructType) and isinstance(target, StructType):
            fields = self.structs(source, target, path)
            kept = len(fields) == len(source.fields) and all(
                field.name == was.name == field.source and field.how == Keep()
                for field, was in zip(fields, source.fields, strict=True)
            )
            return Keep() if kept else Fields(fields, may)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            element = self._slot(
                source.elementType,
                target.elementType,
                source.containsNull,
                target.containsNull,
                f"{path}.element",
            )
            return Keep() if element == Keep() else Elements(element)
        if isinstance(source, MapType) and isinstance(target, MapType):
            key = self._key(source.keyType, target.keyType, f"{path}.key")
            value = self._slot(
                source.valueType,
                target.valueType,
                source.valueContainsNull,
                target.valueContainsNull,
                f"{path}.value",
            )
            return Keep() if key == value == Keep() else Entries(key, value)
        return self._atom(source, target, allowed, path)

    def _key(self, source: DataType, target: DataType, path: str) -> How:
        """How a map's key is made: with less in it, two keys could become one."""
        way = _Way(Leeway(text=self._leeway.text))
        how = way._type(source, target, False, False, path)
        self.refused += way.refused
        return how

    def _atom(self, source: DataType, target: DataType, allowed: bool, path: str) -> How:
        before, after = type_text(source), type_text(target)
        if isinstance(source, NullType):
            return Keep() if before == after else Fill(target)
        if self._fits(source, target):
            return Keep() if stored(source) == stored(target) else Cast(target)
        why = f"is {shown(before)}, whose values may not fit {shown(after)}"
        loss = Refusal(path, why, lossy=True)
        if self._leeway.on_loss is OnLoss.NULL and allowed:
            self.nulled.append(loss)
        else:
            self.refused.append(loss)
        return Fill(target)

    def _fits(self, source: DataType, target: DataType) -> bool:
        common = widest(source, target)
        if common is not None and type_text(common) == type_text(target):
            return True
        return self._leeway.text and type_text(target) == "string" and isinstance(source, _TELLING)


def shape(kind: DataType) -> str:
    """What a type holds, whatever the order of columns, nullability and lengths of text."""
    return type_text(kind, atom=stored, order=sorted)


def stored(kind: DataType) -> str:
    """The type that values have in memory: there a char or a varchar is a string."""
    if isinstance(kind, spark.CharType | spark.VarcharType):
        return "string"
    return type_text(kind)
