"""Objects: named things of the platform with a JSON body, links and revisions, and their types."""
