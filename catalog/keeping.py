"""Objects: the verbs of `Catalog` for named things of the platform."""

from __future__ import annotations

from collections.abc import Iterable

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
from catalog.operating import Operating


class Keeping(Operating):
    """The verbs of `Catalog` on objects and their types."""

    _keeper: Keeper

    def declare(
        self,
        types: ObjectType | Iterable[ObjectType],
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> PutResult:
        """Declares types of objects, all of them or none; the same again is no change.

        From then on every change of such objects is judged by the declaration, whoever makes it.
        Objects that are there already get the links and defaults that it demands.

        Args:
            types: the types, such as `PLATFORM`.
            actor: who declares them.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            RuleViolation: Objects that are there break a rule of the declaration.
            ClaimConflict: An operation that is not decided yet claims one that must be changed.
        """
        return self._change(plan.declare(types), "declare", actor, reason, deadline)

    def types(self, as_of: AsOf = None) -> tuple[ObjectType, ...]:
        """The declared types, now or as of a version, a time or an epoch, by name."""
        version = self._store.version_as_of(as_of)
        found = stored_objects(self._store, version, of_type(TYPE))
        return tuple(Types.among({each.key: each for each in found}))

    def put(
        self,
        objects: Object | Iterable[Object],
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> PutResult:
        """Puts objects, all of them or none; what has the content already is left alone.

        Every object that links to a changed one, directly or through others, gets a new revision
        too, in the same commit.

        Raises:
            UnknownObject: A link leads to what is not there.
            RuleViolation: A rule of a declared type would break.
            ClaimConflict: An operation that is not decided yet claims one of them.
        """
        return self._change(plan.put(changes_of(put=objects)), "put", actor, reason, deadline)

    def ensure(
        self,
        objects: Object | Iterable[Object],
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> PutResult:
        """Creates objects, or sets only what is given of those that are there, all or none.

        Fields of the body that are not given stay as they are, and so do links, schema and
        datasource. What has all that already is left alone.

        Raises: as `put`.
        """
        return self._change(plan.ensure(changes_of(put=objects)), "ensure", actor, reason, deadline)

    def get(self, key: str, as_of: AsOf = None) -> StoredObject:
        """The object with this key, now or as of a version, a time or an epoch."""
        version = self._store.version_as_of(as_of)
        found = stored_objects(self._store, version, of_key(check_key(key)))
        if not found:
            raise UnknownObject(
                f"There is no object {key} at version {version}.", key=key, version=version
            )
        return found[0]

    def list(
        self,
        type: str | None = None,
        as_of: AsOf = None,
        *,
        parent: str | None = None,
    ) -> tuple[StoredObject, ...]:
        """All objects, or those of a type, or of a declared type those below one object.

        They come in the order of their keys.
        """
        if parent is not None and type is None:
            raise InvalidObject(f"Say of which type the objects below {parent} are.", key=parent)
        version = self._store.version_as_of(as_of)
        if type is None:
            return tuple(stored_objects(self._store, version, "true"))
        condition = of_type(check_type(type))
        if parent is None:
            return tuple(stored_objects(self._store, version, condition))
        check_key(parent, "The key of a parent")
        declaration = f"{TYPE}/{type}"
        found = stored_objects(self._store, version, f"{condition} OR {of_key(declaration)}")
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
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> PutResult:
        """Removes objects, all of them or none; what is not there is counted, not an error.

        Args:
            keys: their keys.
            cascade: also remove everything below them and everything that refers to them.
            dry_run: only say what would be removed.
            actor: who removes them.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            ObjectInUse: An object that stays links to one of them.
            RuleViolation: A rule of a declared type would break.
            ClaimConflict: An operation that is not decided yet claims one of them.
        """
        work = plan.remove(changes_of(remove=keys), cascade)
        if dry_run:
            return self._keeper.preview(work)
        return self._change(work, "remove", actor, reason, deadline)

    def rename(
        self,
        key: str,
        name: str,
        *,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> PutResult:
        """Gives an object another name: the last part of its key.

        It keeps its id, and its revision goes on. What is below it moves along, and what refers to
        it follows, all in one commit. Links of objects whose types are not declared follow too;
        what their bodies say does not.

        Raises:
            UnknownObject: There is no such object.
            RuleViolation: The name is taken, or a rule of a declared type would break.
            ClaimConflict: An operation that is not decided yet claims what would change.
        """
        return self._change(plan.rename(check_key(key), name), "rename", actor, reason, deadline)

    def _change(
        self, work: Planner, verb: str, actor: str | None, reason: str, deadline: float | None
    ) -> PutResult:
        self._check_writable()
        asking = self._asking(actor, reason, deadline)
        return self._queue.alone(lambda: self._keeper.change(work, verb, asking), asking.deadline)
