"""Retention rules in the bodies of objects, and which of them holds for which datasource. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

from catalog.errors import InvalidObject
from catalog.objects.model import ObjectNode

RETENTION, TABLE = "retention", "table"
# A thousand years: data that is kept for ever needs no rule.
LONGEST_AGE_DAYS = 365_000
_LARGEST = (1 << 31) - 1
_DAY = 86_400_000_000
_FIELDS = ("max_age_days", "max_segments", "keep_at_least", "action", "enabled")


class RetentionAction(StrEnum):
    """What happens to segments that are no longer kept."""

    DROP = "drop"
    # Their data is copied first.
    ARCHIVE = "archive"


class Scope(StrEnum):
    """What a rule is given for."""

    DATASOURCE = "datasource"
    DATABASE = "database"


@dataclass(frozen=True)
class RetentionRule:
    """How long segments are kept.

    Attributes:
        key: of the object that holds the rule.
        scope: whether it is for a datasource, or for all datasources of a database's tables.
        name: of the datasource or the database.
        max_age_days: older segments go; none if age does not matter.
        max_segments: how many of the newest are kept; none if the count does not matter.
        keep_at_least: how many of the newest are kept whatever their age.
        action: what happens to the others.
        enabled: a rule that is not does nothing; one for a datasource overrides the database's
            all the same.
    """

    key: str
    scope: Scope
    name: str
    max_age_days: float | None = None
    max_segments: int | None = None
    keep_at_least: int = 0
    action: RetentionAction = RetentionAction.DROP
    enabled: bool = True

    def oldest_kept(self, now_micros: int) -> int | None:
        """The moment, in microseconds since 1970, before which a segment is too old."""
        if self.max_age_days is None:
            return None
        return now_micros - round(self.max_age_days * _DAY)


@dataclass(frozen=True)
class Assignment:
    """Which rule holds for which datasource.

    Attributes:
        rules: by datasource.
        troubled: datasources whose rule is ambiguous, with the reason.
        refused: invalid rules by key, with the reason.
        ruled: datasources that have any rule, also one that is invalid or not enabled.
    """

    rules: Mapping[str, RetentionRule]
    troubled: Mapping[str, str]
    refused: Mapping[str, str]
    ruled: frozenset[str]


def assigned(objects: Iterable[ObjectNode], only: Collection[str] | None = None) -> Assignment:
    """Which rule holds for which datasource, given the objects of types retention and table.

    A rule of the datasource itself overrides that of its table's database. So does an invalid one:
    then no rule holds for the datasource.
    """
    everything = list(objects)
    rules: dict[tuple[Scope, str], RetentionRule | None] = {}
    refused: dict[str, str] = {}
    databases = databases_of(everything)
    for each in everything:
        if each.type != RETENTION:
            continue
        try:
            rule = rule_of(each.key, each.body)
            rules[rule.scope, rule.name] = rule
        except InvalidObject as error:
            if _concerns(each.key, databases, only):
                refused[each.key] = error.message
            scope, _, name = each.path.partition("/")
            if scope in list(Scope):
                rules[Scope(scope), name] = None
    own = {name for scope, name in rules if scope is Scope.DATASOURCE}
    chosen: dict[str, RetentionRule] = {}
    troubled: dict[str, str] = {}
    ruled: set[str] = set()
    for datasource in sorted(own | databases.keys()):
        if only is not None and datasource not in only:
            continue
        if datasource in own:
            scopes = [(Scope.DATASOURCE, datasource)]
        else:
            scopes = [(Scope.DATABASE, name) for name in sorted(databases[datasource])]
        found = [rules[scope] for scope in scopes if scope in rules]
        if found:
            ruled.add(datasource)
        if None in found:
            continue  # the intention is not known, so nothing is dropped
        enabled = [rule for rule in found if rule is not None and rule.enabled]
        if len(enabled) > 1:
            troubled[datasource] = (
                f"its tables are in several databases that have rules: "
                f"{', '.join(rule.key for rule in enabled)}; put {RETENTION}/{Scope.DATASOURCE}/"
                f"{datasource} to say which holds"
            )
        elif enabled:
            chosen[datasource] = enabled[0]
    return Assignment(chosen, troubled, refused, frozenset(ruled))


def databases_of(objects: Iterable[ObjectNode]) -> dict[str, set[str]]:
    """The databases of each datasource's tables, by the keys `table/<database>/<name>`."""
    found: dict[str, set[str]] = {}
    for each in objects:
        database, slash, _ = each.path.partition("/")
        if each.type == TABLE and slash and each.datasource is not None:
            found.setdefault(each.datasource, set()).add(database)
    return found


def _concerns(key: str, databases: Mapping[str, set[str]], only: Collection[str] | None) -> bool:
    """Whether an invalid rule is for one of the datasources."""
    if only is None:
        return True
    _, _, name = key.partition("/")[2].partition("/")
    if key.startswith(f"{RETENTION}/{Scope.DATABASE}/"):
        return any(name in databases.get(datasource, ()) for datasource in only)
    return name in only


# --- out of JSON ----------------------------------------------------------------------------------


def rule_of(key: str, body: Mapping[str, Any]) -> RetentionRule:
    """The rule in an object's body; raises `InvalidObject` if it is invalid."""
    scope, name = _scope_of(key)
    unknown = sorted(set(body) - set(_FIELDS))
    if unknown:
        raise _bad(key, f"has {unknown[0]!r:.80}; it may have {', '.join(_FIELDS)}", body)
    action, enabled = body.get("action"), body.get("enabled", True)
    age = _age(key, body.get("max_age_days"))
    most = _count(key, "max_segments", body.get("max_segments"), 1)
    least = _count(key, "keep_at_least", body.get("keep_at_least"), 0) or 0
    if not isinstance(action, str) or action not in list(RetentionAction):
        raise _bad(key, f"has the action {action!r:.80}; say drop or archive", action)
    if not isinstance(enabled, bool):
        raise _bad(key, f"has enabled {enabled!r:.80}; say true or false", enabled)
    if age is None and most is None:
        raise _bad(key, "says neither max_age_days nor max_segments; give one of them", body)
    if most is not None and least > most:
        how = f"keeps at least {least} segments and at most {most}; "
        raise _bad(key, f"{how}lower keep_at_least or raise max_segments", body)
    return RetentionRule(key, scope, name, age, most, least, RetentionAction(action), enabled)


def _scope_of(key: str) -> tuple[Scope, str]:
    _, scope, *rest = (*key.split("/"), "")
    names = [part for part in rest if part]
    if scope not in list(Scope) or len(names) != 1:
        raise InvalidObject(
            f"The key of a retention rule is {RETENTION}/datasource/<name> or "
            f"{RETENTION}/database/<name>, not {key!r:.80}; put it under such a key.",
            key=key,
        )
    return Scope(scope), names[0]


def _age(key: str, days: Any) -> float | None:
    if days is None:
        return None
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not isfinite(days) or not 0 < days <= LONGEST_AGE_DAYS:
        how = f"give a number of days above 0 and up to {LONGEST_AGE_DAYS}"
        raise _bad(key, f"has max_age_days {days!r:.80}; {how}", days)
    return float(days)


def _count(key: str, name: str, count: Any, least: int) -> int | None:
    if count is None:
        return None
    whole = isinstance(count, int) and not isinstance(count, bool)
    if not whole or not least <= count <= _LARGEST:
        how = f"give a whole number from {least} to {_LARGEST}"
        raise _bad(key, f"has {name} {count!r:.80}; {how}", count)
    return int(count)


def _bad(key: str, what: str, value: Any) -> InvalidObject:
    return InvalidObject(f"The retention rule {key} {what}.", key=key, value=value)
