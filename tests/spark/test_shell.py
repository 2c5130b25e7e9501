"""The shell and the jobs through their `main`, in the session of the tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Settings
from catalog.cli import shell
from catalog.cli.shell import run_job
from catalog.errors import InvalidInput, InvalidSegment
from catalog.segments.manifest import few_segments, read_manifest
from tests.spark.files import broken, parquet
from tests.unit.builders import segment

MANIFEST = """\
segment_id,schema,num_rows,size_bytes,location,starts_at,ends_at
orders/1,"id BIGINT NOT NULL, price DECIMAL(10,2)",10,100,/x/1,{}T00:00:00Z,{}T00:00:00Z
orders/2,"id BIGINT NOT NULL, price DECIMAL(10,2)",20,,,,
clicks/1,url STRING,5,,,,
""".format("2024-01-01", "2024-01-02")

Strata = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def strata(spark: SparkSession, location: str, capsys: pytest.CaptureFixture[str]) -> Strata:
    """Runs a command of the shell; gives its exit code and the last line of JSON."""

    def run(*argv: str, job: bool = False) -> tuple[int, dict[str, Any]]:
        options = ["--location", location, "--actor", "ann", "--output", "json"]
        if job:
            code = run_job(argv[0], [*argv[1:], *options], lambda *_: nullcontext(spark))
        else:
            code = shell.main([*argv, *options], lambda *_: nullcontext(spark))
        lines = capsys.readouterr().out.splitlines()
        if "--every" not in argv:
            assert len(lines) == 1, lines  # an answer, and nothing else
        return code, json.loads(lines[-1])

    return run


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    file = tmp_path / "segments.csv"
    file.write_text(MANIFEST)
    return str(file)


@pytest.mark.exact
@pytest.mark.connect
def test_a_catalog_is_made_filled_looked_at_and_emptied_from_the_shell(
    strata: Strata, manifest: str, tmp_path: Path
) -> None:
    code, answer = strata("segments")
    assert code == 2
    assert answer["error"]["condition"] == "CATALOG_NOT_FOUND"

    assert strata("init")[1] == strata("init")[1]  # the second one finds it there
    code, answer = strata("publish", manifest, "--reason", "daily load")
    assert code == 0
    facts = answer["facts"]
    assert (facts["inserted"], facts["existing"], facts["schemas"]) == (3, 0, 2)
    assert strata("publish", manifest)[1]["facts"]["existing"] == 3

    answer = strata("segments", "--datasource", "orders", "--limit", "1")[1]
    (row,) = answer["tables"]["segments"]
    assert (row["segment_id"], row["num_rows"], row["starts_at"], row["changed_by"]) == (
        "orders/1",
        10,
        "2024-01-01T00:00:00Z",
        "ann",
    )
    assert answer["more"] == ["segments"]
    by_schema = strata("segments", "--fingerprint", row["fingerprint"][:6].upper())[1]
    assert len(by_schema["tables"]["segments"]) == 2

    answer = strata("datasources")[1]
    assert [(r["datasource"], r["num_rows"]) for r in answer["tables"]["datasources"]] == [
        ("clicks", 5),
        ("orders", 30),
    ]
    code, answer = strata("schema-of", "clicks/1", "orders/9", "orders/1")
    assert code == 1
    assert answer["facts"]["missing"] == ["orders/9"]
    assert [r["ddl"] for r in answer["tables"]["segments"]] == [
        "url STRING",
        "id BIGINT NOT NULL, price DECIMAL(10,2)",
    ]
    query = "SELECT segment_id, schema_of(segment_id) AS ddl FROM segments ORDER BY 1 LIMIT 1;"
    assert strata("sql", query)[1]["tables"]["rows"] == [
        {"segment_id": "clicks/1", "ddl": "url STRING"}
    ]

    assert strata("drop", "--datasource", "clicks", "--dry-run")[1]["facts"]["dropped"] == 1
    assert strata("drop", "clicks/1", "clicks/9")[1]["facts"] | {"commit_id": ""} == {
        "version": 2,
        "commit_id": "",
        "dropped": 1,
        "absent": 1,
        "dry_run": False,
        "retries": 0,
    }
    assert (
        strata("segments", "--as-of", "1")[1]["tables"]["segments"][0]["segment_id"] == "clicks/1"
    )
    orphans = strata("schemas", "--orphans")[1]["tables"]["schemas"]
    assert [r["ddl"] for r in orphans] == ["url STRING"]

    changes = strata("audit", "changes", "0", "1")[1]["tables"]["changes"]
    assert {row["change"] for row in changes} == {"added"}
    (loaded, dropped) = strata("audit", "growth", "0")[1]["tables"]["growth"]
    assert (loaded["added"], dropped["removed"], dropped["rows"]) == (3, 1, "-5")
    facts = strata("stats")[1]["facts"]
    assert (facts["segments"], facts["rows"], facts["orphans"]) == (2, 30, 1)
    assert strata("retention", "rules")[1]["tables"]["retention_rules"] == []
    commits = strata("audit", "history", "--limit", "2")[1]["tables"]["commits"]
    assert [(c["version"], c["verb"], c["actors"]) for c in commits] == [
        (2, "drop", ["ann"]),
        (1, "publish", ["ann"]),
    ]
    assert commits[1]["reasons"] == ["daily load"]

    page = tmp_path / "report.html"
    code, answer = strata("report", "--html", str(page))
    assert code == 0
    assert answer["facts"]["segments"] == 2
    assert answer["facts"]["problems"] == 0
    text = page.read_text()
    assert "orders" in text
    assert "daily load" in text
    assert "publish" in text


def test_a_job_is_recorded_and_its_commits_name_the_run(
    strata: Strata, manifest: str, catalog: Catalog, tmp_path: Path
) -> None:
    metrics = tmp_path / "strata.prom"
    assert strata("publish", manifest, "--metrics-file", str(metrics), job=True)[0] == 0
    assert strata("publish", "nowhere.csv", "--metrics-file", str(metrics), job=True)[0] == 2
    code, answer = strata("verify", "--since", "0", job=True)
    assert (code, answer["facts"]) == (0, {"version": 1, "since": 0, "holds": True})

    runs = {(r["job"], r["status"]): r for r in catalog.audit.runs().toArrow().to_pylist()}
    assert set(runs) == {("publish", "done"), ("publish", "failed"), ("verify", "done")}
    done, failed = runs["publish", "done"], runs["publish", "failed"]
    assert (done["version_before"], done["version_after"], done["actor"]) == (0, 1, "ann")
    assert json.loads(done["arguments"])["manifest"] == manifest
    assert dict(done["figures"])["inserted"] == 3
    assert done["started_at"] < done["ended_at"] == done["seen_at"]
    assert (failed["error_condition"], failed["version_after"]) == ("INVALID_INPUT", 1)
    assert "nowhere.csv" in failed["error_message"]
    (commit,) = catalog.audit.history().where("verb = 'publish'").collect()
    assert commit["runs"] == [done["run_id"]]

    text = metrics.read_text()
    assert 'strata_run_exit_code{command="publish"' in text
    assert f'strata_segments{{command="publish",location="{catalog.location}"}} 3.0' in text
    assert "strata_run_last_success_timestamp_seconds" in text


def test_what_only_reads_is_recorded_by_jobs_and_by_the_shell_if_wanted(
    strata: Strata, catalog: Catalog
) -> None:
    catalog.publish([segment()])
    strata("verify")
    assert catalog.audit.runs().count() == 0
    strata("verify", "--record")
    strata("poll", "--no-record", job=True)
    assert [r["job"] for r in catalog.audit.runs().collect()] == ["verify"]


def test_verify_finds_what_somebody_wrote_by_other_means(
    strata: Strata, catalog: Catalog, spark: SparkSession
) -> None:
    catalog.publish([segment("orders/1")])
    table = catalog.location.table("entries")
    spark.sql(f"UPDATE {table} SET num_rows = 99 WHERE kind = 'segment'").collect()
    code, answer = strata("verify")
    assert code == 1
    assert answer["found"] is True
    (violation,) = answer["tables"]["violations"]
    assert (violation["promise"], violation["count"]) == ("I5", 1)
    assert violation["example"]["key"] == "orders/1"


def test_a_poll_prints_what_changed_and_goes_on_from_the_last_one(
    strata: Strata, catalog: Catalog
) -> None:
    catalog.publish([segment("orders/1"), segment("orders/2")])
    code, answer = strata("poll", "--since", "last")
    assert (code, answer["error"]["condition"]) == (2, "INVALID_INPUT")
    assert strata("poll", job=True)[1]["facts"] == {
        "before": 1,
        "after": 1,
        "added": 0,
        "removed": 0,
        "changed": 0,
    }
    catalog.drop(["orders/1"])
    catalog.publish([segment("orders/2", "id STRING")], on_existing="replace")
    code, answer = strata("poll", "--since", "last", "--every", "0.1", "--polls", "2", job=True)
    assert answer["facts"]["before"] == 3  # the second poll goes on where the first one ended
    answer = strata("poll", "--since", "1")[1]
    assert answer["facts"] == {"before": 1, "after": 3, "added": 0, "removed": 1, "changed": 1}
    changes = [(r["version"], r["change"], r["key"]) for r in answer["tables"]["changes"]]
    assert (2, "removed", "orders/1") in changes
    assert (3, "changed", "orders/2") in changes
    last = catalog.audit.runs().orderBy("started_at", ascending=False).first()
    assert last is not None
    assert (last["figures"]["polls"], last["figures"]["changed"]) == (2.0, 1.0)
    assert strata("poll", "--since", "99")[0] == 2


def test_an_interrupt_ends_with_130_and_is_recorded(
    strata: Strata, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        catalog.publish([segment("orders/1")])  # after what was shown
        raise KeyboardInterrupt

    monkeypatch.setattr("catalog.cli.commands.audit.sleep", interrupt)
    code, answer = strata("poll", "--every", "1", job=True)
    assert code == 130
    assert answer["error"]["condition"] == "INTERRUPTED"
    (run,) = catalog.audit.runs().collect()
    assert (run["status"], run["error_condition"]) == ("interrupted", "INTERRUPTED")
    # The next one goes on after what was shown, not after what was there when it ended.
    assert strata("poll", "--since", "last", job=True)[1]["facts"]["added"] == 1


def test_a_run_that_gave_up_ends_with_3(strata: Strata, manifest: str, catalog: Catalog) -> None:
    """Somebody else holds the lock of the table for longer than the run waits."""
    from catalog.delta.location import TableLock
    from catalog.environment import Deadline

    lock = TableLock.of(Path(str(catalog.location)) / "entries")
    with lock.held(Deadline(5)):
        code, answer = strata("publish", manifest, "--deadline", "0.5")
    assert code == 3
    assert answer["error"] | {"message": "", "values": {}} == {
        "condition": "GAVE_UP",
        "message": "",
        "retryable": True,
        "values": {},
    }
    assert [r["status"] for r in catalog.audit.runs().collect()] == ["gave_up"]


@pytest.mark.stress
def test_cleanup_and_maintain_say_what_they_did(strata: Strata, catalog: Catalog) -> None:
    for number in range(6):
        catalog.publish([segment(f"orders/{number}", f"c{number} INT")])
    catalog.drop(["orders/0"])
    answer = strata("cleanup", "--grace", "0", "--dry-run")[1]
    assert (answer["facts"]["retired"], answer["facts"]["dry_run"]) == (1, True)
    answer = strata("cleanup", "--grace", "0")[1]
    assert [c["why"] for c in answer["tables"]["changes"]] == ["nothing refers to it"]

    code, answer = strata("maintain", "--retain", "1d")
    assert (code, answer["error"]["condition"]) == (2, "RETENTION_TOO_SHORT")
    answer = strata("maintain", "--no-vacuum", "--dry-run")[1]
    assert [(p["kind"], p["after"]) for p in answer["tables"]["partitions"]] == [("segment", None)]
    answer = strata("maintain", "--retain", "14d")[1]
    assert answer["facts"]["retention_seconds"] == 14 * 86400
    assert [(p["before"], p["after"]) for p in answer["tables"]["partitions"]] == [(5, 1)]
    assert {v["table"] for v in answer["tables"]["vacuumed"]} == {"entries", "runs"}
    report = catalog.verify(since=0)
    assert report.ok, report


def test_a_dry_run_leaves_no_trace(strata: Strata, catalog: Catalog) -> None:
    for command in (["cleanup"], ["maintain"], ["drop", "--datasource", "orders"]):
        assert strata(*command, "--dry-run")[1]["facts"]["dry_run"] is True
    assert (catalog.version, catalog.audit.runs().count()) == (0, 0)


def test_a_table_of_somebody_else_is_not_taken_for_the_runs(
    strata: Strata, catalog: Catalog, spark: SparkSession
) -> None:
    theirs = catalog.location.table("runs")
    spark.sql(f"CREATE TABLE {theirs} (id INT) USING DELTA").collect()
    code, answer = strata("cleanup")
    assert (code, answer["error"]["condition"]) == (2, "NOT_A_CATALOG")
    code, answer = strata("maintain")
    assert (code, answer["error"]["condition"]) == (2, "NOT_A_CATALOG")
    assert strata("cleanup", "--no-record")[0] == 0


@pytest.mark.stress
def test_a_version_that_is_no_longer_kept_is_an_expected_error(
    strata: Strata, catalog: Catalog
) -> None:
    for number in range(5):
        catalog.publish([segment(f"orders/{number}")])
    catalog.maintain(retain=timedelta(0), cut_off_pollers=True)
    for command in (
        ["verify", "--since", "0"],
        ["segments", "--as-of", "1"],
        ["poll", "--since", "1"],
    ):
        code, answer = strata(*command)
        assert (code, answer["error"]["condition"]) == (2, "VERSION_NOT_FOUND"), command


def test_two_columns_of_one_name_are_refused(strata: Strata, catalog: Catalog) -> None:
    rows = strata("sql", "SELECT 1 AS a, 2 AS b")[1]["tables"]["rows"]
    assert rows == [{"a": 1, "b": 2}]
    assert strata("sql", "SELECT 1 AS a, 2 AS a")[0] == 2
    assert strata("sql", "SELECT double('NaN') AS x")[1]["tables"]["rows"] == [{"x": "nan"}]


def test_sql_reads_only(strata: Strata, catalog: Catalog) -> None:
    catalog.publish([segment()])
    table = catalog.location.table("entries")
    for statement in (f"DELETE FROM {table}", f"DROP TABLE {table}", "SELEC 1", "", "SELECT 1; x"):
        code, answer = strata("sql", statement)
        assert (code, answer["error"]["condition"]) == (2, "INVALID_INPUT"), statement
    assert catalog.segments().count() == 1
    assert strata("sql", "DESCRIBE segments")[0] == 0


# --- schemas from the data ------------------------------------------------------------------------


def test_files_are_published_with_what_they_say_and_what_is_wrong_is_listed(
    strata: Strata,
    spark: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "lake"
    paths = [parquet(data / f"{n}.parquet", "id BIGINT, note STRING", n) for n in (1, 2, 3)]
    bad = [broken(data / f"bad{n}.parquet") for n in (1, 2)]
    command = ["publish-files", "orders", f"{data}/*.parquet"]

    code, answer = strata(*command, "--dry-run")
    assert (code, answer["facts"]["published"], answer["facts"]["dry_run"]) == (0, 5, True)
    assert (catalog.version, catalog.audit.runs().count()) == (0, 0)

    code, answer = strata(*command, "--limit", "1", "--reason", "daily load")
    assert (code, answer["found"], answer["more"]) == (1, True, ["broken"])
    (problem,) = answer["tables"]["broken"]
    assert problem["path"].endswith("/lake/bad1.parquet")
    assert "bad1.parquet" in problem["reason"]
    assert answer["facts"] == {
        "version": 1, "files": 5, "published": 3, "replaced": 0, "unchanged": 0, "waiting": 0,
        "changed": 0, "missing": 0, "dropped": 0, "broken": 2, "dry_run": False,
    }  # fmt: skip
    shown = strata("schema-of", "orders/2.parquet")[1]["tables"]["segments"]
    assert [(row["num_rows"], row["ddl"]) for row in shown] == [(2, "id BIGINT, note STRING")]

    for path in bad + paths[:1]:
        Path(path).unlink()
    parquet(Path(paths[1]), "id BIGINT", 20)
    command.append("--no-record")
    code, answer = strata(*command)
    facts = answer["facts"]
    assert (code, facts["unchanged"], facts["changed"], facts["missing"]) == (0, 1, 1, 1)
    assert (facts["replaced"], facts["dropped"], facts["version"]) == (0, 0, 1)
    assert answer["tables"]["changed"] == [{"segment_id": "orders/2.parquet"}]
    assert answer["tables"]["missing"] == [{"segment_id": "orders/1.parquet"}]
    people = [*command, "--dry-run", "--location", str(catalog.location), "--output", "table"]
    assert shell.main(people, lambda *_: nullcontext(spark)) == 0
    advice = " ".join(capsys.readouterr().out.split())
    assert "--replace-changed publishes them again" in advice
    assert "--remove-missing drops them" in advice
    answer = strata(*command, "--remove-missing", "--replace-changed", job=True)[1]
    assert (answer["facts"]["replaced"], answer["facts"]["dropped"]) == (1, 1)
    left = strata("segments")[1]["tables"]["segments"]
    assert [(row["segment_id"], row["num_rows"], row["inferred"]) for row in left] == [
        ("orders/2.parquet", 20, False),
        ("orders/3.parquet", 3, False),
    ]

    code, answer = strata("publish-files", "orders", f"{data}/*.orc", "--no-record")
    assert (code, answer["error"]["condition"]) == (2, "INVALID_INPUT")
    (run,) = catalog.audit.runs().collect()
    assert (run["job"], run["status"], run["figures"]["broken"]) == ("publish-files", "found", 2.0)
    assert catalog.verify(since=0).ok


def test_segments_come_without_a_schema_and_a_backfill_finds_it_or_says_why_not(
    strata: Strata, catalog: Catalog, tmp_path: Path
) -> None:
    known = parquet(tmp_path / "1.parquet", "id BIGINT, note STRING", 7)
    bad = broken(tmp_path / "2.parquet")
    manifest = tmp_path / "late.csv"
    manifest.write_text(
        "segment_id,schema,num_rows,location\n"
        f"orders/1,,,{known}\norders/2,,,{bad}\nclicks/1,,5,{bad}\norders/3,id INT,1,\n"
    )
    assert strata("publish", str(manifest), "--no-record")[1]["facts"]["inserted"] == 4
    waiting = strata("segments", "--without-schema")[1]["tables"]["segments_without_schema"]
    assert [(row["segment_id"], row["num_rows"], row["quarantined"]) for row in waiting] == [
        ("clicks/1", 5, False),
        ("orders/1", None, False),
        ("orders/2", None, False),
    ]
    code, answer = strata("backfill", "--datasource", "orders", "--dry-run")
    assert (code, answer["facts"]["waiting"], answer["facts"]["left"]) == (0, 2, 2)
    assert catalog.version == 1

    metrics = str(tmp_path / "strata.prom")
    argv = ["backfill", "--datasource", "orders", "--metrics-file", metrics]
    code, answer = strata(*argv, job=True)
    assert (code, answer["found"]) == (1, True)
    facts = answer["facts"]
    assert {name: facts[name] for name in ("waiting", "completed", "quarantined", "left")} == {
        "waiting": 2, "completed": 1, "quarantined": 1, "left": 0,
    }  # fmt: skip
    assert 0 < facts["per_second"] <= 1 / facts["seconds"] + 0.01
    (told,) = answer["tables"]["quarantined"]
    assert (told["segment_id"], told["location"], told["attempts"]) == ("orders/2", bad, 1)
    assert "strata_backfill_completed" in Path(metrics).read_text()
    assert 'strata_segments_quarantined{command="backfill"' in Path(metrics).read_text()

    listed = strata("segments", "--without-schema", "--datasource", "orders")[1]["tables"]
    (row,) = listed["segments_without_schema"]
    assert {name: row[name] for name in ("segment_id", "reason", "attempts", "retry_at")} == {
        name: told[name] for name in ("segment_id", "reason", "attempts", "retry_at")
    }
    # What is in quarantine rests, so a run that looks for the rest finds nothing to tell of.
    code, answer = strata("backfill", "--datasource", "orders", "--no-record")
    assert (code, answer["facts"]["waiting"], answer["facts"]["resting"]) == (0, 0, 1)
    parquet(Path(bad), "id BIGINT", 9)
    code, answer = strata("backfill", "--retry-quarantined", "--limit", "2", "--no-record")
    assert (code, answer["facts"]["completed"]) == (1, 1)  # clicks/1 was said to have five rows
    assert "published with 5 rows" in answer["tables"]["quarantined"][0]["reason"]
    shown = strata("schema-of", "orders/1", "orders/2", "clicks/1")[1]["tables"]["segments"]
    assert [(row["num_rows"], row["ddl"]) for row in shown] == [
        (7, "id BIGINT, note STRING"),
        (9, "id BIGINT"),
        (5, None),
    ]

    (run,) = catalog.audit.runs().collect()
    assert (run["job"], run["status"]) == ("backfill", "found")
    assert set(run["figures"]) == {
        *("completed", "overtaken", "claimed", "quarantined", "resting", "left"),
        *("per_second", "seconds", "conflicts_retried"),
    }
    assert json.loads(run["arguments"])["datasource"] == ["orders"]
    assert catalog.verify(since=0).ok


# --- manifests ------------------------------------------------------------------------------------


@pytest.mark.stress
def test_the_same_manifest_in_three_formats_gives_the_same_segments(
    spark: SparkSession, open_catalog: Callable[..., Catalog], tmp_path: Path, manifest: str
) -> None:
    frame = read_manifest(spark, manifest)
    frame.write.parquet(str(tmp_path / "m.parquet"))
    frame.write.json(
        str(tmp_path / "m.jsonl"), ignoreNullFields=True, timestampFormat="yyyy-MM-dd'T'HH:mm:ssXXX"
    )
    catalog = open_catalog()
    assert catalog.publish(frame).inserted == 3
    assert catalog.publish(read_manifest(spark, str(tmp_path / "m.parquet"))).existing == 3
    assert catalog.publish(read_manifest(spark, str(tmp_path / "m.jsonl"))).existing == 3


def test_a_schema_in_a_json_manifest_may_be_an_object(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "m.json"
    schema = json.loads(segment("a/1", "id BIGINT, at TIMESTAMP").schema.struct().json())
    file.write_text(json.dumps({"segment_id": "a/1", "schema": schema, "num_rows": 1}))
    result = catalog.publish(read_manifest(spark, str(file)))
    assert result.fingerprints == (segment("a/1", "id BIGINT, at TIMESTAMP").schema.fingerprint,)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "m.csv",
            "segment_id,schema,num_rows\na/1,id INT,ten\n",
            "num_rows is no whole number: ten",
        ),
        ("m.csv", "segment_id,schema,num_rows\na/1,id INT,1.5\n", "no whole number: 1.5"),
        (
            "m.csv",
            "segment_id,schema,num_rows,starts_at\na/1,id INT,1,2024-01-01\n",
            "starts_at has no time zone: 2024-01-01",
        ),
        (
            "m.csv",
            "segment_id,schema,num_rows,starts_at\na/1,id INT,1,soonZ\n",
            "starts_at is no time: soonZ",
        ),
        ("m.json", '{"segment_id": "a/1", "num_rows": 1}\n{oops\n', "not a JSON object: .oops"),
        ("m.txt", "", "does not follow from the suffix"),
        ("nowhere.parquet", None, "PATH_NOT_FOUND"),
        ("m.parquet", "no parquet", "cannot be read as parquet"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_manifest(spark, str(tmp_path / name))


def test_few_segments_need_no_staging_and_many_are_left_to_it(
    spark: SparkSession, manifest: str
) -> None:
    frame = read_manifest(spark, manifest)
    few = few_segments(frame)
    assert few is not None
    assert few[0] == segment(
        "orders/1",
        "id BIGINT NOT NULL, price DECIMAL(10,2)",
        10,
        size_bytes=100,
        location="/x/1",
        starts_at=datetime(2024, 1, 1, tzinfo=UTC),
        ends_at=datetime(2024, 1, 2, tzinfo=UTC),
    )
    assert [(s.id, s.num_rows, s.location) for s in few[1:]] == [
        ("orders/2", 20, None),
        ("clicks/1", 5, None),
    ]
    assert few_segments(frame, most=2) is None
    with pytest.raises(InvalidSegment, match="num_rows of segment orders/1"):
        few_segments(frame.selectExpr("segment_id", "schema", "CAST(NULL AS INT) AS num_rows"))


def test_an_unknown_column_of_a_manifest_is_refused(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "m.csv"
    file.write_text("segment_id,schema,num_row\na/1,id INT,1\n")
    with pytest.raises(InvalidInput, match=r"unknown here: \['num_row'\]"):
        catalog.publish(read_manifest(spark, str(file)))
    assert catalog.version == 0


# --- locations and times --------------------------------------------------------------------------


def test_a_relative_path_is_found_again(spark: SparkSession, tmp_path: Path) -> None:
    # Spark resolves it against the directory in which its JVM was started.
    relative = f"./spark-warehouse-{tmp_path.name}"
    try:
        with Catalog.open(spark, relative, settings=Settings(deadline=30.0)) as made:
            place = str(made.location)
        with Catalog.open(spark, relative, create=False) as again:
            assert str(again.location) == place
            assert place.startswith("/")
    finally:
        shutil.rmtree(place)


def test_a_grace_is_understood_by_both_doors(strata: Strata, catalog: Catalog) -> None:
    catalog.publish([segment()])
    catalog.drop(["orders/1"])
    assert strata("cleanup", "--grace", "1h", job=True)[1]["facts"]["retired"] == 0
    (run,) = catalog.audit.runs().collect()
    assert json.loads(run["arguments"])["grace"] == str(timedelta(hours=1))


def test_schemas_are_compared_however_they_are_named(strata: Strata, manifest: str) -> None:
    strata("init")
    strata("publish", manifest)
    old = "id BIGINT NOT NULL, price DECIMAL(10,2)"
    code, answer = strata("diff", "orders", "id BIGINT, price DECIMAL(12,2), note STRING")
    assert (code, answer["facts"]["compatible"]) == (0, "backward")
    assert answer["tables"]["columns"] == [
        {"sign": "~", "path": "id", "old": "bigint not null", "new": "bigint",
         "change": "made nullable"},
        {"sign": "~", "path": "price", "old": "decimal(10,2)", "new": "decimal(12,2)",
         "change": "widened"},
        {"sign": "+", "path": "note", "old": None, "new": "string", "change": "added nullable"},
    ]  # fmt: skip
    fingerprint = answer["facts"]["old"]
    for side in ("orders/1", fingerprint[:8], fingerprint, "segment:orders/2", f"ddl:{old}"):
        code, answer = strata("diff", side, "orders", "--all", "--as-of", "1")
        assert (code, answer["facts"]["compatible"]) == (0, "full")
        assert [row["sign"] for row in answer["tables"]["columns"]] == [" ", " "]
    code, answer = strata("diff", "orders", "clicks", "--mode", "full")
    assert (code, answer["found"], answer["facts"]["compatible"]) == (1, True, "backward")
    assert answer["facts"]["breaks"][0].startswith("id was dropped required")
    for side, condition in (
        ("nothing", "NOT_IN_SNAPSHOT"),
        ("orders/9", "NOT_IN_SNAPSHOT"),
        ("fingerprint:beef", "UNKNOWN_SCHEMA"),
        ("id BIGNIT", "INVALID_SCHEMA"),
    ):
        code, answer = strata("diff", side, "orders")
        assert (code, answer["error"]["condition"]) == (2, condition)


def test_the_columns_of_a_datasource_are_shown_with_where_they_are_from(
    strata: Strata, manifest: str, tmp_path: Path
) -> None:
    strata("init")
    strata("publish", manifest)
    code, answer = strata("columns", "orders")
    assert (code, answer["facts"]["segments"], answer["facts"]["schemas"]) == (0, 2, 1)
    assert answer["tables"]["columns"][1] == {
        "path": "price", "type": "decimal(10,2)", "nullable": True,
        "types": {"decimal(10,2)": 2}, "schemas": 1, "segments": 2,
    }  # fmt: skip
    more = tmp_path / "more.csv"
    more.write_text("segment_id,schema,num_rows\norders/3,price DOUBLE,1\n")
    strata("publish", str(more))
    code, answer = strata("columns", "orders")
    assert (code, answer["found"]) == (1, True)
    assert answer["tables"]["conflicts"] == [
        {"path": "price", "types": ["decimal(10,2)", "double"], "kept": "decimal(10,2)"}
    ]
    code, answer = strata("columns", "orders", "--policy", "latest", "--as-of", "1")
    assert (code, answer["found"]) == (0, False)
