"""What a catalog did with operations so far, in figures."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class OperationMetrics:
    """Figures of this process, since the catalog was opened.

    Attributes:
        opened: operations that were opened.
        parts: parts that were staged.
        claimed: keys that were claimed for an operation.
        joined: keys that a part found claimed by its own operation.
        conflicts: calls on operations and objects that were refused because another operation
            claims a key.
        published: operations that were applied, at once or by an advance.
        made_ready: operations that were given an epoch to wait for.
        advances: steps of the stable epoch.
        aborted: operations that were aborted, by their owner or by a recovery.
        replans: commits that were planned again because something had changed.
        retries: statements that were tried again after a conflict or a lost answer.
    """

    opened: int = 0
    parts: int = 0
    claimed: int = 0
    joined: int = 0
    conflicts: int = 0
    published: int = 0
    made_ready: int = 0
    advances: int = 0
    aborted: int = 0
    replans: int = 0
    retries: int = 0


class Counters:
    """Counts, from many threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._metrics = OperationMetrics()

    def add(self, **more: int) -> None:
        """Adds to some figures."""
        with self._mutex:
            sums = {name: getattr(self._metrics, name) + by for name, by in more.items()}
            self._metrics = replace(self._metrics, **sums)

    @property
    def metrics(self) -> OperationMetrics:
        return self._metrics
