"""Files published as segments: listed, compared with the catalog, described, published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from catalog.contracts.enforcement import reasons_of
from catalog.delta.layout import of_datasource
from catalog.delta.store import Store
from catalog.errors import ContractViolation, InvalidInput, InvalidSegment, SegmentConflict
from catalog.files.deltalog import TableLogs, is_table, read_log, tables_below
from catalog.files.footer import Describe, slices
from catalog.files.inventory import (
    Inventory,
    KnownFile,
    ListedFile,
    as_published,
    compare_files,
    compare_segments,
    list_files,
    partitions_of,
    segments_of,
    spelled_out,
)
from catalog.files.paths import Format, Pattern, Place, place_of
from catalog.model import DropResult, PublishResult, Segment
from catalog.progress import Progress, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Make = Callable[[Mapping[str, T]], dict[str, Segment]]

DEFAULT_BATCH = 10_000


@dataclass(frozen=True)
class FileProblem:
    """A file that was not published, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class FilesReport:
    """The outcome of publishing files, or of a dry run.

    Attributes:
        version: the version that it reached.
        files: the number of files, or of partitions of a Delta table.
        published: the number of new segments.
        replaced: the number of segments of changed files that were published again.
        unchanged: the number of files that are as their segments say, also if written again.
        waiting: the number of files whose segments wait for a backfill.
        changed: ids of segments whose files are not what was published.
        missing: ids of segments whose files are gone.
        dropped: the number of missing segments that were dropped.
        broken: files that were not published, with the reasons.
        dry_run: whether it only compared; no data file was opened then.
        retries: commits that were retried because another came first.
    """

    version: int
    files: int
    published: int = 0
    replaced: int = 0
    unchanged: int = 0
    waiting: int = 0
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    dropped: int = 0
    broken: tuple[FileProblem, ...] = ()
    dry_run: bool = False
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {"version": self.version, **self._counts(), "dry_run": self.dry_run}

    def figures(self) -> dict[str, float]:
        return {**self._counts(), "conflicts_retried": self.retries}

    def _counts(self) -> dict[str, int]:
        return {
            "files": self.files,
            "published": self.published,
            "replaced": self.replaced,
            "unchanged": self.unchanged,
            "waiting": self.waiting,
            "changed": len(self.changed),
            "missing": len(self.missing),
            "dropped": self.dropped,
            "broken": len(self.broken),
        }


@dataclass(frozen=True)
class FilesRequest:
    """The arguments of `Catalog.publish_files`."""

    datasource: str
    pattern: str
    format: str | None = None
    remove_missing: bool = False
    replace_changed: bool = False
    batch: int = DEFAULT_BATCH
    dry_run: bool = False


@dataclass(frozen=True)
class Verbs:
    """The verbs of the catalog that publishing files needs.

    Attributes:
        describe: reads the footers of the data at some places.
        publish: publishes segments; with true it replaces those that are there.
        drop: drops the segments with these ids if they are still of these commits.
    """

    describe: Describe
    publish: Callable[[Sequence[Segment], bool], PublishResult]
    drop: Callable[[Mapping[str, str]], DropResult]


class FilesPublisher:
    """Publishes the files of one datasource, a commit for each batch; may be stopped and run again.

    A broken file is reported, and the others are published.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        buckets: int,
        verbs: Verbs,
        progress: Progress,
        request: FilesRequest,
    ) -> None:
        self._spark = spark
        self._store = store
        self._buckets = buckets
        self._verbs = verbs
        self._progress = progress
        self._request = request
        self._broken: list[FileProblem] = []
        self._version = 0
        self._retries = 0

    def run(self) -> FilesReport:
        """Compares storage and catalog, and publishes, replaces and drops as requested."""
        path = spelled_out(self._store.session, self._request.pattern)
        place = place_of(path, self._request.format)
        # Segments first, files second: a file exists before its segment does, so a segment that was
        # read and whose file is not listed has lost it.
        self._version = self._store.head().version
        known = self._known()
        if place.format == Format.DELTA or is_table(self._spark, path):
            self._progress(Step(f"publish files: read the log of {place.path}", 0, 1))
            table = read_log(self._spark, place.path.rstrip("/"), place.version)
            segments = partitions_of(self._request.datasource, table, place.version)
            return self._act(compare_segments(table.root, segments, known), dict)
        pattern = Pattern.parse(path)
        above = TableLogs(self._spark).table_of(pattern.root)
        if above is not None:
            raise _is_table(above, path, f'give its path alone, "{above}"')
        self._progress(Step(f"publish files: list {pattern.root}", 0, 1))
        files = list_files(self._spark, pattern)
        compared = compare_files(self._request.datasource, pattern, files, known)
        if not compared.found:
            why = f"No file fits {path}. Nothing was published or dropped; check path and pattern."
            raise InvalidInput(why, pattern=path)
        names = [pattern.name_of(file.path) for file in compared.new.values()]
        tables = tables_below(self._spark, pattern.root, names)
        if tables:
            way_out = "publish it by its path alone, and choose a pattern without it"
            raise _is_table(tables[0], path, way_out)
        return self._act(compared, partial(self._described, compared.before))

    def _act(self, compared: Inventory[T], make: Make[T]) -> FilesReport:
        request = self._request
        self._broken += [
            FileProblem(
                each.path if isinstance(each, ListedFile) else name,
                f"its id {name} belongs to a segment at another place",
            )
            for name, each in compared.taken.items()
        ]
        published, replaced, dropped = len(compared.new) if request.dry_run else 0, 0, 0
        same: set[str] = set()
        if not request.dry_run:
            published = self._bring("publish files", compared.new, make)
            touched = self._looked_into(compared, make)
            before = compared.before
            other = {n: each for n, each in touched.items() if each.digest != before[n].digest}
            same = touched.keys() - other.keys()
            if request.replace_changed:
                replaced = self._replace(compared, other, make)
            if request.remove_missing and compared.missing:
                seen = {each.segment_id: each.commit_id for each in compared.missing}
                result = self._verbs.drop(seen)
                dropped = result.dropped
                self._reached(result)
        return FilesReport(
            version=self._version,
            files=compared.found,
            published=published,
            replaced=replaced,
            unchanged=compared.unchanged + len(same),
            waiting=compared.waiting,
            changed=tuple(name for name in compared.changed if name not in same),
            missing=tuple(each.segment_id for each in compared.missing),
            dropped=dropped,
            broken=tuple(self._broken),
            dry_run=request.dry_run,
            retries=self._retries,
        )

    def _looked_into(self, compared: Inventory[T], make: Make[T]) -> dict[str, Segment]:
        """The segments of files that were written again: a copy or a restore may be the same."""
        what, names = "publish files: read those written again", sorted(compared.touched)
        segments: dict[str, Segment] = {}
        for begin, end, _ in slices(len(names), self._request.batch):
            self._progress(Step(what, begin, len(names)))
            some = make({name: compared.changed[name] for name in names[begin:end]})
            segments |= self._kept(some, compared.before)
        return segments

    def _replace(self, compared: Inventory[T], other: Mapping[str, Segment], make: Make[T]) -> int:
        what, before = "publish files again", compared.before
        rest = {n: each for n, each in compared.changed.items() if n not in compared.touched}
        done = self._bring(what, rest, lambda some: self._kept(make(some), before), replace=True)
        return done + self._bring(what, other, dict, replace=True)

    def _bring(
        self, what: str, found: Mapping[str, T], make: Make[T], replace: bool = False
    ) -> int:
        """Describes a slice at a time and publishes a batch at a time; the number of segments."""
        names, done = list(found), 0
        segments: dict[str, Segment] = {}
        for begin, end, last in slices(len(names), self._request.batch):
            if not begin:
                self._progress(Step(what, 0, len(names)))
            segments |= make({name: found[name] for name in names[begin:end]})
            if last:
                done += self._publish(segments, replace)
                segments = {}
            self._progress(Step(what, end, len(names)))
        return done

    def _kept(
        self, segments: Mapping[str, Segment], before: Mapping[str, KnownFile]
    ) -> dict[str, Segment]:
        """The segments with what was published and is not in their data."""
        kept: dict[str, Segment] = {}
        for name, segment in segments.items():
            try:
                kept[name] = as_published(segment, before[name])
            except InvalidSegment as error:
                self._broken.append(FileProblem(before[name].location, error.message))
        return kept

    def _described(
        self, before: Mapping[str, KnownFile], files: Mapping[str, ListedFile]
    ) -> dict[str, Segment]:
        """The segments of files; a file without one is reported."""
        places: dict[str, Place] = {}
        for name, file in files.items():
            # A segment that was published with its format keeps it.
            named = place_of(before[name].location).format if name in before else None
            place = place_of(file.path, self._request.format)
            places[name] = place if named is None else Place(place.path, named)
        segments, problems = segments_of(self._verbs.describe, places)
        self._broken += [FileProblem(files[name].path, why) for name, why in problems.items()]
        return segments

    def _publish(self, segments: dict[str, Segment], replace: bool) -> int:
        """Publishes segments; those that conflict with others or break a contract are reported."""
        if not segments:
            return 0
        try:
            result = self._verbs.publish(list(segments.values()), replace)
        except (SegmentConflict, ContractViolation) as error:
            otherwise = dict.fromkeys(error.values["segment_ids"], "was published otherwise")
            for name, why in sorted((otherwise | reasons_of(error)).items()):
                where = segments.pop(name).location or ""
                self._broken.append(FileProblem(where, f"{name} {why}"))
            return self._publish(segments, replace)
        self._reached(result)
        return result.replaced if replace else result.inserted

    def _reached(self, result: PublishResult | DropResult) -> None:
        self._version = max(self._version, result.version)
        self._retries += result.retries

    def _known(self) -> list[KnownFile]:
        rows = (
            self._store.session.sql(
                "SELECT key, location, size_bytes, unix_micros(changed_at) AS changed, commit_id, "
                "digest, fingerprint IS NOT NULL AS complete, unix_micros(starts_at) AS starts, "
                "unix_micros(ends_at) AS ends "
                f"FROM {self._store.pinned(self._version)} WHERE kind = 'segment' "
                "AND location IS NOT NULL "
                f"AND {of_datasource(self._request.datasource, self._buckets)}"
            )
            .toArrow()
            .to_pylist()
        )
        return [KnownFile(*row.values()) for row in rows]


def _is_table(root: str, path: str, way_out: str) -> InvalidInput:
    return InvalidInput(
        f"{root} is a Delta table, whose files are not to be taken one by one: {way_out}.",
        pattern=path,
    )
