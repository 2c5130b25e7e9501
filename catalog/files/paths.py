"""Paths of data: locations with their formats, and patterns such as `/data/orders/**/*.parquet`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import cached_property

from catalog.errors import InvalidInput
from catalog.schema.names import shown

# As Spark SQL names files: parquet.`/data/x`.
_NAMED = re.compile(r"(?P<format>[a-z]+)\.`(?P<path>.+)`", re.DOTALL)
_PINNED = re.compile(r"(?P<path>.+)@v(?P<version>\d+)", re.DOTALL)
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<host>//[^/]*)?(?P<path>/.*)", re.DOTALL)
_WILD = re.compile(r"[{}\[\]*?\\]")
# Schemes of Spark that Arrow knows under one name.
_SAME = {"s3a": "s3", "s3n": "s3"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".deflate", ".lz4", ".xz")
_SUFFIXES = {
    ".parquet": "parquet",
    ".orc": "orc",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".delta": "delta",
}


class Format(StrEnum):
    """The formats of data that can be read."""

    PARQUET = "parquet"
    ORC = "orc"
    JSON = "json"
    CSV = "csv"
    DELTA = "delta"


FORMATS = tuple(form.value for form in Format)


@dataclass(frozen=True, slots=True)
class Place:
    """Where data is, and how to read it.

    Attributes:
        path: the path as Spark takes it.
        format: one of Spark's formats; none if neither the location nor the caller gives one.
        version: the version of a Delta table; none for the newest.
    """

    path: str
    format: str | None
    version: int | None = None


def place_of(location: str, default: str | None = None) -> Place:
    """The place of a location; `default` is the format of locations that do not give one.

    A location is a path with a known suffix (`…/x.parquet`, `…/x.json.gz`), or names its format as
    Spark SQL does (``orc.`/data/x` ``). A Delta table may be pinned to a version by `@v12`.
    """
    named = _NAMED.fullmatch(location)
    path, form = (named["path"], named["format"]) if named else (location, None)
    pinned = _PINNED.fullmatch(path)
    bare = pinned["path"] if pinned else path
    form = form or _by_suffix(bare) or default
    if form == "delta" and pinned:
        return Place(bare, form, int(pinned["version"]))
    return Place(path, form)


def _by_suffix(path: str) -> str | None:
    name = path.rstrip("/").rpartition("/")[2].lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return next((form for suffix, form in _SUFFIXES.items() if name.endswith(suffix)), None)


def escaped(path: str) -> str:
    """The path with the characters escaped that Spark's reader takes for wildcards."""
    return _WILD.sub(r"\\\g<0>", path)


def key_of(path: str) -> str:
    """The path without scheme, host, doubled and trailing slashes: paths are compared by it."""
    found = _URI.fullmatch(path)
    # Nothing in a path is escaped: a name may hold a colon, a percent sign, # or ? of its own.
    return re.sub("/+", "/", found["path"] if found else path).rstrip("/")


def same_storage(scheme: str) -> str:
    """The scheme as Arrow knows it, where Spark has several for one storage."""
    return _SAME.get(scheme, scheme)


def authority_of(path: str) -> str | None:
    """Scheme and host in one spelling; empty on local disk, none if the path has no scheme."""
    found = _URI.fullmatch(path)
    if found is None:
        return None
    scheme = same_storage(found["scheme"].lower())
    host = (found["host"] or "").removeprefix("//")
    # Databricks mounts volumes as folders, and its file system lists them under dbfs:.
    mounted = scheme == "dbfs" and f"{key_of(path)}/".startswith("/Volumes/")
    if not host and (mounted or scheme == "file"):
        return ""
    return f"{scheme}://{host}" if host else f"{scheme}:"


def address_of(place: Place) -> str:
    """The identity of a place: scheme and host unless it is local, path and version."""
    version = "" if place.version is None else f"@v{place.version}"
    return f"{authority_of(place.path) or ''}{key_of(place.path)}{version}"


def is_hidden(name: str) -> bool:
    """Whether Spark ignores files and folders of this name."""
    # A partition folder may be named after a column such as _day.
    inner = name.startswith("_") and "=" not in name
    return inner or name.startswith(".") or name.endswith("._COPYING_")


# --- patterns -------------------------------------------------------------------------------------

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*(?=/|$)|(?=/))")
_WILDCARD = re.compile(r"[*?\[\]{}]")
# A bracket that comes first in a class is one of its members.
_CLASS = re.compile(r"\[(?P<negated>[!^]?+)(?P<members>\][^\]/]*|[^\]/]+)\]")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_GROUP = re.compile(r"\{([^{}]*)\}")
_UNPAIRED = {"[": "], or nothing between them", "]": "[", "{": "}", "}": "{"}
# Inside of classes these are plain characters; a pattern holds no control characters of its own.
_PLAIN = str.maketrans("[]{},", "\1\2\3\4\5")
_AS_BEFORE = {new: old for old, new in _PLAIN.items()}
_MOST = 1_000

# A component of a pattern; none is `**`.
_Part = re.Pattern[str] | None


@dataclass(frozen=True)
class Pattern:
    """Files chosen by `*` and `?` within a name, `[abc]`, `{a,b}`, and `**` for any folders.

    Without wildcards it is one file, or a folder with everything below it. Files that are hidden
    from Spark never match.

    Attributes:
        text: the pattern as it was written.
        root: the path before the first component with a wildcard.
    """

    text: str
    root: str
    _choices: tuple[tuple[_Part, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern of a text; InvalidInput gives the reason if it is none."""
        _check(text)
        found = _PREFIX.match(text)
        prefix = found[0] if found else ""
        below = [name for name in text[len(prefix) :].split("/") if name]
        plain = next((n for n, name in enumerate(below) if _WILDCARD.search(name)), len(below))
        absolute = "/" if prefix or text.startswith("/") else ""
        root = prefix + absolute + "/".join(below[:plain])
        if not root:
            raise _wrong(text, "must name a folder before its first wildcard, as in /data/*.csv")
        if plain == len(below):
            return cls(text, root, ((None,),))
        return cls(text, root, tuple(map(_parts, _expanded(text, "/".join(below[plain:])))))

    def matches(self, path: str) -> bool:
        """Whether the file at a full path, with or without scheme and host, is one of these."""
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
    if given and _WILDCARD.search(scheme + rest.partition("/")[0]):
        raise _wrong(text, "must not have a wildcard in its scheme or bucket")


def _fits(parts: Sequence[_Part], names: Sequence[str]) -> bool:
    """Whether names match the components of a pattern, one by one."""
    # All places in the pattern that may be next: each name is matched once, however many `**`.
    places = _with_skipped(parts, {0})
    for name in names:
        places = _with_skipped(
            parts,
            {
                at if part is None else at + 1
                for at, part in enumerate(parts)
                if at in places and (part is None or part.match(name))
            },
        )
    return len(parts) in places


def _with_skipped(parts: Sequence[_Part], places: set[int]) -> set[int]:
    """The places with those after each `**`, which may also match nothing."""
    for at, part in enumerate(parts):
        if part is None and at in places:
            places.add(at + 1)
    return places


def _expanded(text: str, wild: str) -> set[str]:
    """The patterns without braces that a pattern with braces represents."""
    pending, done = {_CLASS.sub(lambda found: _class(text, found), wild)}, set[str]()
    while pending:
        each = pending.pop()
        if group := _GROUP.search(each):
            before, after = each[: group.start()], each[group.end() :]
            pending |= {before + choice + after for choice in group[1].split(",")}
        elif unpaired := re.search(r"[\[\]{}]", each):
            raise _wrong(text, f"has a {unpaired[0]} without its {_UNPAIRED[unpaired[0]]}")
        else:
            done.add(each)
        if len(pending) + len(done) > _MOST:
            raise _wrong(text, f"must not represent more than {_MOST} patterns; use fewer braces")
    return done


def _class(text: str, found: re.Match[str]) -> str:
    """A class as fnmatch has it, with its characters hidden from the search for braces."""
    for low, high in _RANGE.findall(found["members"]):
        if low > high:
            raise _wrong(text, f"has {found[0]}, whose range runs backwards")
    return f"[{'!' if found['negated'] else ''}{found['members']}]".translate(_PLAIN)


def _parts(plain: str) -> tuple[_Part, ...]:
    names = [name for name in plain.translate(_AS_BEFORE).split("/") if name]
    # fnmatch never looks back over a star, so many stars take no longer than few.
    return tuple(None if name == "**" else re.compile(translate(name)) for name in names)


def _wrong(text: str, problem: str) -> InvalidInput:
    return InvalidInput(f"The pattern {shown(text)!r} {problem}.", pattern=text)
