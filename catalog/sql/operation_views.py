"""The views of objects, operations and the stable epoch."""

from __future__ import annotations

from catalog.delta.layout import COMMIT, View

_OBJECT = "from_json(payload, 'id STRING, body STRING, links MAP<STRING, BIGINT>')"
_OPERATION = (
    "from_json(payload, 'name STRING, parts INT, owner STRING, lease_micros BIGINT, epoch BIGINT')"
)
_OPERATION_ID = "Id of the operation: 32 hex digits, or as its owner chose it"
_OPERATION_STATE = "open, ready (waits for its epoch), published or aborted"

OPERATION_VIEWS = (
    View(
        "objects",
        "Objects, one row each",
        "SELECT key, substring_index(key, '/', 1) AS type, substr(key, instr(key, '/') + 1) AS "
        "path, o.id AS object_id, revision, o.body, o.links, fingerprint, datasource, "
        "published_at, changed_at, changed_by, commit_id FROM "
        f"(SELECT *, {_OBJECT} AS o FROM {{entries}} WHERE kind = 'object')",
        {
            "key": "type/path, unique over the catalog",
            "type": "The part of the key before the first slash",
            "path": "The part of the key after it",
            "object_id": "32 hex digits; a key that was removed and created again has others",
            "revision": "How often it was changed, by itself or by what it links to, from 1",
            "body": "Its content as a JSON document",
            "links": "Keys of the objects that it links to, each with that object's revision",
            "fingerprint": "Fingerprint of its schema, if it has one",
            "datasource": "The datasource that it stands for, if it does",
            "published_at": "When it was created",
            "changed_at": "When it was last changed",
            "changed_by": "Who changed it last",
            "commit_id": COMMIT,
        },
    ),
    View(
        "object_links",
        "Links between objects, one row each",
        "SELECT key, linked.target, linked.target_revision FROM {entries} "
        f"LATERAL VIEW explode({_OBJECT}.links) linked AS target, target_revision "
        "WHERE kind = 'object'",
        {
            "key": "Key of the object that holds the link",
            "target": "Key of the object that it leads to",
            "target_revision": "Revision of the target, the same as in its own row",
        },
    ),
    View(
        "operations",
        "Operations, one row each: changes in several parts that become visible at one moment",
        # One reading of the table, so that parts and claims are those of the state beside them.
        "SELECT operation AS operation_id, o.said.name, o.state, o.said.parts, parts_staged, "
        "IF(o.state IN ('open', 'ready'), claimed, 0) AS claims, o.said.epoch, o.said.owner, "
        "timestamp_micros(o.said.lease_micros) AS lease_until, o.state = 'open' AND "
        "timestamp_micros(o.said.lease_micros) <= current_timestamp() AS expired, "
        "unix_seconds(current_timestamp()) - unix_seconds(o.published_at) AS age_seconds, "
        "o.published_at AS opened_at, o.changed_at, o.commit_id FROM (SELECT operation, "
        "max(IF(kind = 'operation', struct(state, published_at, changed_at, commit_id, "
        f"{_OPERATION} AS said), NULL)) AS o, count_if(kind = 'part') AS parts_staged, "
        "count(DISTINCT IF(kind = 'staged' AND action <> 'hold', struct(target, key), NULL)) AS "
        "claimed FROM {entries} WHERE kind IN ('operation', 'part', 'staged') GROUP BY operation) "
        "WHERE o IS NOT NULL",
        {
            "operation_id": _OPERATION_ID,
            "name": "What it is called",
            "state": _OPERATION_STATE,
            "parts": "How many parts it is to have; null until that is known",
            "parts_staged": "How many of them are staged",
            "claims": "Keys that it has for itself; 0 once it is published or aborted",
            "epoch": "The epoch that it waits for, or was published at; null without one",
            "owner": "Who opened it",
            "lease_until": "From then on a recovery may abort it, if it is still open",
            "expired": "Whether it is open and its lease is over",
            "age_seconds": "Seconds since it was opened",
            "opened_at": "When it was opened",
            "changed_at": "When it was last changed",
            "commit_id": COMMIT,
        },
        needs=("operation", "target", "action"),
    ),
    View(
        "claims",
        "Claims of operations that are open or ready, one row for each key and part",
        "SELECT s.target, s.key, s.operation AS operation_id, o.said.name, o.state, s.action, "
        "s.action = 'hold' AS shared, s.part, timestamp_micros(o.said.lease_micros) AS lease_until "
        "FROM (SELECT * FROM {entries} WHERE kind = 'staged') AS s JOIN "
        f"(SELECT key, state, {_OPERATION} AS said FROM {{entries}} "
        "WHERE kind = 'operation' AND state IN ('open', 'ready')) AS o ON s.operation = o.key",
        {
            "target": "What is claimed: segment, object or datasource",
            "key": "Id of the segment, key of the object or name of the datasource",
            "operation_id": _OPERATION_ID,
            "name": "What the operation is called",
            "state": "open, or ready (waits for its epoch)",
            "action": "publish, replace, drop, keep (it is there already), put, remove, bump (it "
            "links to what changes), claim or hold",
            "shared": "Whether others may hold it too; otherwise it is the operation's own",
            "part": "The part that claims it, from 0",
            "lease_until": "From then on a recovery may abort the operation, if it is still open",
        },
        needs=("operation", "target", "action", "part"),
    ),
    View(
        "stable_epoch",
        "The stable epoch, in one row",
        "SELECT coalesce(max(IF(kind = 'epoch', CAST(get_json_object(payload, '$.stable') AS "
        "BIGINT), NULL)), 0) AS epoch, max(IF(kind = 'epoch', changed_at, NULL)) AS changed_at, "
        "count_if(kind = 'operation' AND state = 'ready') AS waiting FROM {entries} "
        "WHERE kind IN ('epoch', 'operation')",
        {
            "epoch": "Operations that were ready at this epoch or below are published; 0 at first",
            "changed_at": "When it, or what waits for a higher one, last changed",
            "waiting": "Operations that are ready and wait for a higher one",
        },
    ),
)
