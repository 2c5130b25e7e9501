"""Which data there is, as the storage lists it, beside what the catalog knows of it."""

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
from catalog.files.describe import segment_of
from catalog.files.footers import Footer
from catalog.files.formats import Place, address_of, authority_of, escaped, key_of, place_of
from catalog.files.patterns import Pattern
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
    """A segment with a location, as its row was seen."""

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
class Comparison(Generic[T]):
    """What is in the storage beside what is in the catalog.

    Attributes:
        new: what has no segment, by the id that it gets.
        unchanged: how much is as its segments say.
        waiting: how much has a segment that waits for its schema.
        changed: what is not as it was published, by the id of its segment.
        missing: segments whose data is gone.
        taken: what would get the id of a segment at another place, by that id.
        before: the segments of what changed, by their ids.
        touched: ids of what changed by its time alone; its content may be the same.
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
        """How much there is in the storage."""
        sorted_out = len(self.new) + len(self.changed) + len(self.taken)
        return sorted_out + self.unchanged + self.waiting


def spelled_out(session: SparkSession, pattern: str) -> str:
    """A pattern with its path as Spark lists what it finds there."""
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
            # Whatever the session says: a file that is passed by would be taken for missing.
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
) -> Comparison[ListedFile]:
    """Sorts files that the pattern fits, and segments, by what is to be done about them.

    A file belongs to the segment that has its location, whatever its id. It has changed if its
    size is another, or if it was written after its segment; as that is seen by the clocks of two
    machines, nothing is done about it without being told.

    Args:
        datasource: whose segments they are.
        pattern: which files are meant.
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
    # Spark does not list files without a byte, so nobody knows whether they are gone.
    gone = [e for e in by_id.values() if e.size_bytes != 0 and root.has_lost(e.location)]
    before = {name: by_id[name] for name in changed}
    return Comparison(
        new, unchanged, waiting, changed, _sorted(gone), taken, before, frozenset(touched)
    )


def compare_segments(
    root: str, segments: Mapping[str, Segment], known: Iterable[KnownFile]
) -> Comparison[Segment]:
    """The same for the partitions of the Delta table at `root`, whose log tells all of them."""
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
    return Comparison(new, unchanged, len(waiting), changed, _sorted(gone), taken, before)


def partitions_of(datasource: str, table: TableLog, pinned: int | None) -> dict[str, Segment]:
    """A segment for each partition of a Delta table, or one for a table that has none.

    Their locations mean the newest version, unless the caller named one: an old version is gone
    when the table's log expires, and a partition that did not change is the same in a newer one.
    """
    pin = "" if pinned is None else f"@v{pinned}"
    whole = table.root.rpartition("/")[2]
    segments = [
        segment_of(
            f"{datasource}/{part.folder or whole}",
            f"delta.`{f'{table.root}/{part.folder}'.rstrip('/')}{pin}`",
            Footer(table.schema, part.num_rows, part.size_bytes),
        )
        for part in table.parts
    ]
    return {segment.id: segment for segment in segments}


def as_published(segment: Segment, known: KnownFile) -> Segment:
    """A segment with what its data does not tell: its interval, and how its location is spelled.

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
        return False  # whoever replaces it is told why it cannot be


@dataclass(frozen=True)
class _Root:
    """The folder where a pattern begins, with all that is in it.

    Attributes:
        authority: scheme and host as Spark lists them; none if nothing was listed.
        keys: the files and the folders above them, also those that the pattern does not fit.
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
            # has none either; if not, nobody knows, and what may be elsewhere is not lost.
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
