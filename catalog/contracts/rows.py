"""What a general commit writes to give a datasource its contract."""

from __future__ import annotations

from catalog.contracts.model import Contract
from catalog.contracts.reading import DatasourceRow
from catalog.model import Kind
from catalog.operations.rowset import RowSet
from catalog.table.changes import Change


def write_terms(rows: RowSet, before: DatasourceRow, after: Contract | None) -> None:
    """Adds the row of the datasource with its contract, or without one, in place of what was read.

    The statement has to mind all claims on the datasource, shared ones too (`plain_clash`): what an
    operation has staged was checked by the contract that is there.
    """
    if after is not None and after.schema is not None:
        rows.schema(after.schema)
    rows.add(
        Kind.DATASOURCE,
        before.bucket,
        before.datasource,
        Change.INSERT if before.commit_id is None else Change.UPDATE,
        seen=before.commit_id,
        fingerprint=None if after is None else after.fingerprint,
        digest=None if after is None else after.digest,
        payload=None if after is None else after.payload(),
    )
    rows.reads(Kind.STAGED, [before.bucket], before.datasource, before.datasource)
