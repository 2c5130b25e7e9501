"""Readers' side: an immutable snapshot in memory, kept fresh by polls, broadcast to executors."""
