"""The views of named schemas and their versions."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

_HEAD = (
    "from_json(payload, 'mode STRING, current INT, last_breaking INT, "
    "dropped MAP<STRING, STRUCT<type: STRING, since: INT>>')"
)
_VERSION = (
    "from_json(payload, 'compatible BOOLEAN, forced BOOLEAN, merged BOOLEAN, base INT, "
    "note STRING, reasons ARRAY<STRUCT<path: STRING, kind: STRING, why: STRING, against: INT>>')"
)
_REASONS = (
    "transform(v.said.reasons, r -> concat(r.path, ' was ', r.kind, ': ', r.why, "
    "' (against version ', r.against, ')'))"
)

NAMING_VIEWS = (
    View(
        "named_schemas",
        "Schemas that have a name, one row each",
        "SELECT key AS name, said.mode, said.current AS current_version, fingerprint, "
        "said.last_breaking, said.dropped, published_at AS registered_at, changed_at, changed_by, "
        f"commit_id FROM (SELECT *, {_HEAD} AS said FROM {{entries}} WHERE kind = 'named')",
        {
            "name": "Its name",
            "mode": "How a new version must get on with those before it: backward, full and so on",
            "current_version": "Number of the newest version",
            "fingerprint": "Fingerprint of the newest version's schema",
            "last_breaking": "Number of the newest version in which data of those before it cannot "
            "be read; 1 if there is none",
            "dropped": "Columns that were there once: path, last type, first version without it",
            "registered_at": "When its first version was registered",
            "changed_at": "When a version was registered last, or the mode changed",
            "changed_by": "Who did that",
            "commit_id": COMMIT,
        },
    ),
    View(
        "schema_versions",
        "Versions of named schemas, one row each; they never change",
        "SELECT substring_index(v.key, '/', 1) AS name, "
        "CAST(substring_index(v.key, '/', -1) AS BIGINT) AS version, v.fingerprint, "
        "get_json_object(d.payload, '$.ddl') AS ddl, v.said.compatible, "
        f"NOT v.said.compatible AS breaking, {_REASONS} AS reasons, v.said.forced, v.said.base, "
        "v.said.merged, v.said.note, v.published_at AS registered_at, "
        "v.changed_by AS registered_by, v.commit_id FROM "
        f"(SELECT *, {_VERSION} AS said FROM {{entries}} WHERE kind = 'version') AS v LEFT JOIN "
        "(SELECT key, min_by(payload, kind = 'retired') AS payload FROM {entries} "
        "WHERE kind IN ('schema', 'retired') GROUP BY key) AS d ON v.fingerprint = d.key",
        {
            "name": "The name that it is a version of",
            "version": "Its number, from 1 without gaps",
            "fingerprint": "Fingerprint of its schema",
            "ddl": "The definition as Spark DDL",
            "compatible": "Whether data of every version since the last breaking one can be read "
            "in it",
            "breaking": "The opposite: data of a version before cannot be read in it",
            "reasons": "Why it is breaking, and what was overridden to register it, for each "
            "column",
            "forced": "Whether it was registered though a rule forbade it",
            "base": "The version that its writer started from, if that was said",
            "merged": "Whether it is the merge with what others registered since the base",
            "note": "What its writer said of it",
            "registered_at": "When it was registered",
            "registered_by": "Who registered it",
            "commit_id": COMMIT,
        },
        types={"base": "INT"},
    ),
)
