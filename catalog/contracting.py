"""Contracts: the verbs of `Catalog` that say what the segments of a datasource must be like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.contracts.keeper import ContractKeeper, ContractResult
from catalog.contracts.model import Contract
from catalog.contracts.store import read_datasource
from catalog.delta.store import AsOf
from catalog.errors import InvalidInput
from catalog.model import check_datasource
from catalog.operating import Operating

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Contracting(Operating):
    """The verbs of `Catalog` on contracts."""

    _contracts: ContractKeeper

    def set_contract(
        self,
        datasource: str,
        contract: Contract,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> ContractResult:
        """Sets what the segments of a datasource must be like, in place of what was set before.

        Every publish, stage and backfill that commits afterwards is checked by it, those that are
        under way too. What is there already stays; the result says which of it breaks the contract.

        Args:
            datasource: its name; it need not have segments yet.
            contract: what they must be like.
            dry_run: only say what is there and breaks it.
            actor: who sets it.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            ClaimConflict: An operation that is not decided yet has staged segments of it.
        """
        if not isinstance(contract, Contract):
            raise InvalidInput(
                f"set_contract takes a Contract, not {type(contract).__name__}; to have none, call "
                "remove_contract.",
                contract=contract,
            )
        return self._change_contract(datasource, contract, dry_run, actor, reason, deadline)

    def remove_contract(
        self,
        datasource: str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> ContractResult:
        """Removes the contract of a datasource; one that has none is no change."""
        return self._change_contract(datasource, None, dry_run, actor, reason, deadline)

    def contract(self, datasource: str, as_of: AsOf = None) -> Contract | None:
        """The contract of a datasource, now or as of a version, a time or an epoch."""
        version = self._store.version_as_of(as_of)
        buckets = self._buckets()
        name = check_datasource(datasource)
        return read_datasource(self._store, buckets, name, version).terms.contract

    def contracts(self, as_of: AsOf = None) -> DataFrame:
        """Contracts of datasources and the limits of their tables, one row each."""
        return self._view("contracts", as_of)

    def _change_contract(
        self,
        datasource: str,
        contract: Contract | None,
        dry_run: bool,
        actor: str | None,
        reason: str,
        deadline: float | None,
    ) -> ContractResult:
        name = check_datasource(datasource)
        if dry_run:
            return self._contracts.preview(name, contract)
        self._check_writable()
        asking = self._asking(actor, reason, deadline)
        return self._queue.alone(
            lambda: self._contracts.change(name, contract, asking), asking.deadline
        )
