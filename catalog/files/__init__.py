"""Data files: where they lie, and what they say of themselves."""
