"""Backups of a catalog, and the way back to what it was."""
