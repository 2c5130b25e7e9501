"""The documents: command lines, links, Python and JSON; shell, jobs and schemas as in the code."""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
from ast import Name, parse, walk
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.cli import outcome
from catalog.cli.command import Answer, Command
from catalog.cli.commands import BY_JOB, BY_NAME, COMMANDS
from catalog.cli.outcome import Exit, RunOutcome, write_metrics
from catalog.cli.output import JsonRenderer
from catalog.cli.shell import job_parser, shell_parser
from catalog.delta.runs import COLUMNS, Status
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import RULES, Mode
from catalog.sql.stats import Stats

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
SHELL, JOBS, SCHEMAS = (ROOT / "docs" / f"{name}.md" for name in ("shell", "jobs", "schemas"))
PAGES = (ROOT / "README.md", *DOCS)
SCRIPTS = sorted(file.stem for file in (ROOT / "jobs").glob("*.py") if file.stem != "__init__")
WHEN = datetime(2024, 1, 31, tzinfo=UTC)

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
_IN_TABLE = re.compile(r"^\|.*\| `(strata [^`]+)` \|$", re.MULTILINE)
_SCRIPT = re.compile(r"(?:.*/)?jobs/(\w+)\.py")
_ENDS = re.compile(r"[|&;]+|[0-9]*[<>].*")


def blocks(page: Path, *languages: str) -> list[str]:
    """What stands in the page's fences of some languages."""
    found = _FENCED.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of each command line of the page, from the program or script on."""
    text = page.read_text(encoding="utf-8")
    sources = [
        *blocks(page, "console", "text", "sh"),
        *_INDENTED.findall(_FENCED.sub("", text)),
        *_IN_TABLE.findall(text),
    ]
    for source in sources:
        for line in source.replace("\\\n", " ").splitlines():
            if re.search(r"(^|\s)strata\s|jobs/\w+\.py", line):
                yield from _commands(shlex.split(line.replace(";", " ; "), comments=True))


def _commands(words: list[str]) -> Iterator[list[str]]:
    for start, word in enumerate(words):
        if word == "strata" or _SCRIPT.fullmatch(word):
            rest = words[start + 1 :]
            end = next((i for i, w in enumerate(rest) if _ENDS.fullmatch(w)), len(rest))
            yield [word, *rest[:end]]


def command_of(script: str) -> Command:
    """The command that a script of this name runs."""
    return BY_JOB[script.replace("_", "-")]


def reads(words: list[str]) -> bool:
    """True if the parser of the shell or of the job takes the words."""
    script = _SCRIPT.fullmatch(words[0])
    parser = job_parser(command_of(script[1])) if script else shell_parser()
    try:
        parser.parse_args(words[1:])
    except SystemExit as end:
        return not end.code  # --help and --version end, too
    return True


LINES = [(page.name, words) for page in PAGES for words in command_lines(page)]


@pytest.mark.parametrize(
    ("page", "words"), LINES, ids=[f"{page}: {shlex.join(words)}" for page, words in LINES]
)
def test_a_command_line_in_a_document_can_be_read(page: str, words: list[str]) -> None:
    assert reads(words)


def test_command_lines_are_found_where_documents_have_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Call `strata no-such` so:\n\n    strata init --location /x  # once\n\n"
        "| a | b | `strata stats` |\n\n"
        "```sh\n0 2 * * * etl cd /x && flock -n l run jobs/cleanup.py --grace 7d >> log 2>&1\n"
        "spark-submit \\\n    jobs/verify.py --since 0\n```\n\n"
        "```console\n$ strata sql 'SELECT 1' | head; strata nonsense\n```\n\n"
        "```python\nstrata = 1\n```\n"
    )
    found = list(command_lines(page))
    assert found == [
        ["jobs/cleanup.py", "--grace", "7d"],
        ["jobs/verify.py", "--since", "0"],
        ["strata", "sql", "SELECT 1"],
        ["strata", "nonsense"],
        ["strata", "init", "--location", "/x"],
        ["strata", "stats"],
    ]
    assert [reads(words) for words in found] == [True, True, True, False, True, True]


# --- docs/shell.md --------------------------------------------------------------------------------


def test_the_page_of_the_shell_has_every_command_with_its_summary_and_an_example() -> None:
    text = SHELL.read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"\n| `{command.name}` | {command.summary} | `strata {command.name}" in text


def test_the_page_of_the_shell_has_facts_and_tables_of_every_command() -> None:
    section = SHELL.read_text(encoding="utf-8").partition("| command | facts |")[2]
    listed = re.findall(r"^\| `([\w -]+)` \|", section.partition("\n\n")[0], re.MULTILINE)
    assert listed == [command.name for command in COMMANDS]
    assert f"`runs`: {', '.join(column.name for column in COLUMNS)} |" in section


def test_the_page_of_the_shell_has_every_exit_code() -> None:
    section = SHELL.read_text(encoding="utf-8").partition("\n## Exit codes\n")[2]
    listed = re.findall(r"^\| (\d+) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in Exit]


def shape(document: Any) -> Any:
    """The keys of a document as JSON has it, and what kind of value each has."""
    fixed = {key: type(value).__name__ for key, value in document.items() if key != "error"}
    return fixed | ({"error": shape(document["error"])} if "error" in document else {})


def test_json_examples_have_the_shape_that_the_shell_writes() -> None:
    out = io.StringIO()
    renderer = JsonRenderer("verify", out, io.StringIO())
    renderer.show(Answer())
    renderer.fail(InvalidInput("no", value=1))
    answer, error = (shape(json.loads(line)) for line in out.getvalue().splitlines())
    examples = [json.loads(text) for text in blocks(SHELL, "json")]
    assert {example["ok"] for example in examples} == {True, False}
    for example in examples:
        assert example["command"] in BY_NAME
        assert shape(example) == (answer if example["ok"] else error)


# --- docs/jobs.md ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_of_the_jobs_has_every_script_with_its_options(name: str) -> None:
    text, command = JOBS.read_text(encoding="utf-8"), command_of(name)
    section = text.partition(f"\n### {command.job_name}\n")[2]
    section = section.partition("\n### ")[0].partition("\n## ")[0]
    assert f"jobs/{name}.py" in section
    assert f'run_job("{command.job_name}", argv)' in (ROOT / "jobs" / f"{name}.py").read_text()
    table = text.partition("## Which job touches which table")[2].partition("\n## ")[0]
    assert f"\n| {command.job_name} |" in table
    common = text.partition("Options that all jobs have:")[2].partition("\n## ")[0]
    options = {word for a in job_parser(command)._actions for word in a.option_strings}
    assert [o for o in sorted(options - {"-h", "--help"}) if f"`{o}`" not in section + common] == []


def test_the_page_of_the_jobs_has_every_status_of_a_run() -> None:
    section = JOBS.read_text(encoding="utf-8").partition("| status |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [s.value for s in Status]


def test_the_page_of_the_jobs_has_every_metric_and_alerts_use_no_other(tmp_path: Path) -> None:
    file = tmp_path / "strata.prom"
    figures = dict.fromkeys(outcome._FIGURES, 1.0)
    stats = Stats(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, WHEN)
    run = RunOutcome("poll", "/data/meta", Exit.DONE, 1.0, figures)
    write_metrics(str(file), run, stats, WHEN)
    names = set(re.findall(r"^# TYPE (\w+) gauge$", file.read_text(), re.MULTILINE))
    text = JOBS.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(strata_\w+)` \|", text, re.MULTILINE)) == names
    (rules,) = (yaml.safe_load(block) for block in blocks(JOBS, "yaml"))
    used = {
        m for rule in rules["groups"][0]["rules"] for m in re.findall(r"strata_\w+", rule["expr"])
    }
    assert used
    assert used <= names


# --- docs/schemas.md ------------------------------------------------------------------------------

# A block of Python, marked if it needs Spark, and what it prints if that stands below it.
_SNIPPET = re.compile(
    r"^(<!-- needs a catalog -->\n)?```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_OF_SPARK = {"spark", "catalog", "cache"}


def test_the_python_of_the_page_on_schemas_runs_and_prints_what_the_page_says() -> None:
    text = SCHEMAS.read_text(encoding="utf-8")
    snippets = _SNIPPET.findall(text)
    assert len(snippets) == len(blocks(SCHEMAS, "python"))
    assert sum(not marked for marked, _, _ in snippets) > 6
    names: dict[str, Any] = {}
    for number, (marked, code, printed) in enumerate(snippets, 1):
        tree = parse(code)
        used = {node.id for node in walk(tree) if isinstance(node, Name)}
        # Only what uses a catalog may be left out, and only that is.
        assert bool(marked) == bool(used & _OF_SPARK), f"snippet {number}"
        if not marked:
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(tree, f"{SCHEMAS.name}, snippet {number}", "exec"), names)
            assert out.getvalue() == printed


def test_the_page_on_schemas_has_every_kind_of_change_with_its_consequence() -> None:
    section = SCHEMAS.read_text(encoding="utf-8").partition("| change | backward |")[2]
    listed = section.partition("\n\n")[0].splitlines()[2:]
    says = {True: "yes", False: "no"}
    assert listed == [
        f"| {kind} | {says[backward]} | {says[forward]} | {reason} |"
        for kind, (backward, forward, reason) in RULES.items()
    ]


def test_the_page_on_schemas_has_every_mode() -> None:
    section = SCHEMAS.read_text(encoding="utf-8").partition("| mode |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*Mode]


def test_the_table_of_type_changes_is_what_the_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "type_changes.py"))
    page = SCHEMAS.read_text(encoding="utf-8")
    assert script["table"]() in page
    assert script["rewritten"](page) == page
    with pytest.raises(ValueError, match="no place for the table"):
        script["rewritten"]("")


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_python_and_json_in_the_pages_can_be_read(page: Path) -> None:
    for number, block in enumerate(blocks(page, "python")):
        compile(block, f"{page.name}, block {number}", "exec")
    for block in blocks(page, "json"):
        json.loads(block)


LINKED = (*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_in_the_documents_lead_somewhere(page: Path) -> None:
    broken = [target for target in links(page) if not leads_somewhere(page, target)]
    assert broken == []


def test_every_page_is_linked_from_the_readme_or_from_another_page() -> None:
    linked = {
        (page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)
    }
    assert {page.name for page in DOCS if page.resolve() not in linked} == set()


def links(page: Path) -> list[str]:
    """The targets of a document's links to files and headings."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return [each for each in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in each]


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    return file.exists() and (not anchor or anchor in anchors(file.read_text(encoding="utf-8")))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
