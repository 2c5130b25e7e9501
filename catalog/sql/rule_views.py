"""The views of named schemas, contracts, rules of retention and stored settings."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

# --- named schemas --------------------------------------------------------------------------------

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

# --- contracts ------------------------------------------------------------------------------------

_LIMIT = "STRUCT<most: BIGINT, table: STRING>"
_TERMS = (
    "from_json(payload, 'enforcement STRING, mode STRING, policy STRING, max_rows BIGINT, "
    "max_bytes BIGINT, "
    f"max_columns BIGINT, tables STRUCT<max_rows: {_LIMIT}, max_bytes: {_LIMIT}, "
    f"max_columns: {_LIMIT}>')"
)
_TABLES = "array(c.tables.max_rows.table, c.tables.max_bytes.table, c.tables.max_columns.table)"

CONTRACT_VIEWS = (
    View(
        "contracts",
        "What the segments of datasources must be like, one row for each datasource that has a "
        "contract or is limited by tables",
        "SELECT key AS datasource, c.enforcement, c.mode, c.policy, fingerprint, c.max_rows, "
        "c.max_bytes, "
        "c.max_columns, c.tables.max_rows.most AS table_max_rows, "
        "c.tables.max_bytes.most AS table_max_bytes, "
        "c.tables.max_columns.most AS table_max_columns, "
        f"array_sort(array_distinct(array_compact({_TABLES}))) AS tables, "
        "changed_at, changed_by, commit_id FROM "
        f"(SELECT *, {_TERMS} AS c FROM {{entries}} "
        "WHERE kind = 'datasource' AND payload IS NOT NULL)",
        {
            "datasource": "Name of the datasource",
            "enforcement": "none, warn, subset or strict: how schemas are compared with the "
            "contract's; null if there is no contract and only tables give limits",
            "mode": "none, backward, forward or full: who must be able to read whose data",
            "policy": "strict, widest or latest: how schemas are merged for readers who do not "
            "say; null if the contract does not either",
            "fingerprint": "Fingerprint of the contract's schema, if it has one",
            "max_rows": "Most rows of a segment by the contract; null without a limit",
            "max_bytes": "Most bytes of a segment by the contract; null without a limit",
            "max_columns": "Most columns at the top of a segment's schema by the contract; null "
            "without a limit",
            "table_max_rows": "Most rows of a segment by the tables that stand for the datasource, "
            "the least of them; null without a limit",
            "table_max_bytes": "Most bytes of a segment by these tables; null without a limit",
            "table_max_columns": "Most columns of a segment by these tables; null without a limit",
            "tables": "Keys of the tables that give these limits",
            "changed_at": "When one of the two was changed last",
            "changed_by": "Who changed it",
            "commit_id": COMMIT,
        },
        types={
            **dict.fromkeys(("table_max_rows", "table_max_bytes", "table_max_columns"), "BIGINT"),
            "tables": "ARRAY<STRING>",
        },
    ),
)

# --- retention ------------------------------------------------------------------------------------

_BODY = "get_json_object(payload, '$.body.{name}')"


def _field(name: str, type: str) -> str:
    # A value of another type is reported by `retention.apply`; the view stays readable.
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

# --- settings -------------------------------------------------------------------------------------

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
