"""The view of the rules of retention."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

_BODY = "get_json_object(payload, '$.body.{name}')"


def _field(name: str, type: str) -> str:
    # Whoever put something else is told by retain; the view stays readable.
    return f"try_cast({_BODY.format(name=name)} AS {type})"


RETENTION_VIEWS = (
    View(
        "retention_rules",
        "Rules of retention, one row each: how long segments stay, and what becomes of them",
        "SELECT key, split_part(key, '/', 2) AS scope, split_part(key, '/', 3) AS name, "
        f"{_field('max_age_days', 'DOUBLE')} AS max_age_days, "
        f"{_field('max_segments', 'BIGINT')} AS max_segments, "
        f"coalesce({_field('keep_at_least', 'BIGINT')}, 0) AS keep_at_least, "
        f"{_BODY.format(name='action')} AS action, "
        f"coalesce({_field('enabled', 'BOOLEAN')}, true) AS enabled, "
        "changed_at, changed_by, commit_id FROM {entries} "
        "WHERE kind = 'object' AND startswith(key, 'retention/')",
        {
            "key": "Key of the object that holds the rule",
            "scope": "datasource, or database: for the datasources of its tables without own rules",
            "name": "Name of the datasource or the database",
            "max_age_days": "Segments go when the end of their interval, else their publication, "
            "is longer ago; null if age does not matter",
            "max_segments": "So many of the newest stay; null if the count does not matter",
            "keep_at_least": "So many of the newest stay, however old they are",
            "action": "drop, or archive: their data is copied first",
            "enabled": "Whether it does anything",
            "changed_at": "When it was last changed",
            "changed_by": "Who changed it last",
            "commit_id": COMMIT,
        },
    ),
)
