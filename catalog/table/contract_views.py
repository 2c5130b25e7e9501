"""The view of contracts."""

from __future__ import annotations

from catalog.table.view import COMMIT, View

_TERMS = (
    "from_json(payload, 'enforcement STRING, mode STRING, max_rows BIGINT, max_bytes BIGINT, "
    "max_columns BIGINT')"
)

CONTRACT_VIEWS = (
    View(
        "contracts",
        "Contracts of datasources, one row each: what their segments must be like",
        "SELECT key AS datasource, c.enforcement, c.mode, fingerprint, c.max_rows, c.max_bytes, "
        "c.max_columns, changed_at, changed_by, commit_id FROM "
        f"(SELECT *, {_TERMS} AS c FROM {{entries}} "
        "WHERE kind = 'datasource' AND payload IS NOT NULL)",
        {
            "datasource": "Name of the datasource",
            "enforcement": "none, warn, subset or strict: how schemas are compared with the "
            "contract's",
            "mode": "none, backward, forward or full: who must be able to read whose data",
            "fingerprint": "Fingerprint of the contract's schema, if it has one",
            "max_rows": "Most rows of a segment; null without a limit",
            "max_bytes": "Most bytes of a segment; null without a limit",
            "max_columns": "Most columns at the top of a segment's schema; null without a limit",
            "changed_at": "When it was set",
            "changed_by": "Who set it",
            "commit_id": COMMIT,
        },
    ),
)
