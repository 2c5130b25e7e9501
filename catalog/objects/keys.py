"""Keys of objects: `type/path`."""

from __future__ import annotations

import re
from typing import Any

from catalog.errors import InvalidObject
from catalog.model import CONTROL

LONGEST_KEY = 1024
_TYPE = re.compile(r"[a-z][a-z0-9_]*")


def check_key(key: Any, what: str = "The key of an object") -> str:
    """The key, if it is `type/path` within the limits; `what` begins the message if it is not."""
    if not isinstance(key, str):
        raise InvalidObject(f"{what} must be a string, not {key!r:.80}.", key=key)
    kind, _, path = key.partition("/")
    if not _TYPE.fullmatch(kind) or not path:
        raise InvalidObject(
            f"{what} must be type/path with both parts filled and a type of lowercase letters, "
            f"digits and underscores that begins with a letter, such as table/sales/orders, "
            f"not {key!r:.80}.",
            key=key,
        )
    if len(key) > LONGEST_KEY:
        raise InvalidObject(
            f"{what} has {len(key)} characters and begins with {key[:80]!r}; at most "
            f"{LONGEST_KEY} are kept.",
            key=key,
        )
    check_text(what, key, key)
    for part in path.split("/"):
        _check_part(part, key, what)
    return key


def check_text(what: str, text: str, key: str) -> None:
    """Raises `InvalidObject` for control characters and what UTF-8 cannot hold."""
    if CONTROL.search(text):
        raise InvalidObject(f"{what} {text!r:.80} has control characters; remove them.", key=key)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidObject(
            f"{what} {text!r:.80} has a lone surrogate, which UTF-8 cannot hold; remove it.",
            key=key,
        ) from error


def _check_part(part: str, key: str, what: str) -> None:
    if not part:
        wrong = "has a part without a name between or after its slashes; name it or leave it out"
    elif part.startswith("_"):
        wrong = f"has the part {part!r:.80}, and names that begin with _ are reserved; rename it"
    elif part != part.strip():
        wrong = f"has the part {part!r:.80} with a space at its end or beginning; remove it"
    else:
        return
    raise InvalidObject(f"{what} {key!r:.80} {wrong}.", key=key)


def check_type(type: Any) -> str:
    """The type of an object, if it is one that a key can have."""
    if not isinstance(type, str) or not _TYPE.fullmatch(type):
        raise InvalidObject(
            f"A type has lowercase letters, digits and underscores and begins with a letter, such "
            f"as table, not {type!r:.80}.",
            type=type,
        )
    return type
