"""Declared types of objects: where their keys stand, what their bodies hold, which rules they keep.

A declaration is the body of an object `type/<name>`, so every writer goes by the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import InvalidInput, InvalidType
from catalog.objects.contents import fields_from
from catalog.objects.fields import Field, FieldType, documents, one_of
from catalog.objects.keys import check_type
from catalog.objects.model import Object

# The type whose objects are declarations.
TYPE = "type"
STATE = "state"


@dataclass(frozen=True)
class States:
    """The states of an object, in its field `state`: those it begins in, and which follow which."""

    initial: tuple[str, ...]
    next: Mapping[str, tuple[str, ...]]

    @property
    def words(self) -> tuple[str, ...]:
        """All states, in the order in which they are declared."""
        following = (each for after in self.next.values() for each in after)
        return tuple(dict.fromkeys([*self.initial, *self.next, *following]))


@dataclass(frozen=True)
class Rule:
    """A rule of one of the kinds that there are, with its parameters."""

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
    """The ranges [low, high) of objects below one parent follow each other without gap or overlap;
    null is an open end."""
    return Rule("ranges", (low, high))


def at_most(parent_field: str) -> Rule:
    """No more objects below one parent than its field says."""
    return Rule("at_most", (parent_field,))


def meets(parent_field: str, reference: str, target_field: str) -> Rule:
    """What the parent's list requires is in the list of the object that the field refers to."""
    return Rule("meets", (parent_field, reference, target_field))


def conforms(field: str, reference: str, target_field: str) -> Rule:
    """The field holds what the object that another field refers to declares."""
    return Rule("conforms", (field, reference, target_field))


# The parameters of each kind that name fields of the type itself, and how many there are.
_OWN_FIELDS = {
    "unique": None,
    "one_of_siblings": (1, 2),
    "distinct_siblings": (1, 1),
    "ranges": (2, 2),
    "at_most": (0, 1),
    "meets": (0, 3),
    "conforms": (2, 3),
}


@dataclass(frozen=True)
class ObjectType:
    """The declaration of a type of objects; objects of other types are free in form.

    Args:
        name: the part of the keys before the first slash.
        parent: the type of the objects that these are below: the key of the parent has the same
            path without its last part. Parents are linked to.
        owners: instead of a parent, types of which any can be it: the path is the key of the owner.
            An owner of a type that is not declared is only a word.
        named_by: the last part of the path is the name of an object of this type.
        fields: what the bodies hold, see `text`, `whole` and their like.
        references: fields that hold the path of an object, or a list of such, with its type.
            References are linked to.
        states: if objects have states, which there are; they are in the field `state`.
        rules: see `unique`, `one_of_siblings` and their like.
        open: bodies may have other fields too.
        comment: what it is, for people.
    """

    name: str
    parent: str | None = None
    owners: tuple[str, ...] = ()
    named_by: str | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    states: States | None = None
    rules: tuple[Rule, ...] = ()
    open: bool = False
    comment: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "owners", tuple(self.owners))
        if check_type(self.name) == TYPE:
            raise _invalid(self.name, "is the type of declarations itself; choose another name")
        for other in (self.parent, self.named_by, *self.owners, *self.references.values()):
            if other is not None:
                check_type(other)
        if self.parent is not None and self.owners:
            raise _invalid(self.name, "has a parent and owners; give one of the two")
        if self.name in (self.parent, self.named_by, *self.owners):
            raise _invalid(self.name, "is its own parent; name another type")
        for name, value in self.fields.items():
            if not isinstance(value, Field):
                raise _invalid(self.name, f"has {value!r:.80} as {name!r:.80}, which is no Field")
        # Through its JSON, so that what Python declares is checked as what a file declares.
        object.__setattr__(self, "fields", fields_from(documents(self.fields)))
        self._check_states()
        self._check_references()
        for rule in self.rules:
            self._check_rule(rule)

    @property
    def key(self) -> str:
        """The key of the object that holds the declaration."""
        return f"{TYPE}/{self.name}"

    @property
    def all_fields(self) -> Mapping[str, Field]:
        """The fields of its bodies, with the state if there are states."""
        if self.states is None:
            return self.fields
        comment = "Where it is in its life"
        return {**self.fields, STATE: one_of(*self.states.words, required=True, comment=comment)}

    @property
    def needs(self) -> frozenset[str]:
        """The types that must be declared beside it."""
        named = (self.parent, self.named_by, *self.references.values())
        return frozenset(each for each in named if each is not None and each != self.name)

    def body(self) -> dict[str, Any]:
        """The declaration as JSON has it, without what says nothing."""
        states = self.states and {
            "initial": list(self.states.initial),
            "next": {state: list(after) for state, after in self.states.next.items()},
        }
        said = {
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
        return {name: value for name, value in said.items() if value}

    def object(self) -> Object:
        """The object that holds the declaration."""
        return Object(self.key, self.body())

    # --- checks -----------------------------------------------------------------------------------

    def _check_states(self) -> None:
        if self.states is None:
            return
        if STATE in self.fields:
            raise _invalid(self.name, "has states and a field state; leave the field out")
        if not self.states.initial:
            raise _invalid(self.name, "has states and none to begin with; name one as initial")

    def _check_references(self) -> None:
        for name in self.references:
            found = self.fields.get(name)
            of = found.of if found is not None and found.of is not None else found
            if of is None or of.type is not FieldType.TEXT:
                raise _invalid(
                    self.name, f"refers by {name!r:.80}, which is no field of text or list of text"
                )

    def _check_rule(self, rule: Rule) -> None:
        if rule.kind not in _OWN_FIELDS:
            known = ", ".join(_OWN_FIELDS)
            raise _invalid(self.name, f"has a rule {rule.kind!r:.80}; there are {known}")
        own, count = _OWN_FIELDS[rule.kind] or (len(rule.parameters), max(1, len(rule.parameters)))
        if len(rule.parameters) != count:
            raise _invalid(self.name, f"has the rule {rule.kind} with not {count} parameters")
        # The only parameter that is not the name of a field.
        value = 1 if rule.kind == "one_of_siblings" else None
        for index, name in enumerate(rule.parameters):
            if index != value and (
                not isinstance(name, str) or (index < own and name not in self.fields)
            ):
                raise _invalid(self.name, f"has the rule {rule.kind} on {name!r:.80}, not a field")
        if rule.kind in ("meets", "conforms") and rule.parameters[1] not in self.references:
            named = f"{rule.parameters[1]!r:.80}"
            raise _invalid(self.name, f"has the rule {rule.kind} over {named}, not a reference")
        if rule.kind in ("at_most", "meets") and self.parent is None:
            raise _invalid(self.name, f"has the rule {rule.kind} and no parent; name one")


def type_from(name: str, body: Any) -> ObjectType:
    """The type that the body of an object `type/<name>` declares, or `InvalidType`."""
    if not isinstance(body, dict):
        raise _invalid(name, "must be declared by a JSON object")
    known = ObjectType.__dataclass_fields__.keys() - {"name"}
    for other in sorted(body.keys() - known):
        raise _invalid(name, f"has no {other!r:.80}; there are {', '.join(sorted(known))}")
    try:
        return ObjectType(
            name,
            _text(name, body, "parent"),
            _texts(name, body.get("owners", []), "owners"),
            _text(name, body, "named_by"),
            fields_from(body.get("fields", {})),
            _mapping(name, body.get("references", {}), "references"),
            _states(name, body.get("states")),
            tuple(_rule(name, said) for said in _list(name, body.get("rules", []), "rules")),
            _flag(name, body, "open"),
            _text(name, body, "comment") or "",
        )
    except InvalidType:
        raise
    except InvalidInput as error:
        raise _invalid(name, f"cannot be declared so: {error.message.rstrip('.')}") from error


def types_of(given: ObjectType | Iterable[ObjectType]) -> tuple[ObjectType, ...]:
    """The types that a caller declares; one may stand alone."""
    types = (given,) if isinstance(given, ObjectType) else tuple(given)
    for each in types:
        if not isinstance(each, ObjectType):
            raise InvalidType(f"declare takes ObjectType values, not {each!r:.80}.", value=each)
    return types


def _states(name: str, said: Any) -> States | None:
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("next"), dict):
        raise _invalid(name, "must have states as a JSON object with initial and next")
    following = {state: _texts(name, after, "next") for state, after in said["next"].items()}
    return States(_texts(name, said.get("initial"), "initial"), following)


def _rule(name: str, said: Any) -> Rule:
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        raise _invalid(name, 'must have each rule as a list such as ["unique", "host"]')
    return Rule(said[0], tuple(said[1:]))


def _text(name: str, body: Mapping[str, Any], what: str) -> str | None:
    value = body.get(what)
    if value is not None and not isinstance(value, str):
        raise _invalid(name, f"must have a text as {what}")
    return value


def _flag(name: str, body: Mapping[str, Any], what: str) -> bool:
    value = body.get(what, False)
    if not isinstance(value, bool):
        raise _invalid(name, f"must have true or false as {what}")
    return value


def _list(name: str, value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _invalid(name, f"must have a list as {what}")
    return value


def _texts(name: str, value: Any, what: str) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in _list(name, value, what)):
        raise _invalid(name, f"must have a list of texts as {what}")
    return tuple(value)


def _mapping(name: str, value: Any, what: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise _invalid(name, f"must have a JSON object of texts as {what}")
    return value


def _invalid(name: str, text: str) -> InvalidType:
    return InvalidType(f"Type {name} {text}.", type=name)
