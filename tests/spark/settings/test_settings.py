"""Settings in the catalog: stored for everybody, used by verbs, taken over from a file once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Settings
from catalog.errors import InvalidSetting, ReadOnly
from catalog.settings.model import Source
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.spark.test_shell import Strata, strata
from tests.unit.builders import segment

__all__ = ["strata"]

Open = Callable[..., Catalog]
DAY = timedelta(days=1)


def test_a_stored_setting_is_what_verbs_take_for_granted(
    spark: SparkSession, open_catalog: Open
) -> None:
    catalog, other = open_catalog(actor="ann"), open_catalog()
    assert other.settings.get("cleanup.grace") == DAY
    catalog.publish([segment("orders/1")])
    catalog.drop(["orders/1"])
    assert catalog.cleanup().retired == ()
    done = catalog.settings.set("cleanup.grace", timedelta(0), reason="a test")
    assert done.changed == ("cleanup.grace",)
    assert catalog.settings.set("cleanup.grace", "0").commit_id == ""  # the same again
    assert len(catalog.cleanup().retired) == 1
    # Another process sees it when it opens the catalog, or when it looks again.
    assert other.settings.get("cleanup.grace") == DAY
    other.settings.reload()
    assert other.settings.get("cleanup.grace") == timedelta(0)
    given = open_catalog(settings=Settings(given={"cleanup.grace": "2d"}, deadline=30.0))
    assert given.settings.get("cleanup.grace") == 2 * DAY
    assert given.settings.get("deadline") == 30.0
    catalog.settings.set("app.team", {"name": "data"})
    catalog.settings.set("cleanup.grace", "3d", actor="bob")
    listed = {each.name: each for each in catalog.settings.list()}
    assert (listed["cleanup.grace"].value, listed["cleanup.grace"].source) == (
        3 * DAY,
        Source.STORED,
    )
    assert listed["cleanup.grace"].changed_by == "bob"
    assert listed["cleanup.limit"].source is Source.DEFAULT
    catalog.inspect.create_views()
    rows = spark.sql("SELECT name, value, revision, changed_by FROM settings ORDER BY name")
    assert [tuple(row) for row in rows.collect()] == [
        ("app.team", '{"name": "data"}', 1, "ann"),
        ("cleanup.grace", '"3d"', 2, "bob"),
    ]
    assert catalog.settings.unset("cleanup.grace").changed == ("cleanup.grace",)
    assert catalog.settings.unset("cleanup.grace").commit_id == ""
    assert catalog.settings.get("cleanup.grace") == DAY
    told = catalog.audit.history(9, key="cleanup.grace").collect()
    assert [(row["verb"], row["change"]) for row in reversed(told)] == [
        ("set", "insert"),
        ("set", "update"),
        ("unset", "delete"),
    ]
    version = catalog.version
    for name, value in (("cleanup.grac", 1), ("cleanup.limit", 0), ("secret.key", "hunter2")):
        with pytest.raises(InvalidSetting):
            catalog.settings.set(name, value)
    with pytest.raises(ReadOnly):
        open_catalog(read_only=True).settings.set("cleanup.limit", 5)
    assert catalog.version == version
    assert_promises(catalog)


def test_a_file_is_taken_over_once_also_if_two_are_the_first(
    open_catalog: Open, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    free = Settings(file_lock=False)
    one = open_catalog(settings=free, environment=gate.between("adopt.planned"))
    two = open_catalog(settings=free)
    side = Side(lambda: one.settings.adopt({"cleanup.limit": 5, "deadline": 60}, "/one.toml"))
    gate.await_reached()
    done = two.settings.adopt({"cleanup.limit": 7}, "/two.toml")
    gate.open()
    assert done.changed == ("cleanup.limit", "config.file")
    assert (side.result.changed, side.result.commit_id) == ((), "")
    assert one.settings.get("cleanup.limit") == 7
    assert one.settings.get("config.file") == "/two.toml"
    assert_promises(two)


@pytest.mark.stress
def test_the_shell_takes_a_file_over_and_goes_by_what_is_stored_from_then_on(
    strata: Strata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "strata.toml"
    file.write_text('[settings]\n"cleanup.grace" = "7d"\n[settings.cleanup]\nlimit = 5\n')
    monkeypatch.chdir(tmp_path)

    def values(*argv: str) -> dict[str, tuple[str, str]]:
        rows = strata("settings", "list", *argv)[1]["tables"]["settings"]
        return {row["name"]: (row["value"], row["source"]) for row in rows}

    assert strata("init", "--session", "s-1")[0] == 0
    found = values()
    assert found["cleanup.grace"] == ("7d", "stored")
    assert found["config.file"] == (str(file), "stored")
    file.write_text('[settings]\n"cleanup.grace" = "9d"\n')
    assert strata("settings", "set", "cleanup.limit", "6")[1]["facts"]["changed"] == 1
    assert values()["cleanup.grace"] == ("7d", "stored")
    monkeypatch.setenv("STRATA_CLEANUP_GRACE", "2d")
    assert values()["cleanup.grace"] == ("2d", "given")
    monkeypatch.delenv("STRATA_CLEANUP_GRACE")
    assert strata("settings", "get", "cleanup.limit")[1]["facts"]["value"] == "6"
    assert strata("settings", "unset", "cleanup.limit")[0] == 0
    assert strata("settings", "get", "cleanup.limit")[1]["facts"]["source"] == "default"
    code, answer = strata("settings", "set", "cleanup.grace", "soon")
    assert (code, answer["error"]["condition"]) == (2, "INVALID_SETTING")
    answer = strata("audit", "history", "--since", "0", "--limit", "9")[1]
    (commit,) = answer["tables"]["commits"][-2:-1]
    assert (commit["verb"], commit["sessions"]) == ("adopt", ["s-1"])
    (change,) = strata("audit", "history", "config.file")[1]["tables"]["changes"]
    assert (change["change"], change["actors"]) == ("insert", ["ann"])
    assert strata("audit", "roll", "--dry-run")[1]["facts"]["versions_rolled"] > 3
