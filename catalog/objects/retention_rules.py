"""Rules of retention as objects hold them, and which datasource each holds for (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

from catalog.errors import InvalidObject
from catalog.objects.model import Node

RETENTION, TABLE = "retention", "table"
# A thousand years: what is to be kept for ever needs no rule.
LONGEST_AGE_DAYS = 365_000
_LARGEST = (1 << 31) - 1
_DAY = 86_400_000_000
_FIELDS = ("max_age_days", "max_segments", "keep_at_least", "action", "enabled")


class Action(StrEnum):
    """What becomes of segments that go."""

    DROP = "drop"
    # Their data is copied first.
    ARCHIVE = "archive"


class Scope(StrEnum):
    """What a rule is given for."""

    DATASOURCE = "datasource"
    DATABASE = "database"


@dataclass(frozen=True)
class Rule:
    """How long segments stay.

    Attributes:
        key: of the object that holds it.
        scope: whether it is of a datasource, or of all datasources of a database's tables.
        name: of the datasource or the database.
        max_age_days: older segments go; none if age does not matter.
        max_segments: so many of the newest stay; none if the count does not matter.
        keep_at_least: so many of the newest stay, however old they are.
        action: what becomes of those that go.
        enabled: a rule that is not does nothing; for a datasource it stands in place of the
            database's all the same.
    """

    key: str
    scope: Scope
    name: str
    max_age_days: float | None = None
    max_segments: int | None = None
    keep_at_least: int = 0
    action: Action = Action.DROP
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
        troubled: datasources for which no rule can be told, with the reason.
        refused: rules that break the rules for rules, by key, with the reason.
        ruled: datasources that have any rule, also one that is refused or not enabled.
    """

    rules: Mapping[str, Rule]
    troubled: Mapping[str, str]
    refused: Mapping[str, str]
    ruled: frozenset[str]


def rule_of(key: str, body: Mapping[str, Any]) -> Rule:
    """The rule in an object's body; raises `InvalidObject` if it is none."""
    scope, name = _scope_of(key)
    unknown = sorted(set(body) - set(_FIELDS))
    if unknown:
        raise _bad(key, f"has {unknown[0]!r:.80}; it may have {', '.join(_FIELDS)}", body)
    rule = Rule(
        key,
        scope,
        name,
        _age(key, body.get("max_age_days")),
        _count(key, "max_segments", body.get("max_segments"), 1),
        _count(key, "keep_at_least", body.get("keep_at_least"), 0) or 0,
        _action(key, body.get("action")),
        _flag(key, body.get("enabled", True)),
    )
    if rule.max_age_days is None and rule.max_segments is None:
        raise _bad(key, "says neither max_age_days nor max_segments; give one of them", body)
    if rule.max_segments is not None and rule.keep_at_least > rule.max_segments:
        raise _bad(
            key,
            f"keeps at least {rule.keep_at_least} segments and at most {rule.max_segments}; "
            "lower keep_at_least or raise max_segments",
            body,
        )
    return rule


def assigned(objects: Iterable[Node], only: Collection[str] | None = None) -> Assignment:
    """Which rule holds for which datasource, given the objects of types retention and table.

    A rule of the datasource itself wins over that of its table's database. So does one that is
    refused: it holds for nothing, and neither does the other in its place.
    """
    everything = list(objects)
    rules: dict[tuple[Scope, str], Rule | None] = {}
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
    chosen: dict[str, Rule] = {}
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
            continue  # it is not known what was wanted, and so nothing goes
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


def databases_of(objects: Iterable[Node]) -> dict[str, set[str]]:
    """The databases of each datasource's tables: `table/<database>/<name>` stands for one."""
    found: dict[str, set[str]] = {}
    for each in objects:
        database, slash, _ = each.path.partition("/")
        if each.type == TABLE and slash and each.datasource is not None:
            found.setdefault(each.datasource, set()).add(database)
    return found


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


def _concerns(key: str, databases: Mapping[str, set[str]], only: Collection[str] | None) -> bool:
    """Whether a rule that cannot be read would have held for one of the datasources."""
    if only is None:
        return True
    _, _, name = key.partition("/")[2].partition("/")
    if key.startswith(f"{RETENTION}/{Scope.DATABASE}/"):
        return any(name in databases.get(datasource, ()) for datasource in only)
    return name in only


def _bad(key: str, what: str, value: Any) -> InvalidObject:
    return InvalidObject(f"The retention rule {key} {what}.", key=key, value=value)


def _age(key: str, days: Any) -> float | None:
    if days is None:
        return None
    number = isinstance(days, int | float) and not isinstance(days, bool)
    if not number or not isfinite(days) or not 0 < days <= LONGEST_AGE_DAYS:
        raise _bad(
            key,
            f"has max_age_days {days!r:.80}; give a number of days above 0 and up to "
            f"{LONGEST_AGE_DAYS}",
            days,
        )
    return float(days)


def _count(key: str, name: str, count: Any, least: int) -> int | None:
    if count is None:
        return None
    whole = isinstance(count, int) and not isinstance(count, bool)
    if not whole or not least <= count <= _LARGEST:
        raise _bad(
            key,
            f"has {name} {count!r:.80}; give a whole number from {least} to {_LARGEST}",
            count,
        )
    return int(count)


def _action(key: str, action: Any) -> Action:
    if not isinstance(action, str) or action not in list(Action):
        raise _bad(key, f"has the action {action!r:.80}; say drop or archive", action)
    return Action(action)


def _flag(key: str, enabled: Any) -> bool:
    if not isinstance(enabled, bool):
        raise _bad(key, f"has enabled {enabled!r:.80}; say true or false", enabled)
    return enabled
