"""Who changed what, when and why: from the history and the change feed, and past both."""
