"""Fingerprints as people type them: any unique beginning, as with git."""

from __future__ import annotations

import re
from collections.abc import Iterable

from catalog.errors import AmbiguousFingerprint, InvalidInput, UnknownSchema

MIN_DIGITS = 4
MAX_DIGITS = 32
_NAMED = 5
_HEX = re.compile(r"[0-9a-f]*")


def is_prefix(text: str) -> bool:
    """Whether a text has the form of a fingerprint's beginning; no definition has."""
    return MIN_DIGITS <= len(text) <= MAX_DIGITS and _HEX.fullmatch(text.lower()) is not None


def resolve_prefix(prefix: str, fingerprints: Iterable[str]) -> str:
    """The one fingerprint that begins with `prefix`, in whatever case it is typed."""
    wanted = prefix.lower()
    if not is_prefix(prefix):
        raise InvalidInput(
            f"a fingerprint is typed as {MIN_DIGITS} to {MAX_DIGITS} hexadecimal digits, not "
            f"{prefix!r}; copy more or less of it",
            value=prefix,
        )
    found = sorted({each for each in fingerprints if each.startswith(wanted)})
    if not found:
        raise UnknownSchema(
            f"no schema has a fingerprint that begins with {prefix!r}; list the schemas to see "
            "which there are",
            value=prefix,
        )
    if len(found) > 1:
        named = ", ".join(found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise AmbiguousFingerprint(
            f"{prefix!r} is the beginning of {len(found)} fingerprints: {named}{more}; type more "
            "digits",
            value=prefix,
            candidates=found[:_NAMED],
        )
    return found[0]
