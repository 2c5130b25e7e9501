"""Declared types of objects: where their keys stand, what their bodies hold, which rules they keep.

A declaration is the body of an object `type/<name>`, so every writer goes by the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from catalog.errors import InvalidType
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


def requires(field: str, other: str) -> Rule:
    """The field is given only beside another."""
    return Rule("requires", (field, other))


def retention() -> Rule:
    """The body says how long segments stay, as `retain` takes it."""
    return Rule("retention", ())


# The parameters of each kind that name fields of the type itself, and how many there are.
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
            raise invalid(self.name, "is the type of declarations itself; choose another name")
        for other in (self.parent, self.named_by, *self.owners, *self.references.values()):
            if other is not None:
                check_type(other)
        if self.parent is not None and self.owners:
            raise invalid(self.name, "has a parent and owners; give one of the two")
        if self.name in (self.parent, self.named_by, *self.owners):
            raise invalid(self.name, "is its own parent; name another type")
        for name, value in self.fields.items():
            if not isinstance(value, Field):
                raise invalid(self.name, f"has {value!r:.80} as {name!r:.80}, which is no Field")
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

    @cached_property
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
            raise invalid(self.name, "has states and a field state; leave the field out")
        if not self.states.initial:
            raise invalid(self.name, "has states and none to begin with; name one as initial")

    def _check_references(self) -> None:
        for name in self.references:
            found = self.fields.get(name)
            of = found.of if found is not None and found.of is not None else found
            if of is None or of.type is not FieldType.TEXT:
                raise invalid(
                    self.name, f"refers by {name!r:.80}, which is no field of text or list of text"
                )

    def _check_rule(self, rule: Rule) -> None:
        if rule.kind not in _OWN_FIELDS:
            known = ", ".join(_OWN_FIELDS)
            raise invalid(self.name, f"has a rule {rule.kind!r:.80}; there are {known}")
        own, count = _OWN_FIELDS[rule.kind] or (len(rule.parameters), max(1, len(rule.parameters)))
        if len(rule.parameters) != count:
            raise invalid(self.name, f"has the rule {rule.kind} with not {count} parameters")
        # The only parameter that is not the name of a field.
        value = 1 if rule.kind == "one_of_siblings" else None
        for index, name in enumerate(rule.parameters):
            if index != value and (
                not isinstance(name, str) or (index < own and name not in self.fields)
            ):
                raise invalid(self.name, f"has the rule {rule.kind} on {name!r:.80}, not a field")
        if rule.kind in ("meets", "conforms") and rule.parameters[1] not in self.references:
            named = f"{rule.parameters[1]!r:.80}"
            raise invalid(self.name, f"has the rule {rule.kind} over {named}, not a reference")
        if rule.kind in ("at_most", "meets") and self.parent is None:
            raise invalid(self.name, f"has the rule {rule.kind} and no parent; name one")


def types_of(given: ObjectType | Iterable[ObjectType]) -> tuple[ObjectType, ...]:
    """The types that a caller declares; one may stand alone."""
    types = (given,) if isinstance(given, ObjectType) else tuple(given)
    for each in types:
        if not isinstance(each, ObjectType):
            raise InvalidType(f"declare takes ObjectType values, not {each!r:.80}.", value=each)
    return types


def invalid(name: str, text: str) -> InvalidType:
    """The refusal of a declaration."""
    return InvalidType(f"Type {name} {text}.", type=name)
