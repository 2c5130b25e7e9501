"""Schemas in the words of others: JSON Schema and Avro, there and back. No session is needed."""

from catalog.dialects.avro import from_avro, to_avro
from catalog.dialects.jsonschema import from_json_schema, to_json_schema
from catalog.dialects.translation import Reading, Translation, Unsaid

__all__ = [
    "Reading",
    "Translation",
    "Unsaid",
    "from_avro",
    "from_json_schema",
    "to_avro",
    "to_json_schema",
]
