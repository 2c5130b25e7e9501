"""What a view is."""

from __future__ import annotations

from dataclasses import dataclass, field

COMMIT = "Id of the commit that last changed the row; DESCRIBE HISTORY shows it in userMetadata"


@dataclass(frozen=True)
class View:
    """A view: its query over `{entries}`, and a comment for it and for each of its columns.

    `needs` names the columns of the table that older layouts do not have. `types` has the types of
    columns that are not of the same type in every view.
    """

    name: str
    comment: str
    query: str
    columns: dict[str, str]
    needs: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
