"""The only code that speaks to Delta: layout, names, sessions, commits, versions, change feed."""
