"""Backfill: schemas of segments that were published without one, read from their data."""
