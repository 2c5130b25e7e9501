"""Scheduled upkeep: schemas that nothing uses are retired, files compacted and vacuumed."""
