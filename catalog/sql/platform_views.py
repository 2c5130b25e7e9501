"""The views of declared types, and of the platform's objects as their types declare them."""

from __future__ import annotations

from catalog.delta.layout import View
from catalog.objects.declarations import Types
from catalog.objects.fields import BodyField, FieldType
from catalog.objects.platform import PLATFORM
from catalog.objects.types import TYPE, ObjectType
from catalog.schema.names import identifier

_SCALARS = {
    FieldType.TEXT: "STRING",
    FieldType.WHOLE: "BIGINT",
    FieldType.NUMBER: "DOUBLE",
    FieldType.BOOLEAN: "BOOLEAN",
}
_KEY = "Key of the object: type/path"
# What every view of objects ends with.
_LAST = {
    "revision": "How often it was changed, by itself or by what it links to, from 1",
    "changed_at": "When it was last changed",
    "changed_by": "Who changed it last",
}
# Types whose objects stand for a datasource, in a column of their own.
_WITH_DATASOURCE = frozenset({"table"})


def sql_type(field: BodyField) -> str:
    """The type of a field's column; what has no type of its own is JSON as a text."""
    if field.type is FieldType.LIST and field.of is not None:
        return f"ARRAY<{sql_type(field.of)}>"
    if field.type is FieldType.RECORD:
        inner = (f"{name}: {sql_type(each)}" for name, each in (field.fields or {}).items())
        return f"STRUCT<{', '.join(inner)}>"
    return _SCALARS.get(field.type, "STRING")


def view_name(type: str) -> str:
    """The name of the view of a type: its plural."""
    return type + ("es" if type.endswith("x") else "s")


def view_of(types: Types, declared: ObjectType) -> View:
    """The view of a type's objects: the parts of their keys, and a column for each field."""
    fields = declared.all_fields
    path = "substr(key, instr(key, '/') + 1)"
    if declared.owners:
        parts = {
            "owner_type": f"substring_index({path}, '/', 1)",
            "owner": f"substr({path}, instr({path}, '/') + 1)",
        }
        meant = {"owner_type": " or ".join(declared.owners), "owner": "Name of what it is for"}
    else:
        shape = [*types.shape(declared.name)[:-1], declared.named_by or "name"]
        parts = {name: f"split({path}, '/')[{index}]" for index, name in enumerate(shape)}
        meant = {name: f"Name of its {name}" for name in shape} | {"name": "Its name"}
    body = ", ".join(f"{identifier(name)}: {sql_type(each)}" for name, each in fields.items())
    said = f"from_json(payload, 'body STRUCT<{body}>').body"
    more = {"datasource": "The datasource that it stands for, if it does"}
    more = more if declared.name in _WITH_DATASOURCE else {}
    selected = [
        "key",
        *(f"{text} AS {identifier(name)}" for name, text in parts.items()),
        *(f"said.{identifier(name)}" for name in fields),
        *more,
        *_LAST,
    ]
    return View(
        view_name(declared.name),
        declared.comment,
        f"SELECT {', '.join(selected)} FROM (SELECT *, {said} AS said FROM {{entries}} "
        f"WHERE kind = 'object' AND startswith(key, '{declared.name}/'))",
        {
            "key": _KEY,
            **{name: meant[name] for name in parts},
            **{name: each.comment for name, each in fields.items()},
            **more,
            **_LAST,
        },
        types=dict.fromkeys(parts, "STRING")
        | {name: sql_type(each) for name, each in fields.items()},
    )


_DECLARED = {
    "name": ("STRING", "The type: the part of keys before the first slash"),
    "parent": ("STRING", "The type of the objects that its objects are below"),
    "owners": ("ARRAY<STRING>", "Instead of a parent, types of which any can be it"),
    "named_by": ("STRING", "The type whose names its objects have"),
    "fields": ("STRING", "What bodies hold, as JSON"),
    "references": ("MAP<STRING, STRING>", "Fields that refer to objects, with the type of these"),
    "states": ("STRING", "The states of its objects and which follow which, as JSON"),
    "rules": ("STRING", "Its rules with their parameters, as JSON"),
    "open": ("BOOLEAN", "Whether bodies may have other fields too"),
    "comment": ("STRING", "What it is"),
}
_BODY = ", ".join(f"`{name}`: {type}" for name, (type, _) in _DECLARED.items() if name != "name")

PLATFORM_VIEWS: tuple[View, ...] = (
    View(
        "object_types",
        "Declared types of objects, one row each",
        "SELECT key, substr(key, instr(key, '/') + 1) AS name, "
        + ", ".join(f"said.`{name}`" for name in _DECLARED if name not in ("name", "open"))
        + ", coalesce(said.`open`, false) AS `open`, "
        + ", ".join(_LAST)
        + f" FROM (SELECT *, from_json(payload, 'body STRUCT<{_BODY}>').body AS said "
        f"FROM {{entries}} WHERE kind = 'object' AND startswith(key, '{TYPE}/'))",
        {
            "key": _KEY,
            **{name: text for name, (_, text) in _DECLARED.items() if name != "open"},
            "open": _DECLARED["open"][1],
            **_LAST,
        },
        types={name: type for name, (type, _) in _DECLARED.items()},
    ),
    # The rules of retention have a view that says more.
    *(view_of(Types(PLATFORM), each) for each in PLATFORM if each.name != "retention"),
)
