"""The words for contracts: contract set, contract show, contract remove, contracts."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from catalog.cli.answer import Answer, fetch
from catalog.cli.command import Access, Command, Work
from catalog.cli.commands.deciding import tried_again
from catalog.cli.commands.writing import add_why
from catalog.cli.offences import shown_offences
from catalog.cli.options import add_as_of, add_limit, positive
from catalog.contracts.keeper import ContractResult
from catalog.contracts.model import MODES, Contract, Enforcement
from catalog.evolution.merge import Policy
from catalog.schema import Schema

_DATASOURCE = "name of the datasource"


def _add_datasource(parser: ArgumentParser) -> None:
    parser.add_argument("datasource", metavar="DATASOURCE", help=_DATASOURCE)


def _definition(text: str) -> str:
    """DDL or Spark's JSON as it is given, or what a file holds."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ArgumentTypeError(f"{text[1:]!r} cannot be read: {error}") from None


# --- set ------------------------------------------------------------------------------------------


def _set_arguments(parser: ArgumentParser) -> None:
    _add_datasource(parser)
    parser.add_argument(
        "--schema",
        type=_definition,
        metavar="DDL|@FILE",
        help="what segments are compared with: DDL or Spark's JSON, or a local file with it",
    )
    parser.add_argument(
        "--enforcement",
        choices=[word.value for word in Enforcement],
        default=Enforcement.NONE.value,
        help="how schemas must get on with it (default %(default)s)",
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in MODES],
        default="none",
        help="who must be able to read whose data (default %(default)s)",
    )
    parser.add_argument(
        "--policy",
        choices=[policy.value for policy in Policy],
        help="what becomes of columns whose types have no common one, where a reader does not say",
    )
    for name in ("rows", "bytes", "columns"):
        parser.add_argument(
            f"--max-{name}", type=positive, metavar="N", help=f"most {name} of one segment"
        )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what is there and breaks it"
    )
    add_why(parser)


def _set(work: Work) -> Answer:
    arguments = work.arguments
    contract = Contract(
        schema=None if arguments.schema is None else Schema.of(arguments.schema),
        enforcement=arguments.enforcement,
        mode=arguments.mode,
        max_rows=arguments.max_rows,
        max_bytes=arguments.max_bytes,
        max_columns=arguments.max_columns,
        policy=arguments.policy,
    )
    result = work.catalog.set_contract(
        arguments.datasource,
        contract,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return shown_contract_change(result, tried_again(work.catalog, result.retries))


def shown_contract_change(result: ContractResult, tried_again: int) -> Answer:
    """What became of a contract, and what is there that breaks it."""
    there = sum(each.segments for each in result.offences)
    return Answer(
        facts={
            "version": result.version,
            "commit_id": result.commit_id or None,
            "datasource": result.datasource,
            "changed": result.changed,
            "segments_that_break_it": there,
            "dry_run": result.dry_run,
            "retries": tried_again,
        },
        tables={"breaches": shown_offences(result.offences)} if there else {},
        figures={"segments_that_break_it": there, "conflicts_retried": tried_again},
        note="What is there stays; publishes from now on are checked." if there else "",
    )


CONTRACTS_SET = Command(
    name="contracts set",
    summary="say what the segments of a datasource must be like",
    details=(
        "Enforcement strict: schemas are the contract's; subset: the contract's can hold their\n"
        "data; warn: as subset, but what breaks the contract goes in and is reported; none:\n"
        "columns are not compared. Every publish, stage and backfill that commits afterwards is\n"
        "checked. What is there already stays, and is listed. It replaces an earlier contract."
    ),
    example='contracts set orders --schema "id BIGINT, at DATE" --enforcement subset --dry-run',
    access=Access.WRITE,
    arguments=_set_arguments,
    work=_set,
    recorded=True,
)

# --- show -----------------------------------------------------------------------------------------


def _show_arguments(parser: ArgumentParser) -> None:
    _add_datasource(parser)
    add_as_of(parser)


def _show(work: Work) -> Answer:
    arguments = work.arguments
    contract = work.catalog.contract(arguments.datasource, arguments.as_of)
    return shown_contract(arguments.datasource, contract)


def shown_contract(datasource: str, contract: Contract | None) -> Answer:
    """A contract with all that it says."""
    if contract is None:
        return Answer(
            facts={"datasource": datasource, "contract": False},
            note=f"Datasource {datasource} has no contract.",
        )
    return Answer(
        facts={
            "datasource": datasource,
            "contract": True,
            "enforcement": str(contract.enforcement),
            "mode": str(contract.mode),
            "policy": None if contract.policy is None else str(contract.policy),
            "max_rows": contract.max_rows,
            "max_bytes": contract.max_bytes,
            "max_columns": contract.max_columns,
            "fingerprint": contract.fingerprint,
            "ddl": None if contract.schema is None else contract.schema.ddl,
        }
    )


CONTRACTS_GET = Command(
    name="contracts get",
    summary="show the contract of a datasource",
    example="contracts get orders",
    access=Access.READ,
    arguments=_show_arguments,
    work=_show,
)

# --- remove ---------------------------------------------------------------------------------------


def _remove_arguments(parser: ArgumentParser) -> None:
    _add_datasource(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say whether there is one")
    add_why(parser)


def _remove(work: Work) -> Answer:
    arguments = work.arguments
    result = work.catalog.remove_contract(
        arguments.datasource,
        dry_run=arguments.dry_run,
        reason=arguments.reason,
        deadline=arguments.deadline,
    )
    return shown_contract_change(result, tried_again(work.catalog, result.retries))


CONTRACTS_REMOVE = Command(
    name="contracts remove",
    summary="remove the contract of a datasource",
    details="A datasource that has none is no change.",
    example='contracts remove orders --reason "moved"',
    access=Access.WRITE,
    arguments=_remove_arguments,
    work=_remove,
    recorded=True,
)

# --- contracts ------------------------------------------------------------------------------------


def _contracts_arguments(parser: ArgumentParser) -> None:
    add_as_of(parser)
    add_limit(parser)


def _contracts(work: Work) -> Answer:
    arguments = work.arguments
    frame = work.catalog.contracts(arguments.as_of).orderBy("datasource")
    brief = ("datasource", "enforcement", "mode", "fingerprint", "max_rows", "table_max_rows")
    return Answer(tables={"contracts": fetch(frame, arguments.limit, brief)})


CONTRACTS_LIST = Command(
    name="contracts list",
    summary="list contracts, and the limits that tables give",
    details="strata contracts get shows one with its schema.",
    example="contracts list",
    access=Access.READ,
    arguments=_contracts_arguments,
    work=_contracts,
)
