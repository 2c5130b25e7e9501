"""The caches of a catalog, asked together for schemas, and waited for together."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakSet

from catalog.cache.cache import Cache
from catalog.cache.following import check_timeout, check_version
from catalog.environment import Deadline
from catalog.errors import CacheBehind, CatalogError
from catalog.schema import Schema


class Caches:
    """Caches as long as somebody uses them."""

    def __init__(self) -> None:
        self._caches: WeakSet[Cache] = WeakSet()
        self._guard = threading.Lock()

    def add(self, cache: Cache) -> None:
        with self._guard:
            self._caches.add(cache)

    def stop(self) -> None:
        """Ends what they do in the background; what they found is stored before."""
        for cache in self._all():
            cache.stop()

    def wait_for(self, version: int, timeout: float = 60.0) -> None:
        """Returns when all that are loaded have reached a version of the table.

        Each polls in turn, in this thread. The seconds are for all of them together; the first that
        does not get there raises `GaveUp`, and a poll that fails raises its own error.
        """
        wanted, deadline = check_version(version), Deadline(check_timeout(timeout))
        for cache in self._all():
            if cache.loaded:
                cache.reach(wanted, deadline)

    def follow(self, version: int, result: Any, timeout: float = 60.0) -> None:
        """The same for the version of a commit that has happened, whose caller gets `result`.

        Raises:
            CacheBehind: One does not get there, for whatever reason; it has the result.
        """
        try:
            self.wait_for(version, timeout)
        except Exception as error:  # the commit stands, whatever Spark says of a poll
            reason = error.message if isinstance(error, CatalogError) else str(error)
            raise CacheBehind(
                f"It is done, at version {version}, but a cache of this catalog has not reached "
                f"that: {reason} Wait for it with cache.wait_for({version}); the result is in "
                "the values of this error.",
                version=version,
                result=result,
            ) from error

    def holds(self, fingerprint: str) -> bool:
        """Whether a snapshot has the schema."""
        return any(cache.holds(fingerprint) for cache in self._all())

    def held(self, fingerprint: str) -> Schema | None:
        """The schema, if a snapshot has it."""
        found = (cache.find_schema(fingerprint) for cache in self._all())
        return next((schema for schema in found if schema is not None), None)

    def _all(self) -> list[Cache]:
        with self._guard:
            return list(self._caches)
