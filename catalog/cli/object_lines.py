"""Objects as JSON lines: what `strata objects put` reads, from a file or from standard input."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.objects.model import Object

STDIN = "-"
FIELDS = ("key", "body", "links", "schema", "datasource")


def read_objects(file: str) -> list[Object]:
    """The objects of a file, or of standard input if it is `-`; one JSON object a line."""
    found = list(objects_of(text_of(file), told(file)))
    if not found:
        raise InvalidInput(f"There is no object in {told(file)}; write one a line.", file=file)
    return found


def text_of(file: str) -> str:
    """The text of a local file, or of standard input."""
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{told(file)} cannot be read: {error}.", file=file) from error


def told(file: str) -> str:
    """A file as messages name it."""
    return "standard input" if file == STDIN else file


def objects_of(text: str, source: str) -> Iterator[Object]:
    """The objects of a text's lines; errors say which line is meant."""
    # Not splitlines: JSON may have other line breaks than these inside its texts.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _object(line)
        except InvalidInput as error:
            error.add_note(f"That is line {number} of {source}; nothing was written.")
            raise


def _object(line: str) -> Object:
    try:
        document = json.loads(line, object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{line!r:.80} is not JSON: {error}.") from error
    if not isinstance(document, dict):
        raise InvalidInput(
            f"An object is written as a JSON object with {', '.join(FIELDS)}, not as {line!r:.80}."
        )
    for name in document.keys() - set(FIELDS):
        near = difflib.get_close_matches(name, FIELDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(FIELDS)}."
        raise InvalidInput(f"An object has no {name!r:.80}: {hint}", field=name)
    if "key" not in document:
        raise InvalidInput(f"{line!r:.80} has no key, such as table/sales/orders; give it one.")
    links = document.get("links") or []
    if not isinstance(links, list):
        # What get shows has revisions: taken for keys alone, they would look like a condition.
        raise InvalidInput(f"links is a list of keys, not {json.dumps(links)!r:.80}.", links=links)
    return Object(
        document["key"],
        document.get("body"),
        links=links,
        schema=document.get("schema"),
        datasource=document.get("datasource"),
    )


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """One object of a document, in which no name stands twice: only one of the two would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r:.80} stands twice in one object")
    return found
