"""Where archived data goes: the datastore of a database, and the path of each segment (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from catalog.delta.location import is_relative
from catalog.errors import InvalidObject
from catalog.objects.model import ObjectNode

DATASTORE, LINK = "datastore", "datastore_link"
_ROLE = "archive"
# What may stand in a path on any storage as it is. Everything else is written as %XX, also @,
# which only the folders of commits begin with.
_PLAIN = re.compile(r"[A-Za-z0-9=+,._-]")
# Names that mean something to a file system, or that Spark passes by.
_HIDDEN = ("_", ".")
_MANIFEST = "_manifest"


def archive_of(datasource: str, databases: Collection[str], objects: Iterable[ObjectNode]) -> str:
    """The location to which a datasource's segments are archived; raises if there is not one.

    Args:
        datasource: whose segments they are.
        databases: those that its tables are in.
        objects: of types datastore and datastore_link.
    """
    everything = list(objects)
    stores = {each.path: each for each in everything if each.type == DATASTORE}
    names: set[str] = set()
    for each in everything:
        database, _, store = each.path.partition("/")
        if each.type == LINK and database in databases and each.body.get("role") == _ROLE:
            names.add(store)
    if not databases:
        raise InvalidObject(
            f"Segments of {datasource} cannot be archived: no table stands for the datasource, and "
            "so no database says where to; put table/<database>/<name> with its datasource.",
            datasource=datasource,
        )
    if len(names) != 1:
        among = ", ".join(sorted(databases))
        found = f"several do ({', '.join(sorted(names))})" if names else "none does"
        raise InvalidObject(
            f"Segments of {datasource} cannot be archived: one datastore_link of database {among} "
            f'must have {{"role": "{_ROLE}"}}, and {found}.',
            datasource=datasource,
        )
    (name,) = names
    if name not in stores:
        raise InvalidObject(
            f"Segments of {datasource} cannot be archived: there is no {DATASTORE}/{name}; put it.",
            datasource=datasource,
        )
    return _location(stores[name])


def _location(store: ObjectNode) -> str:
    location = store.body.get("location")
    if not isinstance(location, str) or not location.strip("/") or is_relative(location):
        raise InvalidObject(
            f"{store.key} must have the location of a folder in its body, a whole path or URI such "
            f"as s3://bucket/archive, not {location!r:.80}.",
            key=store.key,
        )
    return location.rstrip("/")


def folder_of(archive: str, datasource: str) -> str:
    """The folder of a datasource in an archive."""
    return f"{archive}/{_written(datasource)}"


def target_of(archive: str, segment_id: str, commit_id: str) -> str:
    """The folder of one segment as one commit left it.

    With the commit's id in it, a segment that is published again under its old id has another
    folder, and none lies among the files of another: nothing that is archived is ever replaced.
    """
    datasource, _, name = segment_id.partition("/")
    parts = "/".join(map(_written, name.split("/")))
    return f"{folder_of(archive, datasource)}/{parts}/@{_written(commit_id)}"


def manifest_of(archive: str, datasource: str) -> str:
    """The folder of a datasource's manifest; no segment can have it, as its name begins with _."""
    return f"{folder_of(archive, datasource)}/{_MANIFEST}"


def _written(part: str) -> str:
    """A name as one part of a path: never empty, hidden, or one that leads elsewhere."""
    if not part:
        return "%"
    text = "".join(c if _PLAIN.match(c) else _escaped(c) for c in part)
    return _escaped(text[0]) + text[1:] if text.startswith(_HIDDEN) else text


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
