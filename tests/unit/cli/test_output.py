"""The renderers of an answer: plain text, JSON, tables; nothing in them controls a terminal."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest

from catalog.cli.command import Answer, Table, plain
from catalog.cli.output import (
    JsonRenderer,
    PlainRenderer,
    ProgressLines,
    Renderer,
    RichRenderer,
    estimate,
    renderer,
    visible,
)
from catalog.errors import GaveUp, SegmentConflict
from catalog.progress import Step

WHEN = datetime(2024, 1, 31, 12, tzinfo=UTC)
FINGERPRINT = "ea4267addde793de27889cad038cada3"
ANSWER = Answer(
    facts={"version": 3, "holds": True, "commit_id": None},
    tables={
        "segments": Table(
            ("segment_id", "fingerprint", "num_rows", "changed_at", "names"),
            (
                ("orders/[red]1", FINGERPRINT, 10, WHEN, ["a", "b"]),
                ("evil/\x1b[31m\t\n", None, None, None, None),
            ),
            more=True,
            brief=("segment_id", "fingerprint", "num_rows", "changed_at", "names"),
        )
    },
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(kind: type[Renderer], answer: Answer = ANSWER) -> tuple[str, str]:
    out, err = Terminal(), io.StringIO()
    kind("segments", out, err).show(answer)
    return out.getvalue(), err.getvalue()


def test_plain_text_has_a_line_for_each_fact_and_row_with_tabs_between() -> None:
    out, err = shown(PlainRenderer)
    assert out.splitlines() == [
        "version\t3",
        "holds\ttrue",
        "commit_id\t",
        "segment_id\tfingerprint\tnum_rows\tchanged_at\tnames",
        f'orders/[red]1\t{FINGERPRINT}\t10\t2024-01-31T12:00:00Z\t["a", "b"]',
        "evil/\\u001b[31m\\u0009\\u000a\t\t\t\t",
    ]
    assert "2 segments shown, there are more: raise --limit." in err


def test_json_has_the_documented_shape_on_one_line() -> None:
    out, _ = shown(JsonRenderer)
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "command": "segments",
        "ok": True,
        "found": False,
        "facts": {"version": 3, "holds": True, "commit_id": None},
        "tables": {
            "segments": [
                {
                    "segment_id": "orders/[red]1",
                    "fingerprint": FINGERPRINT,
                    "num_rows": 10,
                    "changed_at": "2024-01-31T12:00:00Z",
                    "names": ["a", "b"],
                },
                {
                    "segment_id": "evil/\x1b[31m\t\n",
                    "fingerprint": None,
                    "num_rows": None,
                    "changed_at": None,
                    "names": None,
                },
            ]
        },
        "more": ["segments"],
    }


def test_a_terminal_gets_tables_and_nothing_in_them_is_markup_or_a_control_sequence() -> None:
    out, _ = shown(RichRenderer)
    assert "orders/[red]1" in out
    assert "\x1b[31m" not in out
    assert "\\u001b" in out
    assert f"{FINGERPRINT[:12]}…" in out
    assert FINGERPRINT not in out
    assert "12:00:00Z" in out


def test_an_empty_table_is_a_sentence_on_a_terminal() -> None:
    out, _ = shown(RichRenderer, Answer(tables={"open_runs": Table(("a",), ())}))
    assert "No open runs." in out


def test_only_the_columns_that_a_terminal_has_room_for_are_drawn() -> None:
    table = Table(("a", "b", "c"), (("one", "two", "three"),), brief=("c", "a"))
    out, _ = shown(RichRenderer, Answer(tables={"rows": table}))
    assert "two" not in out
    assert out.index("three") < out.index("one")


def test_auto_is_a_table_on_a_terminal_and_plain_text_otherwise() -> None:
    assert isinstance(renderer("auto", "x", Terminal()), RichRenderer)
    assert isinstance(renderer("auto", "x", io.StringIO()), PlainRenderer)
    assert isinstance(renderer("table", "x", io.StringIO()), RichRenderer)
    assert isinstance(renderer("plain", "x", Terminal()), PlainRenderer)
    assert isinstance(renderer("json", "x", Terminal()), JsonRenderer)


def test_without_rich_there_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.cli.output._rich_is_here", lambda: False)
    assert isinstance(renderer("table", "x", Terminal()), PlainRenderer)


def test_an_error_names_its_condition_on_standard_error() -> None:
    out, err = io.StringIO(), io.StringIO()
    PlainRenderer("publish", out, err).fail(SegmentConflict("Published \x1b already.", count=1))
    assert out.getvalue() == ""
    assert err.getvalue() == "strata: [SEGMENT_CONFLICT] Published \\u001b already.\n"


def test_an_error_as_json_says_whether_trying_again_can_help() -> None:
    out = io.StringIO()
    JsonRenderer("publish", out, io.StringIO()).fail(GaveUp("Waited.", waited=1.5))
    JsonRenderer("publish", out, io.StringIO()).fail(ValueError("odd"))
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first == {
        "command": "publish",
        "ok": False,
        "error": {
            "condition": "GAVE_UP",
            "message": "Waited.",
            "retryable": True,
            "values": {"waited": 1.5},
        },
    }
    assert second["error"]["condition"] == "ValueError"
    assert second["error"]["retryable"] is False


@pytest.mark.parametrize("text", ["\x1b", "\r", "\x9b", "\ud800", "\x00"])
def test_what_could_steer_a_terminal_is_spelled_out(text: str) -> None:
    assert visible(f"a{text}b").startswith("a\\u")
    assert visible("schön 🙂") == "schön 🙂"


def test_values_without_a_json_form_become_texts() -> None:
    assert plain({"a": (1, {2: WHEN})}) == {"a": [1, {"2": "2024-01-31T12:00:00Z"}]}
    assert plain(object).startswith("<class")
    assert plain([float("nan"), float("inf"), 1.5]) == ["nan", "inf", 1.5]
    assert plain(datetime(2024, 1, 31, 12)) == "2024-01-31T12:00:00"  # no zone, no claim


# --- progress -------------------------------------------------------------------------------------


def test_progress_in_lines_comes_every_ten_seconds_with_an_estimate() -> None:
    now = 0.0
    err = io.StringIO()
    lines = ProgressLines(err, clock=lambda: now)
    for now in (1.0, 10.0, 12.0, 20.0):
        lines(Step("retire", int(now), 40))
    assert err.getvalue().splitlines() == [
        "retire: 10 of 40, about 30 s left",
        "retire: 20 of 40, about 20 s left",
    ]


def test_an_estimate_begins_anew_with_other_work() -> None:
    now = 0.0
    err = io.StringIO()
    lines = ProgressLines(err, clock=lambda: now)
    lines(Step("restore", 5, 10))
    now = 600.0
    lines(Step("retire", 0, 100))
    now = 610.0
    lines(Step("retire", 10, 100))
    assert err.getvalue().splitlines()[-1] == "retire: 10 of 100, about 90 s left"


def test_there_is_no_estimate_where_nothing_is_known() -> None:
    assert estimate(Step("x", 0, 10), 5) == ""
    assert estimate(Step("x", 10, 10), 5) == ""
    assert estimate(Step("x", 1, 61), 10) == ", about 10 min left"
