"""Retention: rules for how long segments stay, and what becomes of those that go."""
