"""`catalog.contracts`: what the segments of a datasource must be like."""

from __future__ import annotations

from typing import Unpack

from catalog.commit.committer import Committer
from catalog.context import CallOptions, Context
from catalog.contracts.keeper import ContractKeeper, ContractResult
from catalog.contracts.model import Contract
from catalog.contracts.store import read_datasource, read_terms
from catalog.delta.store import AsOf
from catalog.errors import InvalidInput
from catalog.model import check_datasource


class ContractsApi:
    """Contracts of datasources. Every publish, stage and backfill is checked against them."""

    def __init__(self, context: Context, committer: Committer) -> None:
        self._context = context
        self._keeper = ContractKeeper(committer)

    def set(
        self,
        datasource: str,
        contract: Contract,
        *,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> ContractResult:
        """Sets the contract of a datasource, in place of the one before.

        Everything that commits afterwards is checked by it, also what is under way. Existing
        segments stay; the result lists those that break the contract.

        Args:
            datasource: its name; it need not have segments yet.
            contract: the requirements.
            dry_run: only report the existing segments that break it.

        Raises:
            ClaimConflict: An undecided operation has staged segments of the datasource.
        """
        if not isinstance(contract, Contract):
            raise InvalidInput(
                f"contracts.set takes a Contract, not {type(contract).__name__}; to have none, "
                "call contracts.remove.",
                contract=contract,
            )
        return self._change(datasource, contract, dry_run, **options)

    def get(self, datasource: str, as_of: AsOf = None) -> Contract | None:
        """The contract of a datasource, if it has one."""
        version = self._context.version(as_of)
        name = check_datasource(datasource)
        return read_datasource(
            self._context.store, self._context.buckets, name, version
        ).terms.contract

    def list(self, as_of: AsOf = None) -> dict[str, Contract]:
        """The contracts of all datasources that have one, by datasource."""
        version = self._context.version(as_of)
        found = read_terms(self._context.store, version, range(self._context.buckets))
        contracts = ((name, found[name].contract) for name in sorted(found))
        return {name: contract for name, contract in contracts if contract is not None}

    def remove(
        self, datasource: str, *, dry_run: bool = False, **options: Unpack[CallOptions]
    ) -> ContractResult:
        """Removes the contract of a datasource; without one it is no change."""
        return self._change(datasource, None, dry_run, **options)

    def _change(
        self,
        datasource: str,
        contract: Contract | None,
        dry_run: bool,
        **options: Unpack[CallOptions],
    ) -> ContractResult:
        name = check_datasource(datasource)
        if dry_run:
            return self._keeper.preview(name, contract)
        call = self._context.writing(**options)
        return self._context.alone(call, lambda: self._keeper.change(name, contract, call))
