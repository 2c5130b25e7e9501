"""A schema as it comes out of storage: believed only if it is the one that was asked for."""

from __future__ import annotations

from catalog.errors import CorruptSchema, InvalidSchema
from catalog.schema.value import Schema


def read_stored(fingerprint: str, payload: str) -> Schema:
    """The schema in a payload that is stored under a fingerprint."""
    try:
        schema = Schema.from_payload(payload)
    except InvalidSchema as error:
        raise CorruptSchema(
            f"What is stored as schema {fingerprint} cannot be read: {error.message}.",
            fingerprint=fingerprint,
        ) from error
    if schema.fingerprint != fingerprint:
        raise CorruptSchema(
            f"What is stored as schema {fingerprint} is schema {schema.fingerprint}. Run verify to "
            "see what else is wrong, and restore the row from an earlier version.",
            fingerprint=fingerprint,
            found=schema.fingerprint,
        )
    return schema
