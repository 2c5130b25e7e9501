"""Schemas of segments that are still open: announced by the jobs that write them, seen by readers.

Nothing here is published, and nothing of it is in the catalog's table: announcements last as long
as their writers renew them.
"""

from catalog.realtime.announcement import Announced
from catalog.realtime.announcer import Announcer
from catalog.realtime.board import Board
from catalog.realtime.follower import Counters, Follower

__all__ = ["Announced", "Announcer", "Board", "Counters", "Follower"]
