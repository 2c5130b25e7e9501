"""Which format the data at a location has, as far as the location says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

# Spark's own way to name files in SQL: parquet.`/data/x`.
_NAMED = re.compile(r"(?P<format>[a-z]+)\.`(?P<path>.+)`", re.DOTALL)
_PINNED = re.compile(r"(?P<path>.+)@v(?P<version>\d+)", re.DOTALL)
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<host>//[^/]*)?(?P<path>/.*)", re.DOTALL)
_WILD = re.compile(r"[{}\[\]*?\\]")
# Names of one storage for the file systems that reach it.
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
    """The formats of data that is read."""

    PARQUET = "parquet"
    ORC = "orc"
    JSON = "json"
    CSV = "csv"
    DELTA = "delta"


FORMATS = tuple(form.value for form in Format)


@dataclass(frozen=True, slots=True)
class Place:
    """Where data is, and how it is to be read.

    Attributes:
        path: the path as Spark takes it.
        format: one of Spark's formats; none if neither the location nor the caller says.
        version: the version of a Delta table that is meant; none for the newest.
    """

    path: str
    format: str | None
    version: int | None = None


def place_of(location: str, default: str | None = None) -> Place:
    """The place that a location means.

    A location is a path with a telling suffix (`…/x.parquet`, `…/x.json.gz`), or names its format
    as Spark SQL does (``orc.`/data/x` ``). A Delta table may be pinned by `@v12`.
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
    """The path as Spark's reader takes it, which would read some characters as wildcards."""
    return _WILD.sub(r"\\\g<0>", path)


def key_of(path: str) -> str:
    """The path without scheme, host and trailing slash: what Spark's file paths are compared by."""
    found = _URI.fullmatch(path)
    # Nothing in a path is escaped: a name may hold a colon, a percent sign, # or ? of its own.
    return _squeezed(found["path"] if found else path)


def same_storage(scheme: str) -> str:
    """The one name for a scheme that Spark has several for; Arrow knows only this one."""
    return _SAME.get(scheme, scheme)


def authority_of(path: str) -> str | None:
    """Scheme and host in one spelling, empty for what is local; none if the path has no scheme."""
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
    """What tells two places apart: scheme and host unless it is local, path and version."""
    version = "" if place.version is None else f"@v{place.version}"
    return f"{authority_of(place.path) or ''}{key_of(place.path)}{version}"


def _squeezed(path: str) -> str:
    return re.sub("/+", "/", path).rstrip("/")
