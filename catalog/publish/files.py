"""Publishing files: what the storage lists, with what the files say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from catalog.errors import InvalidInput, InvalidSegment, SegmentConflict
from catalog.files.deltalog import TableLog, is_table, read_log
from catalog.files.footers import Footer
from catalog.files.listing import (
    Comparison,
    Known,
    ListedFile,
    compare_files,
    compare_segments,
    list_files,
)
from catalog.files.patterns import Pattern
from catalog.model import DropResult, PublishResult, Segment
from catalog.progress import Progress, Step
from catalog.read.formats import Place, place_of
from catalog.table.layout import of_datasource
from catalog.table.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

DEFAULT_BATCH = 10_000


@dataclass(frozen=True)
class FileProblem:
    """A file that was not published, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class FilesReport:
    """What publishing files did, or would do.

    Attributes:
        version: the version that it reached.
        files: how many files there are, or partitions of a Delta table.
        published: segments that are new.
        replaced: segments of changed files that were published anew.
        unchanged: files that are as their segments say.
        waiting: files whose segments wait for a backfill.
        changed: ids of segments whose files are not what was published.
        missing: ids of segments whose files are gone.
        dropped: how many of these were dropped.
        broken: files that were not published, with the reasons.
        dry_run: whether it only looked; no data file was opened then.
        retries: commits that were tried again because another came first.
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


@dataclass(frozen=True)
class FilesRequest:
    """What to publish and how; see `Catalog.publish_files`."""

    datasource: str
    pattern: str
    format: str | None = None
    remove_missing: bool = False
    replace_changed: bool = False
    batch: int = DEFAULT_BATCH
    dry_run: bool = False


@dataclass(frozen=True)
class Verbs:
    """What the catalog does for whoever publishes files.

    Attributes:
        describe: asks the data at some places what it is.
        publish: publishes segments, and replaces those that are there if told.
        drop: drops the segments with these ids, if they are still of these commits.
    """

    describe: Callable[[Sequence[Place]], list[Footer | str]]
    publish: Callable[[Sequence[Segment], bool], PublishResult]
    drop: Callable[[Mapping[str, str]], DropResult]


class FilesPublisher:
    """Publishes the files of one datasource, a batch at a time; may be stopped and run again.

    Each batch is a publish of its own: a broken file is reported and the rest goes on.
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
        """Compares storage and catalog, and publishes and drops what is to be."""
        asked = self._request.pattern
        place = place_of(asked, self._request.format)
        # Segments first, files second: a file is there before its segment is, so a segment that
        # was seen and whose file is not listed has lost it.
        self._version = self._store.head().version
        known = self._known()
        if place.format == "delta" or is_table(self._spark, asked):
            self._progress(Step(f"publish files: read the log of {place.path}", 0, 1))
            table = read_log(self._spark, place.path.rstrip("/"), place.version)
            segments = _partitions(self._request.datasource, table, place.version)
            return self._act(compare_segments(table.root, segments, known), dict, len(segments))
        pattern = Pattern.parse(asked)
        if is_table(self._spark, pattern.root):
            raise InvalidInput(
                f"{pattern.root} is a Delta table, whose files are not to be taken one by one: "
                f'give its path alone, "{pattern.root}".',
                pattern=asked,
            )
        self._progress(Step(f"publish files: list {pattern.root}", 0, 1))
        files = list_files(self._spark, pattern)
        if not files:
            raise InvalidInput(
                f"No file fits {asked}. Nothing was published or dropped; check the path and the "
                "pattern.",
                pattern=asked,
            )
        compared = compare_files(self._request.datasource, pattern, files, known)
        return self._act(compared, self._described, len(files))

    def _act(
        self,
        compared: Comparison[T],
        make: Callable[[Mapping[str, T]], dict[str, Segment]],
        found: int,
    ) -> FilesReport:
        request = self._request
        self._broken += [
            FileProblem(
                each.path if isinstance(each, ListedFile) else name,
                f"its id {name} belongs to a segment at another place",
            )
            for name, each in compared.taken.items()
        ]
        published, replaced, dropped = len(compared.new) if request.dry_run else 0, 0, 0
        if not request.dry_run:
            published = self._bring(compared.new, make, replace=False)
            if request.replace_changed:
                replaced = self._bring(compared.changed, make, replace=True)
            if request.remove_missing and compared.missing:
                seen = {each.segment_id: each.commit_id for each in compared.missing}
                result = self._verbs.drop(seen)
                dropped = result.dropped
                self._reached(result)
        return FilesReport(
            version=self._version,
            files=found,
            published=published,
            replaced=replaced,
            unchanged=compared.unchanged,
            waiting=compared.waiting,
            changed=tuple(compared.changed),
            missing=tuple(each.segment_id for each in compared.missing),
            dropped=dropped,
            broken=tuple(self._broken),
            dry_run=request.dry_run,
            retries=self._retries,
        )

    def _bring(
        self,
        found: Mapping[str, T],
        make: Callable[[Mapping[str, T]], dict[str, Segment]],
        replace: bool,
    ) -> int:
        """Describes and publishes, a batch at a time; how many there were."""
        names, done = list(found), 0
        what = "publish files anew" if replace else "publish files"
        for begin in range(0, len(names), self._request.batch):
            self._progress(Step(what, begin, len(names)))
            batch = names[begin : begin + self._request.batch]
            done += self._publish(make({name: found[name] for name in batch}), replace)
        if names:
            self._progress(Step(what, len(names), len(names)))
        return done

    def _described(self, files: Mapping[str, ListedFile]) -> dict[str, Segment]:
        """The segments of files, less those that cannot be: they are reported."""
        form = self._request.format
        places = [place_of(file.path, form) for file in files.values()]
        segments: dict[str, Segment] = {}
        outcomes = self._verbs.describe(places)
        for (name, file), outcome in zip(files.items(), outcomes, strict=True):
            if isinstance(outcome, str):
                self._broken.append(FileProblem(file.path, outcome))
                continue
            try:
                segments[name] = _segment(name, _location(file.path, form), outcome)
            except InvalidSegment as error:  # a path that makes no id
                self._broken.append(FileProblem(file.path, error.message))
        return segments

    def _publish(self, segments: dict[str, Segment], replace: bool) -> int:
        """Publishes segments; those that somebody else published otherwise are reported."""
        if not segments:
            return 0
        try:
            result = self._verbs.publish(list(segments.values()), replace)
        except SegmentConflict as error:
            refused = set(error.values["segment_ids"])
            self._broken += [
                FileProblem(segments[name].location or "", f"{name} was published otherwise")
                for name in sorted(refused)
            ]
            rest = {name: each for name, each in segments.items() if name not in refused}
            return self._publish(rest, replace)
        self._reached(result)
        return result.replaced if replace else result.inserted

    def _reached(self, result: PublishResult | DropResult) -> None:
        self._version = max(self._version, result.version)
        self._retries += result.retries

    def _known(self) -> list[Known]:
        rows = (
            self._store.session.sql(
                "SELECT key, location, size_bytes, unix_micros(changed_at) AS changed, commit_id, "
                "digest, fingerprint IS NOT NULL AS complete "
                f"FROM {self._store.pinned(self._version)} WHERE kind = 'segment' "
                "AND location IS NOT NULL "
                f"AND {of_datasource(self._request.datasource, self._buckets)}"
            )
            .toArrow()
            .to_pylist()
        )
        return [Known(*row.values()) for row in rows]


def _partitions(datasource: str, table: TableLog, pinned: int | None) -> dict[str, Segment]:
    """A segment for each partition of a Delta table, or one for a table that has none.

    Their locations mean the newest version, unless the caller named one: an old version is gone
    when the table's log expires, and a partition that did not change is the same in a newer one.
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


def _segment(segment_id: str, location: str, footer: Footer) -> Segment:
    return Segment(
        segment_id,
        footer.schema,
        footer.num_rows,
        footer.size_bytes,
        location,
        inferred=footer.inferred,
    )


def _location(path: str, format: str | None) -> str:
    """A location that says its format, also where the path does not."""
    if format is None or place_of(path).format is not None:
        return path
    return f"{format}.`{path}`"
