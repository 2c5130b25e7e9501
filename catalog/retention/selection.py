"""Which segments of a datasource exceed its retention rule, found in the table page by page.

Segments are ordered by time and id. Age and count both take from the old end of that order, so
every segment that stays is newer than every segment that is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.delta.layout import bucket_of, of_datasource
from catalog.delta.store import MOST_NAMED, Store
from catalog.objects.retention_rules import RetentionRule
from catalog.schema.names import literal

# When the age of a segment begins: at the end of its interval, else at its publication. A number,
# because Python cannot represent every timestamp.
_AT = "unix_micros(coalesce(ends_at, published_at))"


def may_go(rule: RetentionRule, count: int, oldest: int, now: int) -> bool:
    """Whether a rule drops any segment, from their number and the oldest alone."""
    limit = rule.oldest_kept(now)
    too_old = limit is not None and oldest < limit
    too_many = rule.max_segments is not None and count > rule.max_segments
    return count > rule.keep_at_least and (too_old or too_many)


@dataclass(frozen=True)
class Overview:
    """The number of segments of a datasource, and the time of the oldest."""

    count: int
    oldest: int


@dataclass(frozen=True)
class DueSegment:
    """The row of a segment to drop, as it was read; times are microseconds since 1970."""

    id: str
    commit_id: str
    at: int
    fingerprint: str | None
    num_rows: int | None
    size_bytes: int | None
    location: str | None
    starts_at: int | None
    ends_at: int | None


@dataclass(frozen=True)
class Due:
    """All segments of a datasource that go: the condition that selects them, and totals."""

    where: str
    segments: int
    by_age: int
    num_rows: int
    size_bytes: int
    oldest: int
    newest: int


class RetentionSearch:
    """Finds the segments that go, at one version of the table."""

    def __init__(self, store: Store, buckets: int, version: int) -> None:
        self._store = store
        self._buckets = buckets
        self._version = version

    def overviews(self, datasources: Iterable[str]) -> dict[str, Overview]:
        """Overviews of datasources with segments, in one query: most have nothing to drop."""
        names = sorted(datasources)
        if not names:
            return {}
        buckets = ", ".join(map(str, sorted({bucket_of(n, self._buckets) for n in names})))
        among = f"datasource IN ({', '.join(map(literal, names))})"
        rows = self._store.session.sql(
            f"SELECT datasource, count(*) AS found, min({_AT}) AS oldest "
            f"{self._from(f'bucket IN ({buckets})')} "
            f"AND {among if len(names) <= MOST_NAMED else 'true'} GROUP BY datasource"
        ).collect()
        found = {row["datasource"]: Overview(row["found"], row["oldest"]) for row in rows}
        return {name: found[name] for name in names if name in found}

    def due(self, datasource: str, rule: RetentionRule, now: int) -> Due | None:
        """The segments of a datasource that go; None if there are none."""
        where = self._condition(datasource, rule, now)
        if where is None:
            return None
        limit = rule.oldest_kept(now)
        too_old = "false" if limit is None else f"{_AT} < {limit}"
        (row,) = self._store.session.sql(
            f"SELECT count(*) AS found, count_if({too_old}) AS by_age, "
            "coalesce(try_sum(num_rows), 0) AS num_rows, "
            "coalesce(try_sum(size_bytes), 0) AS size_bytes, "
            f"min({_AT}) AS oldest, max({_AT}) AS newest {self._from(where)}"
        ).collect()
        return Due(where, *row) if row["found"] else None

    def page(self, due: Due, after: DueSegment | None, most: int) -> list[DueSegment]:
        """The next segments that go, oldest first."""
        beyond = "true" if after is None else f"NOT ({_older(after.at, after.id, or_same=True)})"
        rows = (
            self._store.session.sql(
                f"SELECT key AS id, commit_id, {_AT} AS at, fingerprint, num_rows, size_bytes, "
                "location, unix_micros(starts_at) AS starts_at, unix_micros(ends_at) AS ends_at "
                f"{self._from(due.where)} AND {beyond} ORDER BY at, id LIMIT {int(most)}"
            )
            .toArrow()
            .to_pylist()
        )
        return [DueSegment(**row) for row in rows]

    def _condition(self, datasource: str, rule: RetentionRule, now: int) -> str | None:
        """The condition for segments that go; None if there are none.

        Age and count take from the old end of one order, so borders in it select what goes. Row
        numbers would need a sort by a single task.
        """
        mine = of_datasource(datasource, self._buckets)
        reasons: list[str] = []
        limit = rule.oldest_kept(now)
        if limit is not None:
            reasons.append(f"{_AT} < {limit}")
        border = self._border(mine, rule.max_segments) if rule.max_segments else None
        if border is not None:
            reasons.append(border)
        if not reasons:
            return None
        goes = f"({mine}) AND ({' OR '.join(reasons)})"
        if rule.keep_at_least:
            guard = self._border(mine, rule.keep_at_least)
            return None if guard is None else f"{goes} AND ({guard})"
        return goes

    def _border(self, mine: str, count: int) -> str | None:
        """The condition for segments older than the newest `count`; None if there are no more."""
        rows = self._store.session.sql(
            f"SELECT {_AT} AS at, key {self._from(mine)} "
            f"ORDER BY at DESC, key DESC LIMIT 1 OFFSET {int(count) - 1}"
        ).collect()
        return _older(rows[0]["at"], rows[0]["key"]) if rows else None

    def _from(self, where: str) -> str:
        return f"FROM {self._store.pinned(self._version)} WHERE kind = 'segment' AND {where}"


def _older(at: int, key: str, or_same: bool = False) -> str:
    """The condition for segments before one in the order of time and id."""
    sign = "<=" if or_same else "<"
    return f"({_AT} < {int(at)} OR ({_AT} = {int(at)} AND key {sign} {literal(key)}))"
