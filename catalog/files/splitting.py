"""Goes on past data that ends the job which asks it (no session)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from catalog.delta.failures import Failure, classify, first_line
from catalog.errors import CatalogError, UnreadableFiles
from catalog.files.footers import Footer
from catalog.files.formats import Place

log = logging.getLogger(__name__)

# What the data at each of some places says of itself, or in words why it does not.
Describe = Callable[[Sequence[Place]], list[Footer | str]]

_NOWHERE = Place("/strata/no such file", "parquet")
# Neither says anything of the files: the connection broke, or somebody wants the job to end.
_NOT_THE_FILES = (Failure.LOST, Failure.CANCELLED)


def described_apart(describe: Describe, places: Sequence[Place]) -> list[Footer | str]:
    """What `describe` says of all places; a job that fails is halved until what fails is alone.

    Raises:
        UnreadableFiles: Spark runs no such job at all.
    """
    if not places:
        return []
    try:
        return describe(places)
    except Exception as error:
        if isinstance(error, CatalogError) or classify(error) in _NOT_THE_FILES:
            raise
        log.warning("Reading %d files failed as a whole: %s", len(places), first_line(error))
        if len(places) == 1:
            _check_that_jobs_run(describe, places[0], error)
            return [f"reading it failed: {first_line(error)}"]
    middle = len(places) // 2
    return [
        *described_apart(describe, places[:middle]),
        *described_apart(describe, places[middle:]),
    ]


def _check_that_jobs_run(describe: Describe, place: Place, cause: Exception) -> None:
    """Asks for a file that cannot be there: if Spark can say so, the other one is to blame."""
    try:
        describe([_NOWHERE])
    except Exception as error:
        if classify(error) in _NOT_THE_FILES:
            raise
        raise UnreadableFiles(
            f"Spark cannot run the job that reads files, so it is not the files: "
            f"{first_line(error)}",
            location=place.path,
        ) from cause
