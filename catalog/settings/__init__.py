"""Settings that are stored in the catalog: what is known, and how they are kept."""
