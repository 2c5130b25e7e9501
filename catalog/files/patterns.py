"""Patterns of file paths, such as `/data/orders/**/*.parquet`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from catalog.errors import InvalidInput
from catalog.files.formats import key_of
from catalog.schema.names import shown

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*(?=/|$)|(?=/))")
_WILD = re.compile(r"[*?\[\]{}]")
# A bracket that stands first in a class is one of its members.
_CLASS = re.compile(r"\[(?P<negated>[!^]?+)(?P<members>\][^\]]*|[^\]]+)\]")
_MOST = 1_000

# A component of a pattern; none stands for `**`.
_Part = re.Pattern[str] | None


def is_hidden(name: str) -> bool:
    """Whether Spark passes by files and folders of this name."""
    # A partition folder may be named after a column such as _day.
    inner = name.startswith("_") and "=" not in name
    return inner or name.startswith(".") or name.endswith("._COPYING_")


@dataclass(frozen=True)
class Pattern:
    """Which files are meant: `*` and `?` within a name, `[abc]`, `{a,b}`, `**` for any folders.

    Without any of these it is one file, or a folder with everything below it. What is hidden from
    Spark is never meant.

    Attributes:
        text: the pattern as it was written.
        root: the path before the first component with a wildcard.
    """

    text: str
    root: str
    _choices: tuple[tuple[_Part, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern that a text means; InvalidInput says what is wrong with it."""
        _check(text)
        found = _PREFIX.match(text)
        prefix = found[0] if found else ""
        below = [name for name in text[len(prefix) :].split("/") if name]
        plain = next((n for n, name in enumerate(below) if _WILD.search(name)), len(below))
        absolute = "/" if prefix or text.startswith("/") else ""
        root = prefix + absolute + "/".join(below[:plain])
        if not root:
            raise _wrong(text, "must name a folder before its first wildcard, as in /data/*.csv")
        if plain == len(below):
            return cls(text, root, ((None,),))
        wild = "/".join(below[plain:])
        return cls(text, root, tuple(_parts(text, each) for each in _expanded(text, wild)))

    def matches(self, path: str) -> bool:
        """Whether a file is meant, by its full path with or without scheme and host."""
        names = self._below(path)
        if names is None or any(map(is_hidden, names or [key_of(path).rpartition("/")[2]])):
            return False
        return any(_fits(parts, names) for parts in self._choices)

    def name_of(self, path: str) -> str:
        """The path below the root; the file's name if it is the root itself."""
        names = self._below(path)
        if names is None:
            raise InvalidInput(
                f"{shown(path)} is not below {shown(self.root)}, where the pattern "
                f"{shown(self.text)} begins.",
                path=path,
                pattern=self.text,
            )
        return "/".join(names) or key_of(path).rpartition("/")[2]

    @cached_property
    def _key(self) -> str:
        return key_of(self.root)

    def _below(self, path: str) -> list[str] | None:
        """The names that lead from the root to a path; none if it is elsewhere."""
        key = key_of(path)
        if key == self._key:
            return []
        return key[len(self._key) + 1 :].split("/") if key.startswith(f"{self._key}/") else None


def _check(text: str) -> None:
    if not text.strip():
        raise _wrong(text, "must not be empty")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise _wrong(text, "must not hold control characters")
    scheme, given, rest = text.partition("://")
    if given and _WILD.search(scheme + rest.partition("/")[0]):
        raise _wrong(text, "must not have a wildcard in its scheme or bucket")


def _fits(parts: Sequence[_Part], names: Sequence[str]) -> bool:
    """Whether names fit the components of a pattern, one by one."""
    # All places in the pattern that may be next: each name is looked at once, whatever `**` takes.
    places = _reached(parts, {0})
    for name in names:
        taken = set()
        for at in places - {len(parts)}:
            part = parts[at]
            if part is None:
                taken.add(at)
            elif part.fullmatch(name):
                taken.add(at + 1)
        places = _reached(parts, taken)
    return len(parts) in places


def _reached(parts: Sequence[_Part], places: set[int]) -> set[int]:
    """The places with those after each `**`, which may also stand for nothing."""
    reached = set(places)
    for at in sorted(places):
        while at < len(parts) and parts[at] is None:
            at += 1
            reached.add(at)
    return reached


# --- reading a pattern ---


def _expanded(text: str, wild: str) -> list[str]:
    """The patterns without braces that a pattern with braces stands for."""
    pending, done = [wild], []
    while pending:
        each = pending.pop()
        group = _first_group(text, each)
        if group is None:
            done.append(each)
        else:
            begin, end, choices = group
            pending += [each[:begin] + choice + each[end:] for choice in choices]
        if len(pending) + len(done) > _MOST:
            raise _wrong(text, f"must not stand for more than {_MOST} patterns; use fewer braces")
    return done


def _first_group(text: str, wild: str) -> tuple[int, int, list[str]] | None:
    """The first group in braces: where it begins and ends, and what it offers."""
    begin, depth = -1, 0
    commas: list[int] = []
    for at, char in _outside_classes(text, wild):
        if char == "{":
            begin, depth = (at, 1) if depth == 0 else (begin, depth + 1)
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise _wrong(text, "has a } without its {")
            if depth == 0:
                edges = [begin, *commas, at]
                return begin, at + 1, [wild[a + 1 : b] for a, b in pairwise(edges)]
        elif char == "," and depth == 1:
            commas.append(at)
    if depth:
        raise _wrong(text, "has a { without its }")
    return None


def _outside_classes(text: str, wild: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(wild):
        if wild[at] == "[":
            found = _CLASS.match(wild, at)
            if found is None or "/" in found[0]:
                raise _wrong(text, "has a [ without its ], or nothing between them")
            at = found.end()
            continue
        if wild[at] == "]":
            raise _wrong(text, "has a ] without its [")
        yield at, wild[at]
        at += 1


def _parts(text: str, plain: str) -> tuple[_Part, ...]:
    names = [name for name in plain.split("/") if name]
    return tuple(None if name == "**" else _component(text, name) for name in names)


def _component(text: str, name: str) -> re.Pattern[str]:
    """One component as a regular expression that never looks back over a star."""
    pieces = [""]
    at = 0
    while at < len(name):
        if name[at] == "*":
            pieces.append("")
        elif name[at] == "[":
            found = _CLASS.match(name, at)
            assert found is not None  # as _outside_classes has seen
            pieces[-1] += _class(text, found)
            at = found.end()
            continue
        else:
            pieces[-1] += "." if name[at] == "?" else re.escape(name[at])
        at += 1
    first, *rest = pieces
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    # The first place where a piece fits is as good as any later one, so it is kept for good.
    held = "".join(f"(?>.*?{piece})" for piece in middle)
    return re.compile(f"{first}{held}.*{last}", re.DOTALL)


def _class(text: str, found: re.Match[str]) -> str:
    members, written, at = found["members"], "", 0
    while at < len(members):
        low, ranged = members[at], members[at + 1 : at + 2] == "-" and at + 2 < len(members)
        high = members[at + 2] if ranged else low
        if low > high:
            raise _wrong(text, f"has {found[0]}, whose range runs backwards")
        written += f"{re.escape(low)}-{re.escape(high)}"
        at += 3 if ranged else 1
    return f"[{'^' if found['negated'] else ''}{written}]"


def _wrong(text: str, problem: str) -> InvalidInput:
    return InvalidInput(f"The pattern {shown(text)!r} {problem}.", pattern=text)
