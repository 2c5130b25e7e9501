"""Contracts: what the segments of a datasource must be like, checked by every commit."""
