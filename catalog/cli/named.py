"""An operation as people name it on a command line: its id, or any unique beginning of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.errors import InvalidInput, UnknownOperation

if TYPE_CHECKING:
    from catalog.catalog import Catalog
    from catalog.operations.operation import Operation

HELP = "its id; any unique beginning of it will do"
_NAMED = 5


def operation_named(catalog: Catalog, text: str) -> Operation:
    """The operation that a text means; a whole id wins over ids that begin with it."""
    try:
        return catalog.operation(id=text)
    except UnknownOperation:
        pass  # then it is a beginning
    ids = catalog.operations().select("operation_id")
    begin = ids.where(F.startswith("operation_id", F.lit(text))).orderBy("operation_id")
    return catalog.operation(
        id=only(text, [row["operation_id"] for row in begin.limit(_NAMED + 1).collect()])
    )


def only(text: str, ids: Sequence[str]) -> str:
    """The one id of those that begin with a text."""
    if not ids:
        raise UnknownOperation(
            f"No operation has an id that begins with {text!r}; `strata operations list --all` lists "
            "those that there are.",
            operation=text,
        )
    if len(ids) > 1:
        named = ", ".join(ids[:_NAMED]) + (" and more" if len(ids) > _NAMED else "")
        raise InvalidInput(
            f"{text!r} is the beginning of several operations' ids: {named}; type more of it.",
            operation=text,
            candidates=tuple(ids[:_NAMED]),
        )
    return ids[0]
