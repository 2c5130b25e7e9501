"""`catalog.objects`: named things of the platform, with links and declared types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from catalog.commit.committer import Committer
from catalog.context import CallOptions, Context
from catalog.delta.store import AsOf
from catalog.errors import InvalidObject, UnknownObject
from catalog.objects import plan
from catalog.objects.changes import changes_of
from catalog.objects.declarations import Types
from catalog.objects.keeper import Keeper, PutResult
from catalog.objects.model import Object, StoredObject, check_key, check_type
from catalog.objects.plan import Planner
from catalog.objects.store import of_key, of_type, stored_objects
from catalog.objects.types import TYPE, ObjectType


class ObjectsApi:
    """Objects and their types. Every change is one commit, all of it or nothing."""

    def __init__(self, context: Context, committer: Committer) -> None:
        self._context = context
        self._keeper = Keeper(committer)

    def put(self, objects: Object | Iterable[Object], **options: Unpack[CallOptions]) -> PutResult:
        """Writes objects; unchanged objects are skipped.

        Every object that links to a changed one, directly or through others, gets a new revision
        in the same commit.

        Raises:
            UnknownObject: A link leads to an object that does not exist.
            RuleViolation: A rule of a declared type would break.
            ClaimConflict: An undecided operation claims one of the objects.
        """
        return self._change(plan.put(changes_of(put=objects)), "put", **options)

    def ensure(
        self, objects: Object | Iterable[Object], **options: Unpack[CallOptions]
    ) -> PutResult:
        """Creates objects, or updates only the given fields of those that exist.

        Fields of the body, links, schema and datasource that are not given stay. Unchanged objects
        are skipped. Raises what `put` raises.
        """
        return self._change(plan.ensure(changes_of(put=objects)), "ensure", **options)

    def get(self, key: str, as_of: AsOf = None) -> StoredObject:
        """The object with this key.

        Raises:
            UnknownObject: There is none.
        """
        version = self._context.version(as_of)
        found = stored_objects(self._context.store, version, of_key(check_key(key)))
        if not found:
            raise UnknownObject(
                f"There is no object {key} at version {version}.", key=key, version=version
            )
        return found[0]

    def list(
        self, type: str | None = None, as_of: AsOf = None, *, parent: str | None = None
    ) -> tuple[StoredObject, ...]:
        """All objects, or those of a type, ordered by key.

        With `parent` only the children of one object; the type must be declared then.
        """
        if parent is not None and type is None:
            raise InvalidObject(f"Give the type of the objects below {parent}.", key=parent)
        store, version = self._context.store, self._context.version(as_of)
        if type is None:
            return tuple(stored_objects(store, version, "true"))
        condition = of_type(check_type(type))
        if parent is None:
            return tuple(stored_objects(store, version, condition))
        check_key(parent, "The key of a parent")
        declaration = f"{TYPE}/{type}"
        found = stored_objects(store, version, f"{condition} OR {of_key(declaration)}")
        types = Types.among({each.key: each for each in found})
        if types.get(type) is None:
            raise InvalidObject(
                f"Type {type} is not declared, and only objects of declared types have parents.",
                type=type,
            )
        return tuple(each for each in found if types.parent_of(each.key) == parent)

    def remove(
        self,
        keys: str | Iterable[str],
        *,
        cascade: bool = False,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> PutResult:
        """Removes objects; keys that do not exist are counted, not an error.

        Args:
            keys: their keys.
            cascade: also remove everything below them and everything that refers to them.
            dry_run: only report what would be removed.

        Raises:
            ObjectInUse: Another object links to one of them.
            RuleViolation: A rule of a declared type would break.
            ClaimConflict: An undecided operation claims one of them.
        """
        planner = plan.remove(changes_of(remove=keys), cascade)
        return (
            self._keeper.preview(planner) if dry_run else self._change(planner, "remove", **options)
        )

    def rename(self, key: str, name: str, **options: Unpack[CallOptions]) -> PutResult:
        """Gives an object another name: the last part of its key.

        Its id stays and its revision goes on. Children move along and references follow, in the
        same commit; links from objects of undeclared types follow too, their bodies do not.

        Raises:
            UnknownObject: There is no such object.
            RuleViolation: The name is taken, or a rule of a declared type would break.
            ClaimConflict: An undecided operation claims an object that would change.
        """
        return self._change(plan.rename(check_key(key), name), "rename", **options)

    def declare(
        self, types: ObjectType | Iterable[ObjectType], **options: Unpack[CallOptions]
    ) -> PutResult:
        """Declares types of objects, such as `PLATFORM`; unchanged declarations are skipped.

        From then on every change of such objects is checked against the declaration. Existing
        objects get the links and defaults that it requires.

        Raises:
            RuleViolation: Existing objects break a rule of the declaration.
            ClaimConflict: An undecided operation claims an object that must be changed.
        """
        return self._change(plan.declare(types), "declare", **options)

    def types(self, as_of: AsOf = None) -> tuple[ObjectType, ...]:
        """The declared types, ordered by name."""
        found = stored_objects(self._context.store, self._context.version(as_of), of_type(TYPE))
        return tuple(Types.among({each.key: each for each in found}))

    def _change(self, planner: Planner, verb: str, **options: Unpack[CallOptions]) -> PutResult:
        call = self._context.writing(**options)
        return self._context.alone(call, lambda: self._keeper.change(planner, verb, call))
