"""Schemas with a name and numbered versions: who may follow whom, and what was dropped."""
