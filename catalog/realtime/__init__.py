"""Schemas of segments that are still open: announced by the jobs that write them, seen by readers.

Announcements are not in the catalog's table; they last as long as their writers renew them.
"""

from catalog.realtime.announcer import Announcer
from catalog.realtime.board import Announced, Board
from catalog.realtime.follower import Follower, FollowerFigures

__all__ = ["Announced", "Announcer", "Board", "Follower", "FollowerFigures"]
