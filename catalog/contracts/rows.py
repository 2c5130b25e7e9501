"""What a general commit writes to give datasources their contracts, and the limits of tables."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.commit.rows import RowSet
from catalog.contracts.limits import TableLimits
from catalog.contracts.reading import DatasourceRow, read_datasources
from catalog.contracts.terms import Terms
from catalog.delta.changes import RowChange
from catalog.delta.store import Store
from catalog.model import Kind


def write_terms(rows: RowSet, before: DatasourceRow, after: Terms) -> None:
    """Adds the row of the datasource with its terms, or without any, in place of what was read.

    The statement has to mind all claims on the datasource, shared ones too (`plain_clash`), or to
    be that of the operation that has it: what others have staged was checked by the terms that are
    there.
    """
    contract = after.contract
    if contract is not None and contract.schema is not None:
        rows.schema(contract.schema)
    rows.add(
        Kind.DATASOURCE,
        before.bucket,
        before.datasource,
        RowChange.INSERT if before.commit_id is None else RowChange.UPDATE,
        seen=before.commit_id,
        fingerprint=None if contract is None else contract.fingerprint,
        digest=after.digest,
        payload=after.payload(),
    )
    rows.reads(Kind.STAGED, [before.bucket], before.datasource, before.datasource)


def write_limits(
    rows: RowSet, store: Store, buckets: int, version: int, limits: Mapping[str, TableLimits]
) -> None:
    """Adds the rows of datasources whose tables give other limits now; contracts stay."""
    for row in read_datasources(store, buckets, limits, version):
        write_terms(rows, row, Terms.of(row.terms.contract, limits[row.datasource]))
