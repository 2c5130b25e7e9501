"""Setting and removing contracts, each call in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.commit.changes import plain_clash
from catalog.commit.claims import claimed, claims_on
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.contracts.checking import Offence, offences_of
from catalog.contracts.model import Contract
from catalog.contracts.reading import (
    DatasourceRow,
    group_segments,
    read_datasource,
    schemas_of,
    segments_of,
)
from catalog.contracts.rows import write_terms
from catalog.contracts.terms import Terms
from catalog.delta.statements import Statement

VERB = "contract"


@dataclass(frozen=True)
class ContractResult:
    """What became of the contract of a datasource.

    Attributes:
        version: the table version from which on it holds; if nothing changed, one at which it did.
        commit_id: empty if nothing changed.
        contract: the contract from now on; none if it was removed.
        before: the contract that it replaces.
        offences: segments that are there and break it, by their schemas. They stay.
    """

    version: int
    commit_id: str
    datasource: str
    contract: Contract | None
    before: Contract | None
    offences: tuple[Offence, ...] = ()
    dry_run: bool = False
    retries: int = 0

    @property
    def changed(self) -> bool:
        """Whether it is another contract than before."""
        return self.contract != self.before


class ContractKeeper:
    """Changes contracts; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def preview(self, datasource: str, contract: Contract | None) -> ContractResult:
        """What setting a contract would do now."""
        version = self._store.head().version
        before = read_datasource(self._store, self._committer.buckets, datasource, version)
        return ContractResult(
            *(version, "", datasource, contract, before.terms.contract),
            offences=self._offences(before, contract, version),
            dry_run=True,
        )

    def change(self, datasource: str, contract: Contract | None, call: Call) -> ContractResult:
        """Sets the contract of a datasource, or removes it.

        Publishes that are under way have read the row that this writes: they run again, and meet
        the contract. It is refused while an operation has staged segments of the datasource.
        """
        planned: list[DatasourceRow] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            row = read_datasource(self._store, self._committer.buckets, datasource, version)
            if planned and row.commit_id == rows.commit_id:
                raise Settled(self._committer.lost(rows.commit_id, version))
            planned[:] = [row]
            if row.terms.contract == contract:
                raise Settled(Committed(version, "", 0))
            standing = claims_on(self._store, (), [datasource], self._committer.buckets, version)
            if standing.claims:
                raise claimed(standing.claims)
            write_terms(rows, row, Terms.of(contract, row.terms.limits))
            return rows.statement(VERB, self._store, plain_clash(standing.decided))

        try:
            done = self._committer.commit(VERB, call, plan, lambda: {"datasource": datasource})
        except Settled as settled:
            done = settled.answer
        (before,) = planned
        return ContractResult(
            *(done.version, done.commit_id, datasource, contract, before.terms.contract),
            offences=self._offences(before, contract, done.version),
            retries=done.retries,
        )

    def _offences(
        self, row: DatasourceRow, contract: Contract | None, version: int
    ) -> tuple[Offence, ...]:
        """What is there and breaks the contract."""
        if contract is None:
            return ()
        terms = {row.datasource: Terms.of(contract)}
        groups = group_segments(segments_of(self._store, version, row), terms)
        schemas = schemas_of(self._store, version, {each.fingerprint for each in groups})
        return offences_of(groups, terms, schemas)
