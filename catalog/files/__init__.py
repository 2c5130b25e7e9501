"""Data files: their paths and storage, their footers, and how they are published."""
