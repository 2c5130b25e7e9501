"""Tasks: long work in steps that survives the process that does it."""
