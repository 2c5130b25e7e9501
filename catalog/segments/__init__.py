"""Segments and their schemas: published and dropped, in one commit each."""
