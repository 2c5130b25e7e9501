"""strata contracts: what the segments of a datasource must be like."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable
from pathlib import Path

from catalog.cli.arguments import argument, positive
from catalog.cli.command import Answer, Table, Work, answer_of, change, command, facts_of, fetch
from catalog.contracts.keeper import ContractResult
from catalog.contracts.model import MODES, Contract, Enforcement
from catalog.evolution.merge import Policy
from catalog.model import Offence
from catalog.schema import Schema

_DATASOURCE = argument("datasource", "name of the datasource")
_BREACH = (
    *("datasource", "fingerprint", "segments", "example", "column", "rule", "words", "refused"),
)


def definition(text: str) -> str:
    """DDL or Spark's JSON as it is given, or the text of a file for `@FILE`."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ArgumentTypeError(f"{text[1:]!r} cannot be read: {error}") from None


def offences_table(offences: Iterable[Offence]) -> Table:
    """One row for each rule that segments of one schema break."""
    rows = tuple(
        (
            *(each.datasource, each.fingerprint, each.segments),
            *(next(iter(each.segment_ids), None), breach.path or None, breach.rule, breach.words),
            each.refused,
        )
        for each in offences
        for breach in each.breaches
    )
    return Table(_BREACH, rows, brief=("fingerprint", "segments", "example", "column", "words"))


@change(
    "contracts set",
    "set what the segments of a datasource must be like",
    _DATASOURCE,
    argument(
        "--schema",
        "the schema to compare with: DDL or Spark's JSON, or a local file with it",
        type=definition,
        metavar="DDL|@FILE",
    ),
    argument(
        "--enforcement",
        "how schemas must match it",
        choices=Enforcement,
        default=Enforcement.NONE.value,
    ),
    argument("--mode", "who must be able to read whose data", choices=MODES, default="none"),
    argument(
        "--policy",
        "how columns are merged whose types have no common one, where a reader does not say",
        choices=Policy,
    ),
    *(
        argument(f"--max-{name}", f"most {name} of one segment", type=positive, metavar="N")
        for name in ("rows", "bytes", "columns")
    ),
    dry_run="only show which published segments break it",
    details=(
        "Enforcement strict: schemas equal the contract's; subset: the contract's schema can hold\n"
        "their data; warn: as subset, but what breaks the contract is published and reported;\n"
        "none: columns are not compared. Every later publish, stage and backfill is checked.\n"
        "Segments that are published already stay, and are listed if they break it. It replaces\n"
        "an earlier contract."
    ),
    example='orders --schema "id BIGINT, at DATE" --enforcement subset --dry-run',
)
def contracts_set(work: Work) -> Answer:
    given = work.arguments
    contract = Contract(
        schema=None if given.schema is None else Schema.of(given.schema),
        enforcement=given.enforcement,
        mode=given.mode,
        max_rows=given.max_rows,
        max_bytes=given.max_bytes,
        max_columns=given.max_columns,
        policy=given.policy,
    )
    result = work.catalog.contracts.set(
        given.datasource, contract, dry_run=given.dry_run, **work.why
    )
    return shown_contract_change(result, work.retries(result.retries))


def shown_contract_change(result: ContractResult, retries: int) -> Answer:
    """What changed, and which published segments break the contract."""
    there = bool(result.figures()["segments_that_break_it"])
    return answer_of(
        result,
        retries,
        tables={"breaches": offences_table(result.offences)} if there else {},
        note="Published segments stay; later publishes are checked." if there else "",
    )


@command(
    "contracts get", "show the contract of a datasource", _DATASOURCE, as_of=True, example="orders"
)
def contracts_get(work: Work) -> Answer:
    datasource = work.arguments.datasource
    return shown_contract(datasource, work.catalog.contracts.get(datasource, work.as_of))


def shown_contract(datasource: str, contract: Contract | None) -> Answer:
    """A contract with all its terms."""
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
            **facts_of(contract, "max_rows", "max_bytes", "max_columns", "fingerprint"),
            "ddl": None if contract.schema is None else contract.schema.ddl,
        }
    )


@command(
    "contracts list",
    "list contracts, and the limits that tables set",
    as_of=True,
    limit=100,
    details="strata contracts get shows one with its schema.",
)
def contracts_list(work: Work) -> Answer:
    frame = work.catalog.inspect.contracts(work.as_of).orderBy("datasource")
    brief = ("datasource", "enforcement", "mode", "fingerprint", "max_rows", "table_max_rows")
    return Answer(tables={"contracts": fetch(frame, work.arguments.limit, brief)})


@change(
    "contracts remove",
    "remove the contract of a datasource",
    _DATASOURCE,
    dry_run="only show whether there is one",
    details="A datasource without a contract is no error.",
    example='orders --reason "moved"',
)
def contracts_remove(work: Work) -> Answer:
    given = work.arguments
    result = work.catalog.contracts.remove(given.datasource, dry_run=given.dry_run, **work.why)
    return shown_contract_change(result, work.retries(result.retries))
