"""The view of stored settings."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

SETTING_VIEWS = (
    View(
        "settings",
        "Settings that are stored in the catalog, one row each; those that are not there have "
        "their defaults",
        "SELECT key AS name, payload AS value, revision, published_at, changed_at, changed_by, "
        "commit_id FROM {entries} WHERE kind = 'setting'",
        {
            "name": "Its name, such as cleanup.grace",
            "value": "Its value as JSON; a time is a text such as 7d, a secret is a reference",
            "revision": "How often it was set, from 1",
            "published_at": "When it was first set",
            "changed_at": "When it was last set",
            "changed_by": "Who set it last",
            "commit_id": COMMIT,
        },
    ),
)
