"""The canonical form of a schema, version 1, and its fingerprint, also in the short form.

    canonical = "strata-schema/1:" struct
    struct    = "struct<" [ field { "," field } ] ">"        fields sorted by name
    field     = name ":" type null
    type      = struct | "array<" type null ">" | "map<" type "," type null ">" | atom
    null      = "?"  values may be null    |    "!"  they may not

- Fields are sorted by the code points of their names, at every level.
- A name is a JSON string: in double quotes, with `"` and `\\` escaped by `\\` and nothing else
  escaped (control characters are not valid in names). Names are not case-folded or normalized.
- An atom is Spark SQL's lower-case name: `boolean tinyint smallint int bigint float double
  decimal(p,s) string char(n) varchar(n) binary date timestamp timestamp_ntz time(p) void variant
  interval`, `interval A` or `interval A to B`, `string collate NAME` unless NAME is UTF8_BINARY,
  `geometry(srid)` and `geography(srid)` with `any` for mixed values.
- A map's key is never null and has no mark; its value has one.

Comments, metadata, column order and the spelling of types are not part of it. Whatever changes this
form takes a new version in the prefix, and so gives new fingerprints; version 1 is for ever (I1).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

import xxhash
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from catalog.errors import AmbiguousFingerprint, InvalidInput, InvalidSchema, UnknownSchema
from catalog.schema import atoms
from catalog.words import listed

PREFIX = "strata-schema/1:"

# A fingerprint may be typed by any unique beginning, as with git.
MIN_DIGITS = 4
MAX_DIGITS = 32
_HEX = re.compile(r"[0-9a-f]*")


def canonical(schema: StructType) -> str:
    """The one text that represents this schema, which must have passed the rules."""
    return PREFIX + _type(schema)


def fingerprint(form: str) -> str:
    """The id of a schema: 128 bits of XXH3 over the canonical form's UTF-8, as 32 hex digits."""
    return xxhash.xxh3_128_hexdigest(form.encode())


def digest(form: str) -> str:
    """SHA-256 of the canonical form's UTF-8, in hex: it tells a collision from an equal schema."""
    return hashlib.sha256(form.encode()).hexdigest()


def _type(kind: DataType) -> str:
    if isinstance(kind, StructType):
        fields = sorted(kind.fields, key=lambda field: field.name)
        return f"struct<{','.join(map(_field, fields))}>"
    if isinstance(kind, ArrayType):
        return f"array<{_type(kind.elementType)}{_null(kind.containsNull)}>"
    if isinstance(kind, MapType):
        value = f"{_type(kind.valueType)}{_null(kind.valueContainsNull)}"
        return f"map<{_type(kind.keyType)},{value}>"
    text = atoms.text_of(kind)
    if text is None:
        raise InvalidSchema(
            f"type {kind} has no canonical form; check the schema first", value=kind
        )
    return text


def _field(field: StructField) -> str:
    name = json.dumps(field.name, ensure_ascii=False)
    return f"{name}:{_type(field.dataType)}{_null(field.nullable)}"


def _null(allowed: bool) -> str:
    return "?" if allowed else "!"


# --- fingerprints as people type them ---


def is_prefix(text: str) -> bool:
    """Whether a text has the form of a fingerprint's beginning; no definition has."""
    return MIN_DIGITS <= len(text) <= MAX_DIGITS and _HEX.fullmatch(text.lower()) is not None


def resolve_prefix(prefix: str, fingerprints: Iterable[str]) -> str:
    """The one fingerprint that begins with `prefix`, in upper or lower case."""
    if not is_prefix(prefix):
        raise InvalidInput(
            f"a fingerprint is typed as {MIN_DIGITS} to {MAX_DIGITS} hexadecimal digits, not "
            f"{prefix!r}; copy more or less of it",
            value=prefix,
        )
    found = sorted({each for each in fingerprints if each.startswith(prefix.lower())})
    if not found:
        raise UnknownSchema(
            f"no schema has a fingerprint that begins with {prefix!r}; list the schemas to see "
            "which there are",
            value=prefix,
        )
    if len(found) > 1:
        raise AmbiguousFingerprint(
            f"{prefix!r} is the beginning of {len(found)} fingerprints: {listed(found, ', ')}; "
            "type more digits",
            value=prefix,
            candidates=found[:5],
        )
    return found[0]
