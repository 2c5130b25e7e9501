"""A schema as a value: parsed, checked, fingerprinted. Nothing here needs a session."""

from catalog.schema.columns import Column
from catalog.schema.value import Schema

__all__ = ["Column", "Schema"]
