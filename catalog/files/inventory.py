"""The inventory of a datasource: data in storage compared with segments in the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.errors import PySparkException

from catalog.delta.failures import condition_of, first_line
from catalog.delta.location import Location, absolute, is_relative
from catalog.errors import InvalidInput, InvalidSegment
from catalog.files.deltalog import TableLog
from catalog.files.footer import Describe, Footer
from catalog.files.paths import (
    Pattern,
    Place,
    address_of,
    authority_of,
    escaped,
    key_of,
    place_of,
)
from catalog.model import Segment, from_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as the storage lists it."""

    path: str
    size_bytes: int
    modified_micros: int


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A segment with a location, as its row was read."""

    segment_id: str
    location: str
    size_bytes: int | None
    changed_micros: int
    commit_id: str
    digest: str
    complete: bool
    starts_micros: int | None = None
    ends_micros: int | None = None


@dataclass(frozen=True)
class Inventory(Generic[T]):
    """The data in storage, sorted by how it compares with the catalog.

    Attributes:
        new: data without a segment, by the id that it gets.
        unchanged: the count of data that is as its segments say.
        waiting: the count of data whose segments wait for their schemas.
        changed: data that is not as it was published, by the id of its segment.
        missing: segments whose data is gone.
        taken: data that would get the id of a segment at another place, by that id.
        before: the segments of changed data, by their ids.
        touched: ids of data that changed by its time alone; its content may be the same.
    """

    new: Mapping[str, T]
    unchanged: int
    waiting: int
    changed: Mapping[str, T]
    missing: tuple[KnownFile, ...]
    taken: Mapping[str, T]
    before: Mapping[str, KnownFile] = field(default_factory=dict)
    touched: frozenset[str] = frozenset()

    @property
    def found(self) -> int:
        """The count of all data in storage."""
        sorted_out = len(self.new) + len(self.changed) + len(self.taken)
        return sorted_out + self.unchanged + self.waiting


def spelled_out(session: SparkSession, pattern: str) -> str:
    """A pattern with its path as Spark prints it."""
    if not pattern or place_of(pattern).path != pattern:
        return pattern
    if is_relative(pattern):
        here = absolute(session, Location(path=".")).path
        pattern = f"{here}/{pattern}"
    return normpath(pattern) if pattern.startswith("/") else pattern


def list_files(spark: SparkSession, pattern: Pattern) -> list[ListedFile]:
    """All files below the root of a pattern, in the order of their paths."""
    try:
        rows = (
            spark.read.format("binaryFile")
            # Whatever the session's settings: a skipped file would be taken for missing.
            .options(ignoreMissingFiles="false", ignoreCorruptFiles="false")
            .option("recursiveFileLookup", "true")
            .load(escaped(pattern.root))
            .selectExpr("path", "length", "unix_micros(modificationTime) AS modified")
            .toArrow()
            .to_pylist()
        )
    except PySparkException as error:
        if condition_of(error).startswith("PATH_NOT_FOUND"):
            raise InvalidInput(
                f"There is nothing at {pattern.root}; check the path.", pattern=pattern.text
            ) from error
        raise InvalidInput(
            f"{pattern.root} cannot be listed: {first_line(error)}", pattern=pattern.text
        ) from error
    files = [ListedFile(row["path"], row["length"], row["modified"]) for row in rows]
    return sorted(files, key=lambda file: file.path)


def compare_files(
    datasource: str, pattern: Pattern, listed: Sequence[ListedFile], known: Iterable[KnownFile]
) -> Inventory[ListedFile]:
    """Compares the files of a pattern with the segments of a datasource.

    A file belongs to the segment that has its location, whatever its id. It has changed if its
    size differs, or if it was written after its segment; as two machines have two clocks, it is
    not replaced unless the caller asks for that.

    Args:
        datasource: whose segments they are.
        pattern: chooses the files.
        listed: all files below the root of the pattern, as Spark lists them: with scheme and host.
        known: the segments of the datasource.
    """
    by_id = {segment.segment_id: segment for segment in known}
    root = _Root.of(pattern, listed)
    by_place = {root.address(segment.location): segment for segment in by_id.values()}
    new: dict[str, ListedFile] = {}
    changed: dict[str, ListedFile] = {}
    taken: dict[str, ListedFile] = {}
    touched: set[str] = set()
    unchanged = waiting = 0
    for file in listed:
        if not pattern.matches(file.path):
            continue
        segment = by_place.get(root.address(file.path))
        if segment is None:
            segment_id = f"{datasource}/{pattern.name_of(file.path)}"
            (taken if segment_id in by_id else new)[segment_id] = file
        elif not segment.complete:
            waiting += 1
        elif segment.size_bytes not in (None, file.size_bytes):
            changed[segment.segment_id] = file
        elif file.modified_micros > segment.changed_micros:
            changed[segment.segment_id] = file
            touched.add(segment.segment_id)
        else:
            unchanged += 1
    # Spark does not list empty files, so it is not known whether they are gone.
    gone = [e for e in by_id.values() if e.size_bytes != 0 and root.has_lost(e.location)]
    before = {name: by_id[name] for name in changed}
    return Inventory(
        new, unchanged, waiting, changed, _sorted(gone), taken, before, frozenset(touched)
    )


def compare_segments(
    root: str, segments: Mapping[str, Segment], known: Iterable[KnownFile]
) -> Inventory[Segment]:
    """The same for the partitions of the Delta table at `root`, all of which are in its log."""
    by_id = {segment.segment_id: segment for segment in known}
    new = {name: each for name, each in segments.items() if name not in by_id}
    inside = {name for name, each in by_id.items() if _inside(each.location, root)}
    taken = {name: segments[name] for name in segments.keys() & by_id.keys() - inside}
    waiting = [name for name in segments.keys() & inside if not by_id[name].complete]
    changed = {
        name: each
        for name, each in segments.items()
        if name in inside and by_id[name].complete and not _is_same(each, by_id[name])
    }
    gone = [by_id[name] for name in inside - segments.keys()]
    unchanged = len(segments) - len(new) - len(taken) - len(waiting) - len(changed)
    before = {name: by_id[name] for name in changed}
    return Inventory(new, unchanged, len(waiting), changed, _sorted(gone), taken, before)


def partitions_of(datasource: str, table: TableLog, pinned: int | None) -> dict[str, Segment]:
    """A segment for each partition of a Delta table, or one for a table that has none.

    Their locations are not pinned unless the caller named a version: an old version is gone when
    the table's log expires, and a partition that did not change is the same in a newer one.
    """
    pin = "" if pinned is None else f"@v{pinned}"
    whole = table.root.rpartition("/")[2]
    segments = [
        _segment(
            f"{datasource}/{part.folder or whole}",
            f"delta.`{f'{table.root}/{part.folder}'.rstrip('/')}{pin}`",
            Footer(table.schema, part.num_rows, part.size_bytes),
        )
        for part in table.parts
    ]
    return {segment.id: segment for segment in segments}


def as_published(segment: Segment, known: KnownFile) -> Segment:
    """A segment with what its data does not hold: its interval, and how its location is spelled.

    Raises `InvalidSegment` if the interval cannot be kept.
    """
    same = address_of(place_of(segment.location or "")) == address_of(place_of(known.location))
    try:
        starts, ends = (
            None if each is None else from_micros(each)
            for each in (known.starts_micros, known.ends_micros)
        )
    except OverflowError as error:
        raise InvalidSegment(
            f"Segment {segment.id} has an interval outside of the years 1 to 9999, which would be "
            "lost. Publish it from a DataFrame, or drop it first.",
            segment_id=segment.id,
        ) from error
    location = known.location if same else segment.location
    return replace(segment, location=location, starts_at=starts, ends_at=ends)


def _is_same(segment: Segment, known: KnownFile) -> bool:
    try:
        return as_published(segment, known).digest == known.digest
    except InvalidSegment:
        return False  # replacing it gives the reason


@dataclass(frozen=True)
class _Root:
    """The folder where a pattern begins, with its content.

    Attributes:
        authority: scheme and host as Spark lists them; none if nothing was listed.
        keys: the files and the folders above them, also those that the pattern does not match.
    """

    pattern: Pattern
    authority: str | None
    keys: frozenset[str]

    @classmethod
    def of(cls, pattern: Pattern, listed: Sequence[ListedFile]) -> _Root:
        authority = (authority_of(listed[0].path) or "") if listed else None
        keys: set[str] = set()
        for file in listed:
            key = key_of(file.path)
            while key and key not in keys:
                keys.add(key)
                key = key.rpartition("/")[0]
        return cls(pattern, authority, frozenset(keys))

    def address(self, location: str) -> str:
        """The address of a location; one without a scheme is taken to be in this storage."""
        place = place_of(location)
        plain = authority_of(place.path) is None
        return f"{(self.authority or '') if plain else ''}{address_of(place)}"

    def has_lost(self, location: str) -> bool:
        """Whether the data of a location would be here, and is not."""
        place = place_of(location)
        authority = authority_of(place.path)
        if authority is None:
            # Without a scheme it is where the session's paths are. That is here if the pattern
            # has none either; otherwise it may be elsewhere, and is not lost.
            plain = authority_of(self.pattern.root) is None
            authority = self.authority if plain else ""
        return (
            self.authority is not None
            and authority == self.authority
            and place.format != "delta"
            and key_of(place.path) not in self.keys
            and self.pattern.matches(place.path)
        )


def _sorted(segments: Iterable[KnownFile]) -> tuple[KnownFile, ...]:
    return tuple(sorted(segments, key=lambda segment: segment.segment_id))


def _inside(location: str, root: str) -> bool:
    """Whether a location is the Delta table at `root` or a partition of it, at any version."""
    place = place_of(location)
    if place.format != "delta":
        return False
    address, above = address_of(Place(place.path, None)), address_of(Place(root, None))
    below = address.removeprefix(f"{above}/")
    return address == above or (below != address and all("=" in n for n in below.split("/")))


# --- from footers to segments ---------------------------------------------------------------------


def segments_of(
    describe: Describe, places: Mapping[str, Place]
) -> tuple[dict[str, Segment], dict[str, str]]:
    """The segments at places, which are given by their ids; and the reasons why others are none."""
    segments: dict[str, Segment] = {}
    problems: dict[str, str] = {}
    outcomes = describe(list(places.values()))
    for (name, place), outcome in zip(places.items(), outcomes, strict=True):
        if isinstance(outcome, str):
            problems[name] = outcome
            continue
        # The location names the format where the path does not show it.
        shows = place_of(place.path).format == place.format
        location = place.path if shows else f"{place.format}.`{place.path}`"
        try:
            segments[name] = _segment(name, location, outcome)
        except InvalidSegment as error:  # a path that makes no id
            problems[name] = error.message
    return segments, problems


def _segment(segment_id: str, location: str, footer: Footer) -> Segment:
    rows, size = footer.num_rows, footer.size_bytes
    return Segment(segment_id, footer.schema, rows, size, location, inferred=footer.inferred)
