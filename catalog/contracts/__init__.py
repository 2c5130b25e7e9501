"""Contracts: what the segments of a datasource must be like, checked by everything that writes."""
