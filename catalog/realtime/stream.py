"""The announcer of a streaming job, which also publishes the segments that it closes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from catalog.model import PublishResult, Segment
from catalog.realtime.announcer import Announcer
from catalog.realtime.board import Board


class StreamAnnouncer(Announcer):
    """Announces open segments, and hands them over when they are closed."""

    def __init__(
        self,
        board: Board,
        writer: str,
        *,
        ttl: timedelta,
        takeover: bool,
        publish: Callable[[Sequence[Segment]], PublishResult],
    ) -> None:
        super().__init__(board, writer, ttl=ttl, takeover=takeover)
        self._publish = publish

    def publish(self, segments: Sequence[Segment]) -> PublishResult:
        """Publishes segments that are closed, and takes back what was announced of them.

        In this order: a reader that no longer finds the announcement finds the segment.
        """
        given = list(segments)
        self._check_open()
        result = self._publish(given)
        closed = [segment.id for segment in given if segment.id in self.announced]
        if closed:
            self.forget(closed)
        return result
