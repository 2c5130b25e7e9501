"""The views of schemas, segments and datasources."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

_FINGERPRINT = "Fingerprint of the schema: 32 hex digits, the same in every catalog"
_SEGMENT_ID = "datasource/name, unique over the catalog"
_PARSED = (
    "from_json(payload, 'ddl STRING, columns ARRAY<STRUCT<path: STRING, name: STRING, "
    "position: INT, depth: INT, type: STRING, nullable: BOOLEAN, comment: STRING>>')"
)
_SCHEMA_COLUMNS = {
    "fingerprint": _FINGERPRINT,
    "ddl": "The definition as Spark DDL, columns in the order of first publication",
    "num_columns": "Columns at the top level",
    "published_at": "When the schema was first published",
    "changed_by": "Who published, retired or restored it last",
    "commit_id": COMMIT,
    "payload": "The definition as a JSON document",
}
_SCHEMA_SELECT = (
    f"key AS fingerprint, {_PARSED}.ddl AS ddl, "
    f"size(filter({_PARSED}.columns, c -> c.depth = 0)) AS num_columns, published_at, "
    "changed_by, commit_id, payload"
)
# Staged rows too: the schema of what is about to be published is no orphan.
_REFERENCES = (
    "SELECT DISTINCT fingerprint FROM {entries} "
    "WHERE kind NOT IN ('schema', 'retired') AND fingerprint IS NOT NULL"
)

SEGMENT_VIEWS = (
    View(
        "schemas",
        "Live schemas, one row each",
        f"SELECT {_SCHEMA_SELECT} FROM {{entries}} WHERE kind = 'schema'",
        _SCHEMA_COLUMNS,
    ),
    View(
        "schema_columns",
        "Columns of live schemas, one row each, nested ones by path",
        f"SELECT key AS fingerprint, c.path, c.name, c.position, c.depth, c.type, c.nullable, "
        f"c.comment FROM {{entries}} LATERAL VIEW explode({_PARSED}.columns) exploded AS c "
        "WHERE kind = 'schema'",
        {
            "fingerprint": _FINGERPRINT,
            "path": "Path from the top: a.b for a field, a.element.b inside an array",
            "name": "The column's own name",
            "position": "Place among its siblings, from 0",
            "depth": "0 at the top level",
            "type": "Spark SQL type",
            "nullable": "Whether it may be null",
            "comment": "The comment of the first publication",
        },
    ),
    View(
        "segments",
        "Segments, one row each",
        "SELECT key AS segment_id, datasource, substr(key, length(datasource) + 2) AS name, "
        "fingerprint, num_rows, size_bytes, location, starts_at, ends_at, "
        "state <=> 'inferred' AS inferred, revision, published_at, "
        "changed_at, changed_by, commit_id FROM {entries} WHERE kind = 'segment'",
        {
            "segment_id": _SEGMENT_ID,
            "datasource": "The part of the id before the first slash",
            "name": "The part of the id after it",
            "fingerprint": "Fingerprint of the segment's schema; null if it is not known yet",
            "num_rows": "Rows in the segment; null if they are not known",
            "size_bytes": "Bytes of the segment, if known",
            "location": "Where its data is, if known",
            "starts_at": "Start of its interval, inclusive",
            "ends_at": "End of its interval, exclusive",
            "inferred": "Whether its schema was guessed from a sample of the data",
            "revision": "How often the segment was written: 1 until it is replaced or backfilled",
            "published_at": "When it was first published",
            "changed_at": "When it was last changed",
            "changed_by": "Who changed it last",
            "commit_id": COMMIT,
        },
    ),
    View(
        "segments_without_schema",
        "Segments whose schema is not known yet: a backfill looks for it in their data",
        "SELECT key AS segment_id, datasource, location, num_rows, size_bytes, published_at, "
        "changed_at, state <=> 'quarantined' AS quarantined, "
        "get_json_object(payload, '$.reason') AS reason, "
        "CAST(get_json_object(payload, '$.attempts') AS INT) AS attempts, "
        "timestamp_micros(CAST(get_json_object(payload, '$.since_micros') AS BIGINT)) AS "
        "failed_since, timestamp_micros(CAST(get_json_object(payload, '$.retry_micros') AS "
        "BIGINT)) AS retry_at FROM {entries} WHERE kind = 'segment' AND fingerprint IS NULL",
        {
            "segment_id": _SEGMENT_ID,
            "datasource": "The part of the id before the first slash",
            "location": "Where its data is",
            "num_rows": "Rows in the segment, if known",
            "size_bytes": "Bytes of the segment, if known",
            "published_at": "When it was first published",
            "changed_at": "When it was last changed or tried",
            "quarantined": "Whether its data was asked and did not say its schema",
            "reason": "Why not",
            "attempts": "How often it was asked",
            "failed_since": "When it was asked first",
            "retry_at": "A backfill leaves it alone until then",
        },
    ),
    View(
        "segment_schemas",
        "Segments with the definitions of their schemas",
        "SELECT s.key AS segment_id, s.datasource, s.fingerprint, s.num_rows, d.ddl, d.retired "
        "FROM (SELECT * FROM {entries} WHERE kind = 'segment') AS s LEFT JOIN ("
        f"SELECT key, min_by({_PARSED}.ddl, kind = 'retired') AS ddl, "
        "min(kind = 'retired') AS retired FROM {entries} "
        "WHERE kind IN ('schema', 'retired') GROUP BY key) AS d ON s.fingerprint = d.key",
        {
            "segment_id": _SEGMENT_ID,
            "datasource": "The part of the id before the first slash",
            "fingerprint": "Fingerprint of the segment's schema; null if it is not known yet",
            "num_rows": "Rows in the segment",
            "ddl": "The schema as Spark DDL",
            "retired": "True while a clean-up has retired the schema and not yet restored it",
        },
    ),
    View(
        "datasources",
        "Datasources, one row each",
        "SELECT datasource, count(*) AS num_segments, "
        "count(DISTINCT fingerprint) AS num_schemas, "
        "count_if(fingerprint IS NULL) AS segments_without_schema, try_sum(num_rows) AS num_rows, "
        "try_sum(size_bytes) AS size_bytes, min(starts_at) AS starts_at, max(ends_at) AS ends_at, "
        "max(changed_at) AS changed_at FROM {entries} WHERE kind = 'segment' GROUP BY datasource",
        {
            "datasource": "Name of the datasource",
            "num_segments": "Its segments",
            "num_schemas": "Different schemas among them",
            "segments_without_schema": "Segments whose schema is not known yet",
            "num_rows": "Rows in all of them; null if they are too many for a BIGINT",
            "size_bytes": "Bytes of those whose size is known",
            "starts_at": "Earliest start of an interval",
            "ends_at": "Latest end of an interval",
            "changed_at": "When a segment of it was last changed",
        },
    ),
    View(
        "datasource_columns",
        "Columns of datasources, one row each, over all schemas that their segments have",
        "SELECT u.datasource, c.path, sort_array(collect_set(c.type)) AS types, "
        "count(DISTINCT u.fingerprint) AS num_schemas, sum(u.num_segments) AS num_segments, "
        "bool_or(c.nullable) AS nullable FROM (SELECT datasource, fingerprint, "
        "count(*) AS num_segments FROM {entries} WHERE kind = 'segment' "
        "AND fingerprint IS NOT NULL GROUP BY datasource, fingerprint) AS u JOIN ("
        f"SELECT key, min_by({_PARSED}.columns, kind = 'retired') AS columns FROM {{entries}} "
        "WHERE kind IN ('schema', 'retired') GROUP BY key) AS d ON u.fingerprint = d.key "
        "LATERAL VIEW explode(d.columns) exploded AS c GROUP BY u.datasource, c.path",
        {
            "datasource": "Name of the datasource",
            "path": "Path from the top: a.b for a field, a.element.b inside an array",
            "types": "The types that it has in these schemas, as Spark SQL names them",
            "num_schemas": "Schemas that have it",
            "num_segments": "Segments that have it",
            "nullable": "Whether it may be null in any of these schemas",
        },
    ),
    View(
        "orphan_schemas",
        "Live schemas that nothing refers to: the next clean-up may retire them",
        "SELECT s.* FROM (SELECT "
        f"{_SCHEMA_SELECT} FROM {{entries}} WHERE kind = 'schema') AS s "
        f"LEFT ANTI JOIN ({_REFERENCES}) AS r ON s.fingerprint = r.fingerprint",
        _SCHEMA_COLUMNS,
    ),
    View(
        "retired_schemas",
        "Schemas on their way out: still readable, purged after the grace",
        f"SELECT {_SCHEMA_SELECT}, changed_at AS retired_at FROM {{entries}} "
        "WHERE kind = 'retired'",
        {**_SCHEMA_COLUMNS, "retired_at": "When it was retired"},
    ),
)
