"""Datasources: their merged schemas, and their data in one frame."""
