"""The types of the platform, and the meaning of its tables: limits and schemas of datasources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from catalog.contracts.model import TableLimits, least, limits_in
from catalog.objects.declarations import REFERENCE, Types
from catalog.objects.fields import (
    anything,
    boolean,
    declared_fields,
    list_of,
    number,
    one_of,
    record,
    text,
    whole,
)
from catalog.objects.model import Keyed, Object, ObjectNode
from catalog.objects.rules import BrokenRule
from catalog.objects.types import (
    TYPE,
    ObjectType,
    States,
    at_most,
    conforms,
    distinct_siblings,
    meets,
    one_of_siblings,
    ranges,
    requires,
    retention,
    unique,
)

TABLE = "table"
# The name of a schema, and the number of its version if one is given.
SchemaName = tuple[str, int | None]

# The state is written at each step, so that interrupted work is visible.
LIFE = States(
    initial=("config",),
    next={
        "config": ("provision", "deallocate"),
        "provision": ("validate", "deallocate"),
        "validate": ("active", "provision", "deallocate"),
        "active": ("maintenance",),
        "maintenance": ("active", "deallocate"),
        "deallocate": (),
    },
)

PLATFORM: tuple[ObjectType, ...] = (
    ObjectType(
        "database",
        comment="Databases: sets of tables whose data lies in datastores",
        fields={"comment": text(comment="What it is for")},
    ),
    ObjectType(
        "datastore",
        comment="Datastores: places for data, cut into shards",
        fields={
            "location": text(comment="The folder that its data is in: a whole path or URI"),
            "comment": text(comment="What it is for"),
        },
    ),
    ObjectType(
        "datastore_link",
        parent="database",
        named_by="datastore",
        comment="Which datastores a database uses; exactly one of them is the primary one",
        fields={
            "role": one_of(
                "primary", "cache", "archive", required=True, comment="primary, cache or archive"
            )
        },
        rules=(one_of_siblings("role", "primary"),),
    ),
    ObjectType(
        "shard",
        parent="datastore",
        comment="Shards of datastores, each with a range of keys [low, high)",
        fields={
            "low": anything(comment="The first key of its range as JSON; null is an open end"),
            "high": anything(comment="The end of its range, exclusive, as JSON; null is open"),
            "requirements": list_of(
                text(), default=[], comment="Labels that the nodes of its replicas must have"
            ),
            "replicas": whole(0, 1000, default=1, comment="How many replicas it has at most"),
        },
        states=LIFE,
        rules=(ranges("low", "high"),),
    ),
    ObjectType(
        "replica",
        parent="shard",
        comment="Replicas of shards, each on a node of its own",
        fields={
            "node": text(required=True, comment="Name of the node that holds it"),
            "role": one_of("leader", "follower", default="follower", comment="leader or follower"),
        },
        references={"node": "node"},
        states=LIFE,
        rules=(
            distinct_siblings("node"),
            at_most("replicas"),
            meets("requirements", "node", "labels"),
        ),
    ),
    ObjectType(
        "node_type",
        comment="Storage types: the configuration that nodes of a kind need",
        fields={
            "schema": declared_fields(
                default={}, comment="Declarations of the fields of a node's config, as JSON"
            ),
            "comment": text(comment="What it is"),
        },
    ),
    ObjectType(
        "node",
        comment="Storage nodes",
        fields={
            "host": text(required=True, comment="Its name or address in the network"),
            "port": whole(1, 65535, required=True, comment="Its port"),
            "node_type": text(required=True, comment="Name of its storage type"),
            "config": anything(
                default={}, comment="The configuration that its storage type declares, as JSON"
            ),
            "labels": list_of(text(), default=[], comment="What it offers to shards"),
        },
        references={"node_type": "node_type"},
        states=LIFE,
        rules=(unique("host", "port"), conforms("config", "node_type", "schema")),
    ),
    ObjectType(
        TABLE,
        parent="database",
        comment="Tables of databases; the object's own datasource is the one that they represent",
        fields={
            "schema": text(comment="Name of its schema"),
            "schema_version": whole(1, comment="Version of that schema; null is the newest"),
            "limits": record(
                {
                    "max_rows": whole(1, comment="Rows of a segment at most"),
                    "max_bytes": whole(1, comment="Bytes of a segment at most"),
                    "max_columns": whole(1, comment="Columns of a segment at most"),
                },
                comment="Limits of a segment: max_rows, max_bytes, max_columns",
            ),
            "acl": anything(comment="Who may do what, as JSON"),
        },
        rules=(requires("schema_version", "schema"),),
    ),
    ObjectType(
        "index",
        parent="table",
        comment="Indexes of tables; exactly one of a table is the primary one",
        fields={
            "columns": list_of(text(), required=True, comment="The columns that it is made of"),
            "primary": boolean(default=False, comment="Whether it is the primary one"),
        },
        rules=(one_of_siblings("primary", True),),
    ),
    ObjectType(
        "retention",
        owners=("database", "datasource"),
        comment="How long data is kept, for a database or a datasource",
        fields={
            "max_age_days": number(
                0, comment="For how many days segments are kept; null is for ever"
            ),
            "max_segments": whole(1, comment="How many segments are kept; null is all"),
            "keep_at_least": whole(0, comment="How many of the newest are kept whatever their age"),
            "action": one_of(
                "drop", "archive", required=True, comment="drop or archive: what becomes of others"
            ),
            "enabled": boolean(default=True, comment="Whether the rule does anything"),
        },
        rules=(retention(),),
    ),
)


# --- limits of tables -----------------------------------------------------------------------------


def table_limits(found: ObjectNode | Object) -> dict[str, int]:
    """The limits that an object sets for its datasource, if it is a table that represents one."""
    if found.type != TABLE or found.datasource is None:
        return {}
    return limits_in(found.body.get("limits"))


def tables_declared(nodes: Mapping[str, ObjectNode]) -> bool:
    """Whether the type of tables is declared; until then, tables set no limits."""
    return f"{TYPE}/{TABLE}" in nodes


def limits_of(nodes: Mapping[str, ObjectNode]) -> dict[str, TableLimits]:
    """The limits of each datasource that has any."""
    if not tables_declared(nodes):
        return {}
    given: defaultdict[str, list[tuple[str, Mapping[str, int]]]] = defaultdict(list)
    for key, node in nodes.items():
        limits = table_limits(node)
        if limits and node.datasource is not None:
            given[node.datasource].append((key, limits))
    return {datasource: least(some) for datasource, some in given.items()}


def changed_limits(
    before: Mapping[str, ObjectNode], after: Mapping[str, ObjectNode]
) -> dict[str, TableLimits]:
    """The new limits of the datasources whose limits differ; empty where there are none left."""
    old, new = limits_of(before), limits_of(after)
    names = sorted(old.keys() | new.keys())
    return {name: new.get(name, {}) for name in names if old.get(name) != new.get(name)}


# --- schemas of tables ----------------------------------------------------------------------------


def named_schemas(
    types: Types, objects: Mapping[str, Keyed], before: Mapping[str, Keyed]
) -> dict[str, SchemaName]:
    """The schemas that tables name by their declared fields, where they differ from before."""
    declared = types.get(TABLE)
    if declared is None or "schema" not in declared.fields:
        return {}
    # Until the type is declared, tables name no schemas.
    known = before if declared.key in before else {}
    found = {}
    for key, each in objects.items():
        name = None if known.get(key) == each else _schema_name(each)
        if name is not None and name != _schema_name(known.get(key)):
            found[key] = name
    return found


def _schema_name(found: Keyed | None) -> SchemaName | None:
    if found is None or found.type != TABLE:
        return None
    body = found.body
    name, version = body.get("schema"), body.get("schema_version")
    # Values of other types break the rule `fields`.
    return (name, version if type(version) is int else None) if isinstance(name, str) else None


def missing_schemas(
    wanted: Mapping[str, SchemaName], known: Mapping[str, Collection[int]]
) -> list[BrokenRule]:
    """Tables whose schemas do not exist; `known` has the versions of the names that do."""
    found = []
    for key, (name, version) in sorted(wanted.items()):
        if name not in known:
            what = f"refers to the schema {name!r:.80}, which is not registered"
        elif version is not None and version not in known[name]:
            last = max(known[name], default=0)
            what = f"refers to version {version} of the schema {name!r:.80}, which has {last}"
        else:
            continue
        found.append(BrokenRule(REFERENCE, key, f"{what}; register it before"))
    return found
