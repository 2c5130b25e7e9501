"""The catalog for SQL users: its views, functions and figures, over any version of the table."""
