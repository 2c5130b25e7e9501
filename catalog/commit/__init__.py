"""Rows with expectations and claims, committed in one MERGE and planned again when refused."""
