"""Builds the caches of a catalog, with what they know besides the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from catalog.backfill.backfiller import WaitingSearch
from catalog.backfill.completer import Completed, Storer
from catalog.backfill.model import Completion
from catalog.cache.cache import Cache
from catalog.cache.live import LiveCache
from catalog.cache.loader import Loader
from catalog.cache.overlay import Overlay, Quarantine
from catalog.cache.resolver import BackgroundWriter, Resolver
from catalog.context import Context
from catalog.errors import InvalidInput
from catalog.files.footer import read_few
from catalog.files.paths import Format
from catalog.files.storage import OpenFile, local_path
from catalog.model import check_datasources, check_positive
from catalog.realtime.board import Board
from catalog.realtime.follower import Follower
from catalog.words import chosen

# The folder next to the table in which streaming jobs announce open segments.
ANNOUNCEMENTS = "announcements"

Complete = Callable[[Sequence[Completion]], Completed]


def open_cache(
    context: Context,
    datasources: Sequence[str] | None,
    board: Board | None,
    resolve: Complete | None,
    format: str | None,
    most_pending: int,
    open_file: OpenFile,
) -> Cache:
    """A cache that is not loaded yet.

    Args:
        context: the open catalog.
        datasources: only these.
        board: where open segments are announced, if the cache is to know them.
        resolve: stores schemas that lookups find in the data, if they are to look there.
        format: the format of locations that do not say theirs.
        most_pending: how many found schemas may wait to be stored.
        open_file: opens data files.
    """
    loader = Loader(context.store, check_datasources(datasources))
    if board is None and resolve is None:
        return Cache(context.spark, loader)
    overlay = Overlay(check_positive("most_pending", most_pending), context.environment.at)
    resolver, writer = None, None
    if resolve is not None:
        form = None if format is None else chosen(Format, "format", format)
        resolver, writer = _resolving(context, overlay, resolve, form, open_file)
    follower = None if board is None else Follower(board)
    return LiveCache(
        context.spark, loader, overlay, follower=follower, resolver=resolver, writer=writer
    )


def board_of(context: Context, folder: str | None) -> Board:
    """Where streaming jobs announce open segments: a given folder, or one next to the table."""
    if folder is not None:
        return Board(folder)
    if context.location.path is None:
        raise InvalidInput(
            f"The catalog {context.location} is in a metastore and has no folder for "
            'announcements; open it with Settings(announcements="/Volumes/…") or another '
            "path that its writers and readers share.",
            location=str(context.location),
        )
    # As Spark knows it: a bare path may mean another file system than the local one.
    home = context.opened.detail.uri.rpartition("/")[0]
    default = f"{home}/{ANNOUNCEMENTS}"
    return Board(local_path(default) or default)


def _resolving(
    context: Context,
    overlay: Overlay,
    complete: Complete,
    format: Format | None,
    open_file: OpenFile,
) -> tuple[Resolver, BackgroundWriter]:
    """What finds schemas in the data, and what stores them."""
    clock, buckets = context.environment.clock, context.opened.segment_buckets
    quarantine = Quarantine(clock)
    writer = BackgroundWriter(overlay, Storer(complete, clock), quarantine)
    search = WaitingSearch(context.store, buckets, None, everything=True)
    resolver = Resolver(
        overlay,
        writer,
        quarantine,
        lambda names: search.named(names, buckets),
        partial(read_few, context.spark, open_file=open_file),
        clock,
        format,
    )
    return resolver, writer
