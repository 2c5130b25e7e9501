"""All types that are declared at one moment: what keys, links and bodies follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from catalog.errors import InvalidObject, InvalidType
from catalog.objects.body import body_json
from catalog.objects.contents import Problem, filled, problems
from catalog.objects.declaration import type_from
from catalog.objects.keys import check_key
from catalog.objects.model import Named, Object
from catalog.objects.types import STATE, TYPE, ObjectType

PARENT = "parent"
REFERENCE = "reference"
DECLARATION = "declaration"


class Types:
    """The declared types; `broken` are declarations that cannot be read, with the reason."""

    def __init__(
        self, declared: Iterable[ObjectType] = (), broken: Mapping[str, str] | None = None
    ) -> None:
        self._types = {each.name: each for each in declared}
        self.broken = dict(broken or {})

    @classmethod
    def among(cls, objects: Mapping[str, Named]) -> Types:
        """The types that are declared among these objects."""
        declared, broken = [], {}
        for key, found in objects.items():
            if found.type == TYPE:
                try:
                    declared.append(type_from(found.path, found.body))
                except InvalidType as error:
                    broken[key] = error.message
        return cls(declared, broken)

    def __bool__(self) -> bool:
        return bool(self._types or self.broken)

    def __iter__(self) -> Iterator[ObjectType]:
        return iter(self._types.values())

    def get(self, name: str) -> ObjectType | None:
        """The declaration of a type, if it is declared."""
        return self._types.get(name)

    # --- keys -------------------------------------------------------------------------------------

    def parent_of(self, key: str) -> str | None:
        """The key of the object that this one is below, if its type says so."""
        kind, _, path = key.partition("/")
        declared = self._types.get(kind)
        if declared is None:
            return None
        if declared.parent is not None:
            return f"{declared.parent}/{path.rpartition('/')[0]}"
        return path if path.partition("/")[0] in declared.owners else None

    def shape_problem(self, key: str) -> str | None:
        """What the key of an object of a declared type must look like, if it does not."""
        kind, *parts = key.split("/")
        declared = self._types.get(kind)
        if declared is None:
            return None
        words: list[tuple[str, ...]] = [(owner,) for owner in declared.owners] or [()]
        shapes = [(word, self.shape(word[0] if word else kind)) for word in words]
        for word, shape in shapes:
            if tuple(parts[: len(word)]) == word and len(parts) == len(word) + len(shape):
                return None
        return " or ".join(
            "/".join([kind, *word, *(f"<{each}>" for each in shape)]) for word, shape in shapes
        )

    def shape(self, name: str) -> tuple[str, ...]:
        """What the parts of a type's paths name: the types above it, and itself."""
        found = [name]
        declared = self._types.get(name)
        while declared is not None and declared.parent is not None and declared.parent not in found:
            found.append(declared.parent)
            declared = self._types.get(declared.parent)
        return tuple(reversed(found))

    # --- links ------------------------------------------------------------------------------------

    def targets(self, key: str, body: Mapping[str, Any]) -> dict[str, str]:
        """The objects that one links to by its type, each with the rule that says so."""
        kind, _, path = key.partition("/")
        if kind == TYPE:
            declared = self._types.get(path)
            return {} if declared is None else dict.fromkeys(_keys(declared), DECLARATION)
        declared = self._types.get(kind)
        if declared is None:
            return {}
        found: dict[str, str] = {}
        for name, target in declared.references.items():
            value = body.get(name)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str):
                    found[f"{target}/{each}"] = REFERENCE
        if declared.named_by is not None:
            found[f"{declared.named_by}/{path.rpartition('/')[2]}"] = REFERENCE
        parent = self.parent_of(key)
        # An owner whose type is not declared is only a word.
        if parent is not None and (declared.parent or parent.partition("/")[0] in self._types):
            found[parent] = PARENT
        found.pop(key, None)
        return found

    def given_links(self, found: Named, links: Iterable[str]) -> set[str]:
        """The links of an object that do not follow from its type."""
        return set(links) - self.targets(found.key, found.body).keys()

    # --- bodies -----------------------------------------------------------------------------------

    def completed(self, put: Object, before: Named | None) -> Object:
        """The object with its defaults and with the links that follow from its type.

        A state that is not given is the one that the object has, or the first.
        """
        declared = self._types.get(put.type)
        body = put.body
        if declared is not None:
            if declared.states is not None and body.get(STATE) is None:
                old = None if before is None else before.body.get(STATE)
                body[STATE] = old or declared.states.initial[0]
            body = filled(declared.all_fields, body)
        elif put.type != TYPE:
            return put
        links = {*put.links, *self.targets(put.key, body)}
        text = body_json(put.key, body)
        return Object.of_content(put.key, text, links, put.fingerprint, put.datasource, put.schema)

    def problems(self, found: Named, partial: bool = False) -> Iterator[Problem]:
        """What is wrong with one object, whatever else there is.

        With `partial`, what is not there may still come from another part of an operation.
        """
        broken = self.broken.get(f"{TYPE}/{found.type}") or self.broken.get(found.key)
        if broken is not None:
            yield Problem(DECLARATION, "body", f"is judged by no type that can be read: {broken}")
        declared = self._types.get(found.type)
        if declared is None:
            return
        shape = self.shape_problem(found.key)
        if shape is not None:
            yield Problem(PARENT, "key", f"must be {shape}")
        body = found.body
        yield from problems(declared.all_fields, body, open=declared.open, partial=partial)
        for target, rule in self.targets(found.key, body).items():
            try:
                check_key(target)
            except InvalidObject:
                yield Problem(rule, "body", f"names {target!r:.80}, which can be no object")

    # --- declarations -----------------------------------------------------------------------------

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Keys of declarations that do not fit the others, with what is wrong."""
        for declared in self:
            for needed in sorted(declared.needs - self._types.keys()):
                yield declared.key, f"needs the type {needed}, which is not declared"
            if self._goes_in_circles(declared):
                yield declared.key, "is above itself; parents must end"
            for rule in declared.rules:
                for where, name in _fields_elsewhere(declared, rule.kind, rule.parameters):
                    other = self._types.get(where)
                    if other is not None and name not in other.fields:
                        yield (
                            declared.key,
                            f"has the rule {rule.kind} on the field {name!r:.80} of type {where}, "
                            "which has none such",
                        )

    def _goes_in_circles(self, declared: ObjectType) -> bool:
        seen = {declared.name}
        above = declared.parent
        while above is not None and above in self._types:
            if above in seen:
                return True
            seen.add(above)
            above = self._types[above].parent
        return False


def _keys(declared: ObjectType) -> list[str]:
    return [f"{TYPE}/{needed}" for needed in sorted(declared.needs)]


def _fields_elsewhere(
    declared: ObjectType, kind: str, parameters: tuple[Any, ...]
) -> Iterator[tuple[str, str]]:
    """Fields of other types that a rule looks at, with their types."""
    if kind in ("at_most", "meets") and declared.parent is not None:
        yield declared.parent, parameters[0]
    if kind in ("meets", "conforms"):
        yield declared.references[parameters[1]], parameters[2]
