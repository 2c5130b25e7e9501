"""Schemas that nobody published: found in the data, stored when they are found."""
