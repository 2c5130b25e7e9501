"""All declared types at one moment: the keys, links and bodies that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from catalog.errors import InvalidObject, InvalidType
from catalog.objects.fields import FieldProblem, filled, problems
from catalog.objects.model import (
    Keyed,
    Object,
    ObjectNode,
    body_json,
    canonical,
    check_key,
    digest_of,
)
from catalog.objects.types import STATE, TYPE, ObjectType, Rule, type_from

# Names of rules that hold for all declared types.
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
    def among(cls, objects: Mapping[str, Keyed]) -> Types:
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
        """The key of an object's parent or owner, if its type has one."""
        kind, _, path = key.partition("/")
        declared = self._types.get(kind)
        if declared is None:
            return None
        if declared.parent is not None:
            return f"{declared.parent}/{path.rpartition('/')[0]}"
        return path if path.partition("/")[0] in declared.owners else None

    def shape_problem(self, key: str) -> str | None:
        """The form that the key of an object must have by its type, if it does not have it."""
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
        """The types that the parts of a type's paths name: those above it, and itself."""
        found = [name]
        declared = self._types.get(name)
        while declared is not None and declared.parent is not None and declared.parent not in found:
            found.append(declared.parent)
            declared = self._types.get(declared.parent)
        return tuple(reversed(found))

    # --- links ------------------------------------------------------------------------------------

    def targets(self, key: str, body: Mapping[str, Any]) -> dict[str, str]:
        """The objects that one links to by its type, each with the rule that requires the link."""
        kind, _, path = key.partition("/")
        if kind == TYPE:
            declared = self._types.get(path)
            needs = () if declared is None else sorted(declared.needs)
            return {f"{TYPE}/{needed}": DECLARATION for needed in needs}
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
        # An owner whose type is not declared need not exist.
        if parent is not None and (declared.parent or parent.partition("/")[0] in self._types):
            found[parent] = PARENT
        found.pop(key, None)
        return found

    def given_links(self, found: Keyed, links: Iterable[str]) -> set[str]:
        """The links of an object that do not follow from its type."""
        return set(links) - self.targets(found.key, found.body).keys()

    # --- bodies -----------------------------------------------------------------------------------

    def completed(self, put: Object, before: Keyed | None) -> Object:
        """The object with its defaults and with the links that follow from its type.

        Without a given state it keeps the one that it has, or gets the first initial one.
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

    def problems(self, found: Keyed, partial: bool = False) -> Iterator[FieldProblem]:
        """What is wrong with one object on its own.

        With `partial`, missing fields may still come from another part of an operation.
        """
        broken = self.broken.get(f"{TYPE}/{found.type}") or self.broken.get(found.key)
        if broken is not None:
            how = f"cannot be checked, as its type cannot be read: {broken}"
            yield FieldProblem(DECLARATION, "body", how)
        declared = self._types.get(found.type)
        if declared is None:
            return
        shape = self.shape_problem(found.key)
        if shape is not None:
            yield FieldProblem(PARENT, "key", f"must be {shape}")
        body = found.body
        yield from problems(declared.all_fields, body, open=declared.open, partial=partial)
        for target, rule in self.targets(found.key, body).items():
            try:
                check_key(target)
            except InvalidObject:
                yield FieldProblem(rule, "body", f"names {target!r:.80}, which can be no object")

    # --- declarations -----------------------------------------------------------------------------

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Keys of declarations that do not fit the others, with what is wrong."""
        for declared in self:
            for needed in sorted(declared.needs - self._types.keys()):
                yield declared.key, f"needs the type {needed}, which is not declared"
            if self._is_its_own_ancestor(declared):
                yield declared.key, "is above itself; parents must end"
            for rule in declared.rules:
                for where, name in _fields_elsewhere(declared, rule):
                    other = self._types.get(where)
                    if other is not None and name not in other.fields:
                        yield (
                            declared.key,
                            f"has the rule {rule.kind} on the field {name!r:.80} of type {where}, "
                            "which has none such",
                        )

    def _is_its_own_ancestor(self, declared: ObjectType) -> bool:
        seen = {declared.name}
        above = declared.parent
        while above is not None and above in self._types:
            if above in seen:
                return True
            seen.add(above)
            above = self._types[above].parent
        return False


def _fields_elsewhere(declared: ObjectType, rule: Rule) -> Iterator[tuple[str, str]]:
    """Fields of other types that a rule looks at, with their types."""
    if rule.kind in ("at_most", "meets") and declared.parent is not None:
        yield declared.parent, rule.parameters[0]
    if rule.kind in ("meets", "conforms"):
        yield declared.references[rule.parameters[1]], rule.parameters[2]


class Moves:
    """The keys of objects after some were moved: those below them and references follow."""

    def __init__(self, types: Types, moves: dict[str, str]) -> None:
        self._types = types
        self._known = dict(moves)

    def of(self, key: str) -> str:
        """The new key of an object, which follows from those of its parent and of what names it."""
        if key not in self._known:
            self._known[key] = key  # ends a cycle of parents
            self._known[key] = self._follow(key)
        return self._known[key]

    def _follow(self, key: str) -> str:
        kind, _, path = key.partition("/")
        declared = self._types.get(kind)
        if declared is None:
            return key
        above, _, name = path.rpartition("/")
        if declared.named_by is not None:
            name = self.of(f"{declared.named_by}/{name}").partition("/")[2]
        if declared.parent is not None:
            above = self.of(f"{declared.parent}/{above}").partition("/")[2]
        elif declared.owners:
            return f"{kind}/{self.of(path)}"
        return f"{kind}/{above}/{name}" if above else f"{kind}/{name}"

    def node(self, node: ObjectNode) -> ObjectNode:
        """The object with new keys in its key, links and references; itself if none is new."""
        key = self.of(node.key)
        links = {self.of(target): revision for target, revision in node.links.items()}
        json = self._json(node)
        if (key, links, json) == (node.key, node.links, node.json):
            return node
        digest = digest_of(json, links, node.fingerprint, node.datasource)
        return ObjectNode(
            key, node.id, node.revision, json, links, node.fingerprint, node.datasource, digest
        )

    def _json(self, node: ObjectNode) -> str:
        declared = self._types.get(node.type)
        if declared is None or not declared.references:
            return node.json
        body = node.body
        for name, target in declared.references.items():
            value = body.get(name)
            if isinstance(value, list):
                body[name] = [self._path(target, each) for each in value]
            elif value is not None:
                body[name] = self._path(target, value)
        return canonical(body)

    def _path(self, target: str, path: Any) -> Any:
        return self.of(f"{target}/{path}").partition("/")[2] if isinstance(path, str) else path
