"""A schema as a value: parsed, checked, fingerprinted, translated. Nothing here needs a session."""

from catalog.schema.model import Schema, SchemaColumn

__all__ = ["Schema", "SchemaColumn"]
