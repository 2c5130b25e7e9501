"""How data of one schema is made into another, as a value: by name, without loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyspark.sql.types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from catalog.errors import WouldLose
from catalog.evolution.widening import widest
from catalog.schema import Schema
from catalog.schema.names import child, held, quote, shown, type_text
from catalog.words import listed

# Their text gives the value back under any settings of the session.
_AS_TEXT = (
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
class ProjectedField:
    """A column of a struct: its new name, and how it is made of which column of the old struct."""

    name: str
    source: str | None
    how: How


@dataclass(frozen=True, slots=True)
class Fields:
    """A struct, column by column."""

    fields: tuple[ProjectedField, ...]
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
Held = tuple[tuple[str, DataType, bool], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A column that cannot be made without loss, and why.

    `lossy` says that its values may not fit; the others cannot be made at all.
    """

    path: str
    why: str
    lossy: bool = False

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.why}"


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


def projection(
    source: Schema, target: Schema, leeway: Leeway | None = None
) -> tuple[ProjectedField, ...]:
    """How the columns of `target` are made of data of `source`, in their order.

    Raises:
        WouldLose: Something in the data would be lost.
    """
    plan = _Planner(leeway or Leeway())
    fields = plan.structs(source.struct(), target.struct(), "")
    if plan.refused:
        raise WouldLose(
            f"The data cannot be given in this schema without loss: {listed(plan.refused)}. Ask "
            "for a schema that holds the data, for instance the merge of both.",
            columns=[{"path": each.path, "why": each.why} for each in plan.refused],
        )
    return fields


def fields_of(source: StructType, target: StructType, leeway: Leeway) -> tuple[ProjectedField, ...]:
    """The same without the check, for callers that have checked more exactly: a scan over files of
    several schemas may have nulls that no single one of them has."""
    return _Planner(leeway).structs(source, target, "")


def refusals(source: StructType, target: StructType, leeway: Leeway) -> tuple[Refusal, ...]:
    """The columns that forbid a projection; none if there is one."""
    plan = _Planner(leeway)
    plan.structs(source, target, "")
    return tuple(plan.refused)


class _Planner:
    def __init__(self, leeway: Leeway) -> None:
        self._leeway = leeway
        self.refused: list[Refusal] = []

    def structs(
        self, source: StructType, target: StructType, path: str
    ) -> tuple[ProjectedField, ...]:
        there = {field.name.casefold(): field for field in source.fields}
        fields = tuple(
            self._field(there.pop(field.name.casefold(), None), field, path) for field in target
        )
        if not self._leeway.drop:
            for field in there.values():
                self._refuse(child(path, field.name), "would be left out")
        return fields

    def _refuse(self, path: str, why: str) -> None:
        self.refused.append(Refusal(path, why))

    def _field(self, source: StructField | None, target: StructField, path: str) -> ProjectedField:
        here = child(path, target.name)
        if source is None:
            if not target.nullable:
                self._refuse(here, "is required and the data has no such column")
            return ProjectedField(target.name, None, Fill(target.dataType))
        if source.name != target.name and not self._leeway.text:
            self._refuse(here, f"is {quote(source.name)} in the data, which differs only in case")
        how = self._value(source.dataType, target.dataType, source.nullable, target.nullable, here)
        return ProjectedField(target.name, source.name, how)

    def _value(
        self, source: DataType, target: DataType, may: bool, allowed: bool, path: str
    ) -> How:
        """How a value is made that may be null in the data, and is allowed to be in the target."""
        if may and not allowed:
            self._refuse(path, "is required and may be null in the data")
        if isinstance(source, StructType) and isinstance(target, StructType):
            fields = self.structs(source, target, path)
            kept = len(fields) == len(source.fields) and all(
                field.name == was.name == field.source and field.how == Keep()
                for field, was in zip(fields, source.fields, strict=True)
            )
            return Keep() if kept else Fields(fields, may)
        if isinstance(source, MapType) and isinstance(target, MapType):
            # With less in the key, two keys could become one.
            strict = _Planner(Leeway(text=self._leeway.text))
            (key,) = strict._inside(held(source)[:1], held(target)[:1], path)
            self.refused += strict.refused
            (value,) = self._inside(held(source)[1:], held(target)[1:], path)
            return Keep() if key == value == Keep() else Entries(key, value)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            (element,) = self._inside(held(source), held(target), path)
            return Keep() if element == Keep() else Elements(element)
        return self._atom(source, target, allowed, path)

    def _inside(self, source: Held, target: Held, path: str) -> list[How]:
        return [
            self._value(was, becomes, may, allowed, f"{path}.{name}")
            for (name, was, may), (_, becomes, allowed) in zip(source, target, strict=True)
        ]

    def _atom(self, source: DataType, target: DataType, allowed: bool, path: str) -> How:
        before, after = type_text(source), type_text(target)
        if isinstance(source, NullType):
            return Keep() if before == after else Fill(target)
        if self._fits(source, target):
            return Keep() if stored(source) == stored(target) else Cast(target)
        if self._leeway.on_loss is not OnLoss.NULL or not allowed:
            why = f"is {shown(before)}, whose values may not fit {shown(after)}"
            self.refused.append(Refusal(path, why, lossy=True))
        return Fill(target)

    def _fits(self, source: DataType, target: DataType) -> bool:
        common = widest(source, target)
        if common is not None and type_text(common) == type_text(target):
            return True
        return self._leeway.text and type_text(target) == "string" and isinstance(source, _AS_TEXT)


def shape(kind: DataType) -> str:
    """The type without the order of columns, nullability and the lengths of text."""
    return type_text(kind, atom=stored, order=sorted)


def stored(kind: DataType) -> str:
    """The type that values have in memory: there a char or a varchar is a string."""
    if isinstance(kind, spark.CharType | spark.VarcharType):
        return "string"
    return type_text(kind)
