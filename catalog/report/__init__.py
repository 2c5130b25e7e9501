"""A catalog in one page: collected from the catalog, shown as HTML."""
