"""The same work on other stores, in the same run, as an expert of each would do it."""
