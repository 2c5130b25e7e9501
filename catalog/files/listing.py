"""Which data there is, as the storage lists it, beside what the catalog knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.errors import PySparkException

from catalog.errors import InvalidInput
from catalog.files.patterns import Pattern
from catalog.model import Segment
from catalog.read.formats import address_of, escaped, place_of
from catalog.table.failures import condition_of, first_line

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
class Known:
    """A segment with a location, as its row was seen."""

    segment_id: str
    location: str
    size_bytes: int | None
    changed_micros: int
    commit_id: str
    digest: str
    complete: bool


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
    """

    new: Mapping[str, T]
    unchanged: int
    waiting: int
    changed: Mapping[str, T]
    missing: tuple[Known, ...]
    taken: Mapping[str, T]


def list_files(spark: SparkSession, pattern: Pattern) -> list[ListedFile]:
    """The files that a pattern fits, in the order of their paths."""
    try:
        rows = (
            spark.read.format("binaryFile")
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
    return sorted((f for f in files if pattern.matches(f.path)), key=lambda file: file.path)


def compare_files(
    datasource: str, pattern: Pattern, files: Sequence[ListedFile], known: Iterable[Known]
) -> Comparison[ListedFile]:
    """Sorts files and segments by what is to be done about them.

    A file belongs to the segment that has its location, whatever its id. It has changed if its
    size is another, or if it was written after its segment; as that is seen by the clocks of two
    machines, nothing is done about it without being told.
    """
    by_id = {segment.segment_id: segment for segment in known}
    by_place = {_address(segment.location): segment for segment in by_id.values()}
    new: dict[str, ListedFile] = {}
    changed: dict[str, ListedFile] = {}
    taken: dict[str, ListedFile] = {}
    unchanged = waiting = 0
    for file in files:
        segment = by_place.pop(_address(file.path), None)
        if segment is None:
            segment_id = f"{datasource}/{pattern.name_of(file.path)}"
            (taken if segment_id in by_id else new)[segment_id] = file
        elif not segment.complete:
            waiting += 1
        elif _differs(file, segment):
            changed[segment.segment_id] = file
        else:
            unchanged += 1
    gone = [each for each in by_place.values() if pattern.matches(place_of(each.location).path)]
    return Comparison(new, unchanged, waiting, changed, _sorted(gone), taken)


def compare_segments(
    root: str, segments: Mapping[str, Segment], known: Iterable[Known]
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
        if name in inside and by_id[name].complete and by_id[name].digest != each.digest
    }
    gone = [by_id[name] for name in inside - segments.keys()]
    unchanged = len(segments) - len(new) - len(taken) - len(waiting) - len(changed)
    return Comparison(new, unchanged, len(waiting), changed, _sorted(gone), taken)


def _sorted(segments: Iterable[Known]) -> tuple[Known, ...]:
    return tuple(sorted(segments, key=lambda segment: segment.segment_id))


def _differs(file: ListedFile, segment: Known) -> bool:
    if segment.size_bytes not in (None, file.size_bytes):
        return True
    return file.modified_micros > segment.changed_micros


def _address(location: str) -> str:
    return address_of(place_of(location))


def _inside(location: str, root: str) -> bool:
    place = place_of(location)
    return place.format == "delta" and f"{place.path.rstrip('/')}/".startswith(f"{root}/")
