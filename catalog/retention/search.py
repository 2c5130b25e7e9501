"""Which segments go, asked of the table: `plan.py` in SQL, at one version, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.delta.layout import bucket_of, of_datasource
from catalog.delta.store import MOST_NAMED, Store
from catalog.objects.retention_rules import RetentionRule
from catalog.schema.names import literal

# The moment from which age counts, as `Fact.at` has it; a number, as Python has no words for some.
_AT = "unix_micros(coalesce(ends_at, published_at))"


@dataclass(frozen=True)
class Overview:
    """How many segments a datasource has, and the moment of the oldest."""

    count: int
    oldest: int


@dataclass(frozen=True)
class Candidate:
    """A segment that goes, as its row was seen; times are microseconds since 1970."""

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
    """What goes of a datasource: the condition that finds it, and its figures."""

    where: str
    segments: int
    by_age: int
    num_rows: int
    size_bytes: int
    oldest: int
    newest: int


class Search:
    """Looks for segments that go, all at one version."""

    def __init__(self, store: Store, buckets: int, version: int) -> None:
        self._store = store
        self._buckets = buckets
        self._version = version

    def overviews(self, datasources: Iterable[str]) -> dict[str, Overview]:
        """The datasources that have segments, in one query: most have nothing that goes."""
        names = sorted(datasources)
        if not names:
            return {}
        buckets = ", ".join(map(str, sorted({bucket_of(n, self._buckets) for n in names})))
        among = f"datasource IN ({', '.join(map(literal, names))})"
        rows = self._store.session.sql(
            f"SELECT datasource, count(*) AS found, min({_AT}) AS oldest "
            f"FROM {self._store.pinned(self._version)} WHERE kind = 'segment' "
            f"AND bucket IN ({buckets}) AND {among if len(names) <= MOST_NAMED else 'true'} "
            "GROUP BY datasource"
        ).collect()
        wanted = set(names)
        return {
            row["datasource"]: Overview(row["found"], row["oldest"])
            for row in rows
            if row["datasource"] in wanted
        }

    def due(self, datasource: str, rule: RetentionRule, now: int) -> Due | None:
        """What goes of a datasource, or nothing."""
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

    def page(self, due: Due, after: Candidate | None, most: int) -> list[Candidate]:
        """The next ones that go, the oldest first."""
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
        return [Candidate(**row) for row in rows]

    def _condition(self, datasource: str, rule: RetentionRule, now: int) -> str | None:
        """Age and count take from the old end of one order: borders in it say what goes.

        So no row has to be numbered, which a single task would have to do.
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
        """The condition for what is older than the newest so many; none if there are no more."""
        rows = self._store.session.sql(
            f"SELECT {_AT} AS at, key {self._from(mine)} "
            f"ORDER BY at DESC, key DESC LIMIT 1 OFFSET {int(count) - 1}"
        ).collect()
        return _older(rows[0]["at"], rows[0]["key"]) if rows else None

    def _from(self, where: str) -> str:
        return f"FROM {self._store.pinned(self._version)} WHERE kind = 'segment' AND {where}"


def _older(at: int, key: str, or_same: bool = False) -> str:
    """The condition for what comes before a segment in the order of moment and id."""
    sign = "<=" if or_same else "<"
    return f"({_AT} < {int(at)} OR ({_AT} = {int(at)} AND key {sign} {literal(key)}))"


def seen(candidates: Iterable[Candidate]) -> Mapping[str, str]:
    """The commit that changed each of some segments last."""
    return {each.id: each.commit_id for each in candidates}
