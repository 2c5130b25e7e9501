"""Types of objects: the form of their keys, the fields of their bodies, and their rules.

A declaration is the body of an object `type/<name>`, so all writers see the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from catalog.errors import InvalidInput, InvalidType
from catalog.objects.fields import BodyField, FieldType, documents, fields_from, one_of
from catalog.objects.model import Object, check_type

# The type of the objects that hold declarations.
TYPE = "type"
STATE = "state"


@dataclass(frozen=True)
class States:
    """The states of an object, kept in its field `state`: initial ones, and which may follow."""

    initial: tuple[str, ...]
    next: Mapping[str, tuple[str, ...]]

    @property
    def words(self) -> tuple[str, ...]:
        """All states, in the order of their declaration."""
        following = (each for after in self.next.values() for each in after)
        return tuple(dict.fromkeys([*self.initial, *self.next, *following]))


@dataclass(frozen=True)
class Rule:
    """A rule of a type: its kind, see `unique` and the like, and its parameters."""

    kind: str
    parameters: tuple[Any, ...]


def unique(*fields: str) -> Rule:
    """No two objects of the type have the same values in these fields."""
    return Rule("unique", fields)


def one_of_siblings(field: str, value: Any) -> Rule:
    """Of the objects below one parent exactly one has this value in the field."""
    return Rule("one_of_siblings", (field, value))


def distinct_siblings(field: str) -> Rule:
    """No two objects below one parent have the same value in the field."""
    return Rule("distinct_siblings", (field,))


def ranges(low: str, high: str) -> Rule:
    """The ranges [low, high) of objects below one parent have no gaps and no overlaps; null is an
    open end."""
    return Rule("ranges", (low, high))


def at_most(parent_field: str) -> Rule:
    """There are at most as many objects below one parent as its field says."""
    return Rule("at_most", (parent_field,))


def meets(parent_field: str, reference: str, target_field: str) -> Rule:
    """The referenced object's list contains everything that the parent's list requires."""
    return Rule("meets", (parent_field, reference, target_field))


def conforms(field: str, reference: str, target_field: str) -> Rule:
    """The field's value matches the fields that the referenced object declares."""
    return Rule("conforms", (field, reference, target_field))


def requires(field: str, other: str) -> Rule:
    """The field is given only together with another."""
    return Rule("requires", (field, other))


def retention() -> Rule:
    """The body is a valid retention rule, see `retention_rules`."""
    return Rule("retention", ())


# For each kind: how many of its parameters name fields of the type itself, and how many it has.
_OWN_FIELDS = {
    "unique": None,
    "one_of_siblings": (1, 2),
    "distinct_siblings": (1, 1),
    "ranges": (2, 2),
    "at_most": (0, 1),
    "meets": (0, 3),
    "conforms": (2, 3),
    "requires": (2, 2),
    "retention": (0, 0),
}


@dataclass(frozen=True)
class ObjectType:
    """The declaration of a type of objects; objects of undeclared types may have any form.

    Args:
        name: the part of the keys before the first slash.
        parent: the type of their parents; the path of a parent is the object's path without its
            last part. Objects link to their parents.
        owners: instead of a parent, several types of which an owner can be: the path is the key of
            the owner. If the type of an owner is not declared, the owner need not exist.
        named_by: the last part of the path is the name of an object of this type.
        fields: the fields of the bodies, see `text`, `whole` and the like.
        references: fields that hold the path of an object, or a list of paths, with its type.
            Objects link to what they refer to.
        states: the states of objects, in the field `state`, if they have states.
        rules: see `unique`, `one_of_siblings` and the like.
        open: bodies may have other fields too.
        comment: a description.
    """

    name: str
    parent: str | None = None
    owners: tuple[str, ...] = ()
    named_by: str | None = None
    fields: Mapping[str, BodyField] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    states: States | None = None
    rules: tuple[Rule, ...] = ()
    open: bool = False
    comment: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "owners", tuple(self.owners))
        check_type(self.name)
        for other in (self.parent, self.named_by, *self.owners, *self.references.values()):
            if other is not None:
                check_type(other)
        for wrong in self._problems():
            raise _invalid(self.name, wrong)
        # By way of JSON, so that declarations in Python and in files are checked alike.
        object.__setattr__(self, "fields", fields_from(documents(self.fields)))
        for wrong in chain(self._reference_problems(), *map(self._rule_problems, self.rules)):
            raise _invalid(self.name, wrong)

    @property
    def key(self) -> str:
        """The key of the object that holds the declaration."""
        return f"{TYPE}/{self.name}"

    @cached_property
    def all_fields(self) -> Mapping[str, BodyField]:
        """The fields of its bodies, including `state` if there are states."""
        if self.states is None:
            return self.fields
        comment = "Its state in the life cycle"
        return {**self.fields, STATE: one_of(*self.states.words, required=True, comment=comment)}

    @property
    def needs(self) -> frozenset[str]:
        """The other types that it needs to be declared."""
        named = (self.parent, self.named_by, *self.references.values())
        return frozenset(each for each in named if each is not None and each != self.name)

    def body(self) -> dict[str, Any]:
        """The declaration as JSON, without defaults."""
        states = self.states and {
            "initial": list(self.states.initial),
            "next": {state: list(after) for state, after in self.states.next.items()},
        }
        given = {
            "parent": self.parent,
            "owners": list(self.owners),
            "named_by": self.named_by,
            "fields": documents(self.fields),
            "references": dict(self.references),
            "states": states,
            "rules": [[rule.kind, *rule.parameters] for rule in self.rules],
            "open": self.open,
            "comment": self.comment,
        }
        return {name: value for name, value in given.items() if value}

    def object(self) -> Object:
        """The object that holds the declaration."""
        return Object(self.key, self.body())

    # --- checks -----------------------------------------------------------------------------------

    def _problems(self) -> Iterator[str]:
        if self.name == TYPE:
            yield "is the type of declarations itself; choose another name"
        if self.parent is not None and self.owners:
            yield "has a parent and owners; give one of the two"
        if self.name in (self.parent, self.named_by, *self.owners):
            yield "is its own parent; name another type"
        for name, value in self.fields.items():
            if not isinstance(value, BodyField):
                yield f"has {value!r:.80} as {name!r:.80}, which is no BodyField"
        if self.states is not None and STATE in self.fields:
            yield "has states and a field state; leave the field out"
        if self.states is not None and not self.states.initial:
            yield "has states and none to begin with; name one as initial"

    def _reference_problems(self) -> Iterator[str]:
        for name in self.references:
            found = self.fields.get(name)
            of = found.of if found is not None and found.of is not None else found
            if of is None or of.type is not FieldType.TEXT:
                yield f"refers by {name!r:.80}, which is no field of text or list of text"

    def _rule_problems(self, rule: Rule) -> Iterator[str]:
        kind, parameters = rule.kind, rule.parameters
        if kind not in _OWN_FIELDS:
            yield f"has a rule {kind!r:.80}; there are {', '.join(_OWN_FIELDS)}"
            return
        own, count = _OWN_FIELDS[kind] or (len(parameters), max(1, len(parameters)))
        if len(parameters) != count:
            yield f"has the rule {kind} with not {count} parameters"
            return
        for index, name in enumerate(parameters):
            if kind == "one_of_siblings" and index == 1:
                continue  # a value, the only parameter that is no name of a field
            if not isinstance(name, str) or (index < own and name not in self.fields):
                yield f"has the rule {kind} on {name!r:.80}, not a field"
        if kind in ("meets", "conforms") and parameters[1] not in self.references:
            yield f"has the rule {kind} over {parameters[1]!r:.80}, not a reference"
        if kind in ("at_most", "meets") and self.parent is None:
            yield f"has the rule {kind} and no parent; name one"


def types_of(given: ObjectType | Iterable[ObjectType]) -> tuple[ObjectType, ...]:
    """The types that a caller declares, as a list or as a single one."""
    types = (given,) if isinstance(given, ObjectType) else tuple(given)
    for each in types:
        if not isinstance(each, ObjectType):
            raise InvalidType(f"declare takes ObjectType values, not {each!r:.80}.", value=each)
    return types


def _invalid(name: str, text: str) -> InvalidType:
    return InvalidType(f"Type {name} {text}.", type=name)


# --- in JSON --------------------------------------------------------------------------------------


def type_from(name: str, body: Any) -> ObjectType:
    """The type that the body of an object `type/<name>` declares, or `InvalidType`."""
    if not isinstance(body, dict):
        raise _invalid(name, "must be declared by a JSON object")
    known = ObjectType.__dataclass_fields__.keys() - {"name"}
    for other in sorted(body.keys() - known):
        raise _invalid(name, f"has no {other!r:.80}; there are {', '.join(sorted(known))}")
    references = body.get("references", {})
    for each in ("parent", "named_by", "comment"):
        if not isinstance(body.get(each), str | None):
            raise _invalid(name, f"must have a text as {each}")
    if not isinstance(body.get("open", False), bool):
        raise _invalid(name, "must have true or false as open")
    if not isinstance(body.get("rules", []), list):
        raise _invalid(name, "must have a list as rules")
    if not isinstance(references, dict) or not _all_text(references.values()):
        raise _invalid(name, "must have a JSON object of texts as references")
    try:
        return ObjectType(
            name,
            body.get("parent"),
            _texts(name, body.get("owners", []), "owners"),
            body.get("named_by"),
            fields_from(body.get("fields", {})),
            references,
            _states(name, body.get("states")),
            tuple(_rule(name, given) for given in body.get("rules", [])),
            body.get("open", False),
            body.get("comment") or "",
        )
    except InvalidType:
        raise
    except InvalidInput as error:
        raise _invalid(name, f"cannot be declared so: {error.message.rstrip('.')}") from error


def _states(name: str, given: Any) -> States | None:
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("next"), dict):
        raise _invalid(name, "must have states as a JSON object with initial and next")
    following = {state: _texts(name, after, "next") for state, after in given["next"].items()}
    return States(_texts(name, given.get("initial"), "initial"), following)


def _rule(name: str, given: Any) -> Rule:
    if not isinstance(given, list) or not given or not isinstance(given[0], str):
        raise _invalid(name, 'must have each rule as a list such as ["unique", "host"]')
    return Rule(given[0], tuple(given[1:]))


def _texts(name: str, value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _invalid(name, f"must have a list as {what}")
    if not _all_text(value):
        raise _invalid(name, f"must have a list of texts as {what}")
    return tuple(value)


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(each, str) for each in values)
