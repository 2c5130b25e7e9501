"""The reader's side: an immutable snapshot in memory, kept fresh by polls."""
