"""Settings: their types, their values in effect, and those stored in the catalog."""
