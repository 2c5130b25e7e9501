"""Sets and removes contracts, each in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog.commit.claims import claimed, claims_on
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.contracts.enforcement import offences_of
from catalog.contracts.model import Contract, Terms
from catalog.contracts.store import (
    DatasourceRow,
    group_segments,
    read_datasource,
    segments_of,
    write_terms,
)
from catalog.delta.changes import plain_clash
from catalog.delta.statements import Statement
from catalog.model import Offence

VERB = "contract"


@dataclass(frozen=True)
class ContractResult:
    """The result of setting or removing a contract.

    Attributes:
        version: the table version from which on it holds; if nothing changed, one at which it did.
        commit_id: empty if nothing changed.
        contract: the contract from now on; none if it was removed.
        before: the contract that it replaces.
        offences: stored segments that break it, by schema. They stay.
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

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "datasource": self.datasource,
            "changed": self.changed,
            "segments_that_break_it": sum(each.segments for each in self.offences),
            "dry_run": self.dry_run,
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {
            "segments_that_break_it": sum(each.segments for each in self.offences),
            "conflicts_retried": self.retries,
        }


class ContractKeeper:
    """Changes contracts; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def preview(self, datasource: str, contract: Contract | None) -> ContractResult:
        """What setting a contract would do now."""
        version = self._store.head().version
        before = read_datasource(self._store, self._committer.buckets, datasource, version)
        return self._result(before, contract, Committed(version, "", 0), dry_run=True)

    def change(self, datasource: str, contract: Contract | None, call: Call) -> ContractResult:
        """Sets the contract of a datasource, or removes it.

        It writes the row that running publishes have read: they are checked again, against the
        new contract. Refused while an operation has staged segments of the datasource.
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
        return self._result(planned[0], contract, done)

    def _result(
        self,
        before: DatasourceRow,
        contract: Contract | None,
        done: Committed,
        dry_run: bool = False,
    ) -> ContractResult:
        return ContractResult(
            done.version,
            done.commit_id,
            before.datasource,
            contract,
            before.terms.contract,
            () if contract is None else self._offences(before, contract, done.version),
            dry_run,
            done.retries,
        )

    def _offences(
        self, row: DatasourceRow, contract: Contract, version: int
    ) -> tuple[Offence, ...]:
        """Stored segments that break a contract."""
        terms = {row.datasource: Terms.of(contract)}
        groups = group_segments(segments_of(self._store, version, row), terms)
        schemas = self._store.schemas_of({each.fingerprint for each in groups}, version)
        return offences_of(groups, terms, schemas)
