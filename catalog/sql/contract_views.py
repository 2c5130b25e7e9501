"""The view of contracts."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

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
