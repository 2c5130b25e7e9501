"""Objects: named things with a body, links to one another, and revisions that agree. Pure."""
