"""Names of schemas, and the keys of their rows."""

from __future__ import annotations

import re
from typing import Any

from catalog.delta.layout import NAME_BUCKETS, bucket_of
from catalog.errors import InvalidName
from catalog.model import CONTROL, LONGEST_DATASOURCE

CURRENT = "current"
# No definition ends like this: neither DDL nor JSON.
_REFERENCE = re.compile(r"([^/]+)@([0-9]{1,9}|current)", re.DOTALL)


def check_name(name: Any) -> str:
    """The name, if it is within the limits, which are those of a datasource's."""
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidName(
            f"{name!r:.80} is not a name for a schema: it must be a text that is not empty and has "
            "no slash, such as orders.",
            name=name,
        )
    if len(name) > LONGEST_DATASOURCE:
        raise InvalidName(
            f"The name {name[:80]!r}… has {len(name)} characters; at most {LONGEST_DATASOURCE} are "
            "kept.",
            name=name,
        )
    if CONTROL.search(name):
        raise InvalidName(f"The name {name!r} has control characters; remove them.", name=name)
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidName(
            f"The name {name!r} has a lone surrogate, which UTF-8 cannot hold; remove it.",
            name=name,
        ) from error
    return name


def name_bucket(name: str) -> int:
    """The bucket of a name and of its versions."""
    return bucket_of(name, NAME_BUCKETS)


def version_key(name: str, number: int) -> str:
    """The key of one version of a name."""
    return f"{name}/{number}"


def parts_of(key: str) -> tuple[str, int]:
    """The name and the number in the key of a version."""
    name, _, number = key.rpartition("/")
    return name, int(number)


def reference(text: str) -> tuple[str, int | None] | None:
    """The name and the number in `orders@3`; no number in `orders@current`; none in other texts."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    name, number = found.groups()
    return name, None if number == CURRENT else int(number)
