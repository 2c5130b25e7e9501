"""The rules of declared types: checked over all objects, and enforced on every change of them.

Each has a stable name: `fields`, `secret`, `names`, `parent`, `reference`, `declaration`, `states`,
or the kind of a rule that a type declares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from catalog.errors import InvalidObject, InvalidType, RuleViolation
from catalog.objects.declarations import DECLARATION, PARENT, Types
from catalog.objects.fields import BodyField, fields_from, problems
from catalog.objects.model import ObjectNode, canonical
from catalog.objects.retention_rules import rule_of
from catalog.objects.types import STATE, ObjectType, Rule

NAMES = "names"
STATES = "states"
# An invalid range hides gaps and overlaps, and so outweighs all of them.
_HIDES_OTHERS = 1 << 32
_SHOWN = 5


@dataclass(frozen=True)
class BrokenRule:
    """A rule that does not hold: its name, an object that breaks it, and what is wrong.

    Where several objects break it together, `among` identifies the group and `excess` says by how
    much: a change that removes one of them leaves another one broken, which is no new violation.
    """

    rule: str
    key: str
    text: str
    among: str = ""
    excess: int = 1

    def __str__(self) -> str:
        return f"{self.key} {self.text} (rule {self.rule})"


BrokenRules = Iterator[BrokenRule]


def newly_broken(before: Iterable[BrokenRule], after: Iterable[BrokenRule]) -> list[BrokenRule]:
    """The violations after that were not there before, or that have a larger excess."""
    found = list(after)
    if not found:
        return []
    known: dict[tuple[str, str], int] = {}
    for each in before:
        known[_place(each)] = max(each.excess, known.get(_place(each), 0))
    return [each for each in found if each.excess > known.get(_place(each), 0)]


def _place(broken: BrokenRule) -> tuple[str, str]:
    return broken.rule, broken.among or str(broken)


def check_rules(before: Mapping[str, ObjectNode], after: Mapping[str, ObjectNode]) -> None:
    """Raises `RuleViolation` if a rule holds before and not after, or is broken by more then.

    A rule that is broken already, by another release or by hand, does not block its repair.
    """
    types = Types.among(after)
    if not types:
        return
    found = list(broken_rules(types, after))
    if found:
        found = newly_broken(broken_rules(Types.among(before), before), found)
    refuse([*found, *broken_steps(types, before, after)])


def refuse(found: list[BrokenRule]) -> None:
    """Raises `RuleViolation`, which names the broken rules, if there are any."""
    if not found:
        return
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise RuleViolation(
        f"This change is refused: {'; '.join(map(str, found[:_SHOWN]))}{more}.",
        rule=found[0].rule,
        key=found[0].key,
        violations=tuple((each.rule, each.key) for each in found),
    )


class ObjectIndex:
    """All objects, with the bodies of those of declared types, grouped by type and parent."""

    def __init__(self, types: Types, nodes: Mapping[str, ObjectNode]) -> None:
        self.types = types
        self.nodes = nodes
        self.bodies = {
            key: node.body for key, node in nodes.items() if types.get(node.type) is not None
        }
        self._families: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for key in sorted(self.bodies):
            self._families[key.partition("/")[0]][key.rpartition("/")[0]].append(key)

    def families(self, type: str) -> list[list[str]]:
        """The keys of the objects of a type, those below one parent together."""
        return list(self._families[type].values()) if type in self._families else []

    def of_type(self, type: str) -> list[str]:
        """The keys of the objects of a type."""
        return [key for family in self.families(type) for key in family]

    def referred(self, declared: ObjectType, key: str, reference: str) -> dict[str, Any]:
        """The body of the object that a field refers to; empty if there is none."""
        path = self.bodies[key].get(reference)
        return self.bodies.get(f"{declared.references[reference]}/{path}", {})

    def above(self, key: str) -> dict[str, Any]:
        """The body of an object's parent; empty if there is none."""
        return self.bodies.get(self.types.parent_of(key) or "", {})


def broken_rules(types: Types, nodes: Mapping[str, ObjectNode]) -> BrokenRules:
    """Every rule that does not hold among all objects."""
    objects = ObjectIndex(types, nodes)
    for key, reason in sorted(types.broken.items()):
        yield BrokenRule(DECLARATION, key, f"cannot be read: {reason.rstrip('.')}")
    for key, wrong in types.inconsistencies():
        yield BrokenRule(DECLARATION, key, wrong)
    for declared in types:
        keys = objects.of_type(declared.name)
        for key in keys:
            for problem in types.problems(nodes[key]):
                yield BrokenRule(problem.rule, key, f"has {problem.path}, which {problem.text}")
            yield from _targets(objects, key)
        yield from _names(keys)
        for rule in declared.rules:
            yield from _KINDS[rule.kind](objects, declared, rule)


def broken_steps(
    types: Types, before: Mapping[str, ObjectNode], after: Mapping[str, ObjectNode]
) -> BrokenRules:
    """Objects with a forbidden transition of state, or created in a state that is not initial.

    Objects are matched by id: a key that was removed and created again is a new object.
    """
    old = {node.id: node for node in before.values()}
    for key, node in after.items():
        declared = types.get(node.type)
        if declared is None or declared.states is None or before.get(key) is node:
            continue
        now = node.body.get(STATE)
        known = old.get(node.id)
        was = None if known is None else known.body.get(STATE)
        if known is None and now not in declared.states.initial:
            first = ", ".join(declared.states.initial)
            yield BrokenRule(STATES, key, f"begins in state {now}; it must begin in {first}")
        # One without a state was put before its type was declared.
        elif isinstance(was, str) and now != was and now not in declared.states.next.get(was, ()):
            following = ", ".join(declared.states.next.get(was, ())) or "nothing"
            yield BrokenRule(
                STATES, key, f"goes from state {was} to {now}; {was} leads to {following}"
            )


# --- rules of all declared types -----------------------------------------------------------------


def _targets(objects: ObjectIndex, key: str) -> BrokenRules:
    for target, rule in objects.types.targets(key, objects.bodies[key]).items():
        if target not in objects.nodes:
            yield BrokenRule(rule, key, missing(rule, target))
        elif target not in objects.nodes[key].links:
            yield BrokenRule(rule, key, f"has no link to {target}, which its type demands")


def missing(rule: str, target: str) -> str:
    """What is wrong if the target of a link that a type requires does not exist."""
    how = "is below" if rule == PARENT else "refers to"
    return f"{how} {target}, which is not there; put it together with it or before"


def _names(keys: list[str]) -> BrokenRules:
    for folded, first, others in _alike({key: key.casefold() for key in keys}):
        for key in others:
            text = f"has a name that differs from {first} in case only"
            yield BrokenRule(NAMES, key, text, folded, len(others))


def _alike(values: Mapping[str, str]) -> Iterator[tuple[str, str, list[str]]]:
    """Values that several keys share, each with the first key and the others."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for key, value in values.items():
        keys[value].append(key)
    return ((value, first, others) for value, (first, *others) in keys.items() if others)


# --- kinds of rules ------------------------------------------------------------------------------


def _family(key: str) -> str:
    """The common prefix of the keys of objects below one parent."""
    return f"{key.rpartition('/')[0]}/"


def _unique(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    yield from _repeated(objects, objects.of_type(declared.name), rule, declared.name)


def _distinct_siblings(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    for family in objects.families(declared.name):
        for each in _repeated(objects, family, rule, _family(family[0])):
            yield replace(each, text=f"{each.text} below the same parent")


def _repeated(objects: ObjectIndex, keys: list[str], rule: Rule, within: str) -> BrokenRules:
    given = {key: [objects.bodies[key].get(name) for name in rule.parameters] for key in keys}
    texts = {key: canonical(values) for key, values in given.items() if None not in values}
    names = " and ".join(rule.parameters)
    for value, first, others in _alike(texts):
        among = f"{within} {names} {value}"
        for key in others:
            yield BrokenRule(rule.kind, key, f"has the same {names} as {first}", among, len(others))


def _one_of_siblings(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    name, value = rule.parameters
    # As texts: in Python 1 equals true.
    wanted = canonical(value)
    for family in objects.families(declared.name):
        having = [key for key in family if canonical(objects.bodies[key].get(name)) == wanted]
        if len(having) != 1:
            # None and too many are different violations.
            among = f"{_family(family[0])} {name} {wanted} {'many' if having else 'none'}"
            yield BrokenRule(
                rule.kind,
                having[1] if having else family[0],
                f"is one of {len(family)} below one parent, of which {len(having)} have {name} "
                f"{wanted}; exactly one must",
                among,
                max(len(having) - 1, 1),
            )


def _ranges(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    for family in objects.families(declared.name):
        bounds = {
            key: [objects.bodies[key].get(name) for name in rule.parameters] for key in family
        }
        among = f"{_family(family[0])} {' '.join(rule.parameters)}"
        wrong = [*_no_ranges(family, bounds)]
        excess = _HIDES_OTHERS + len(wrong)
        if not wrong:
            wrong = [*_steps(family, bounds)]
            excess = len(wrong)
        for key, text in wrong:
            yield BrokenRule(rule.kind, key, text, among, excess)


def _no_ranges(keys: list[str], bounds: Mapping[str, list[Any]]) -> Iterator[tuple[str, str]]:
    given = [bound for both in bounds.values() for bound in both if bound is not None]
    texts = all(isinstance(bound, str) for bound in given)
    if not texts and not all(type(bound) in (int, float) for bound in given):
        yield keys[0], "has siblings whose ranges are not all texts or all numbers"
        return
    for key, (low, high) in bounds.items():
        if low is not None and high is not None and not low < high:
            yield key, f"has the range from {low!r:.80} to {high!r:.80}: empty"


def _steps(keys: list[str], bounds: Mapping[str, list[Any]]) -> Iterator[tuple[str, str]]:
    # A range without a lower bound comes first.
    lows: dict[str, Any] = {key: low for key, (low, _) in bounds.items() if low is not None}
    ordered = [key for key in keys if key not in lows]
    ordered += sorted(lows, key=lows.__getitem__)
    for key, after in pairwise(ordered):
        end, begin = bounds[key][1], bounds[after][0]
        if end is None or begin is None or end > begin:
            yield after, f"has a range that overlaps with that of {key}"
        elif end < begin:
            how = f"from {begin!r:.80} and that of {key} ends before, at {end!r:.80}"
            yield after, f"has a range that leaves a gap: it goes {how}"


def _at_most(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    for family in objects.families(declared.name):
        most = objects.above(family[0]).get(rule.parameters[0])
        if isinstance(most, int) and len(family) > most:
            parent = objects.types.parent_of(family[0])
            text = f"is one of {len(family)}, and {rule.parameters[0]} of {parent} is {most}"
            among = f"{_family(family[0])} {rule.parameters[0]}"
            yield BrokenRule(rule.kind, family[-1], text, among, len(family) - most)


def _meets(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    required, reference, offered = rule.parameters
    for key in objects.of_type(declared.name):
        has = _listed(objects.referred(declared, key, reference).get(offered))
        for each in _listed(objects.above(key).get(required)):
            if each not in has:
                parent = objects.types.parent_of(key)
                text = f"refers by {reference} to what has no {each!r:.80} in {offered}, which "
                yield BrokenRule(rule.kind, key, f"{text}{required} of {parent} demands")


def _listed(value: Any) -> list[Any]:
    """The value, or an empty list for what is no list: that breaks another rule."""
    return value if isinstance(value, list) else []


def _conforms(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    name, reference, schema = rule.parameters
    known: dict[str, Mapping[str, BodyField] | None] = {}
    for key in objects.of_type(declared.name):
        target = canonical(objects.bodies[key].get(reference))
        if target not in known:
            known[target] = _declared(objects.referred(declared, key, reference).get(schema))
        fields = known[target]
        if fields is None:
            continue  # a violation of the object that declares them
        value = objects.bodies[key].get(name)
        path = f"body.{name}"
        if value is not None and not isinstance(value, dict):
            yield BrokenRule(rule.kind, key, f"has {path}, which must be a JSON object")
            continue
        for problem in problems(fields, value or {}, path):
            kind = problem.rule if problem.rule == "secret" else rule.kind
            yield BrokenRule(kind, key, f"has {problem.path}, which {problem.text}")


def _declared(document: Any) -> Mapping[str, BodyField] | None:
    try:
        return fields_from(document or {})
    except InvalidType:
        return None


def _requires(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    name, other = rule.parameters
    for key in objects.of_type(declared.name):
        body = objects.bodies[key]
        if body.get(name) is not None and body.get(other) is None:
            yield BrokenRule(rule.kind, key, f"has {name} and no {other}; give {other} too")


def _retention(objects: ObjectIndex, declared: ObjectType, rule: Rule) -> BrokenRules:
    for key in objects.of_type(declared.name):
        try:
            rule_of(key, objects.bodies[key])
        except InvalidObject as error:
            text = error.message.removeprefix(f"The retention rule {key} ").removesuffix(".")
            yield BrokenRule(rule.kind, key, text)


_KINDS: dict[str, Callable[[ObjectIndex, ObjectType, Rule], BrokenRules]] = {
    "unique": _unique,
    "one_of_siblings": _one_of_siblings,
    "distinct_siblings": _distinct_siblings,
    "ranges": _ranges,
    "at_most": _at_most,
    "meets": _meets,
    "conforms": _conforms,
    "requires": _requires,
    "retention": _retention,
}
