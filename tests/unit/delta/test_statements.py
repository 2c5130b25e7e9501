"""The text of statements: partitions as literals, values that cannot break out, locations."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.delta.changes import change_rows, plain_clash, staging_clash
from catalog.delta.layout import COLUMNS, ENTRY_COLUMNS
from catalog.delta.location import Location, local_path
from catalog.delta.statements import (
    CONTRADICTS,
    Claims,
    Refuse,
    bounds_clause,
    bounds_with_claims,
    complete_segments,
    delete_keys,
    delete_where,
    insert_missing,
    insert_or_replace,
    partitions_clause,
    retire_keys,
    with_claims,
)
from catalog.errors import InvalidLocation
from catalog.schema.names import identifier, literal

anything = st.text(st.characters(exclude_categories=()))
PARTITIONS = {("segment", 10), ("segment", 2), ("schema", 3)}
BOUNDS = {"segment": ("a/1", "b/2"), "schema": ("00", "ff")}
NAMES = [column.name for column in ENTRY_COLUMNS]


# --- values --------------------------------------------------------------------------------------


def unescaped(text: str) -> str:
    """What Spark reads: a backslash and u or U begin a code point, all else stands for itself."""
    code = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
    return code.sub(lambda match: chr(int(match[1] or match[2], 16)), text[1:-1])


@given(anything)
def test_a_literal_lets_nothing_out(text: str) -> None:
    assert re.fullmatch(
        r"'([A-Za-z0-9_/=.:-]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*'", literal(text), re.ASCII
    )


@given(anything)
def test_a_literal_reads_back_as_the_text(text: str) -> None:
    assert unescaped(literal(text)) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", "''"),
        ("orders/2024-01=x.y:z_", "'orders/2024-01=x.y:z_'"),
        ("it's", r"'it\u0027s'"),
        ("a\\", r"'a\u005c'"),
        ("\n\x00", r"'\u000a\u0000'"),
        ("ß😀", r"'\u00df\U0001f600'"),
        ("${x} %", r"'\u0024\u007bx\u007d\u0020\u0025'"),
    ],
)
def test_a_literal_escapes_whatever_could_mean_something(text: str, written: str) -> None:
    assert literal(text) == written


@given(anything)
def test_an_identifier_doubles_backticks_and_changes_nothing_else(name: str) -> None:
    quoted = identifier(name)
    assert (quoted[0], quoted[-1]) == ("`", "`")
    assert quoted[1:-1].replace("``", "") == name.replace("`", "")
    assert quoted[1:-1].replace("``", "`") == name


# --- clauses -------------------------------------------------------------------------------------


def test_partitions_are_literals_in_order_each_once() -> None:
    assert partitions_clause([*PARTITIONS, ("segment", 2)]) == (
        "(t.kind = 'schema' AND t.bucket IN (3)) OR (t.kind = 'segment' AND t.bucket IN (2, 10))"
    )


def test_bounds_are_escaped_for_each_kind() -> None:
    assert bounds_clause({"segment": ("a/'", "b"), "schema": ("00", "ff")}) == (
        "(t.kind = 'schema' AND t.key BETWEEN '00' AND 'ff') OR "
        r"(t.kind = 'segment' AND t.key BETWEEN 'a/\u0027' AND 'b')"
    )


def conjuncts(sql: str) -> list[str]:
    """The conjuncts of a MERGE's ON, less the check at its end."""
    on = sql.split(" ON ", 1)[1].split(" AND CASE ", 1)[0].split(" WHEN ", 1)[0]
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[()]| AND ", on):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == " AND " and depth == 0:
            parts.append(on[start : match.start()])
            start = match.end()
    return [*parts, on[start:]]


CLAIMS = Claims(frozenset({"done", "o'ver"}))
STANDING = r"t.action <> 'hold' AND t.operation NOT IN ('done', 'o\u0027ver') AND true"
SAME_KEY = ["t.kind = s.kind", "t.bucket = s.bucket", "t.key = s.key"]
STATEMENTS: dict[str, Any] = {
    **{refuse.name: insert_missing("x", PARTITIONS, BOUNDS, refuse) for refuse in Refuse},
    "delete": delete_keys("x", PARTITIONS, BOUNDS),
}
# With regard to what operations claim.
RESPECTFUL: dict[str, Any] = {
    "insert": insert_missing("x", PARTITIONS, BOUNDS, Refuse.ANY_SEGMENT, CLAIMS),
    "replace": insert_or_replace("x", PARTITIONS, BOUNDS, CLAIMS),
    "complete": complete_segments("x", PARTITIONS, BOUNDS, CLAIMS),
    "drop": delete_keys("x", PARTITIONS, BOUNDS, claims=CLAIMS),
}
BOTH = STATEMENTS | RESPECTFUL


@pytest.mark.parametrize("name", STATEMENTS)
def test_partitions_and_bounds_are_conjuncts_of_their_own(name: str) -> None:
    assert conjuncts(STATEMENTS[name]("v")) == [
        *SAME_KEY,
        f"({partitions_clause(PARTITIONS)})",
        f"({bounds_clause(BOUNDS)})",
    ]


@pytest.mark.parametrize("name", RESPECTFUL)
def test_they_are_so_beside_claims_too(name: str) -> None:
    assert conjuncts(RESPECTFUL[name]("v")) == [
        "t.bucket = s.bucket",
        "t.key = s.key",
        "(t.kind = s.kind OR t.kind = 'staged')",
        f"({partitions_clause(PARTITIONS)})",
        f"({bounds_clause(BOUNDS)})",
    ]


@pytest.mark.parametrize("name", RESPECTFUL)
def test_a_claim_refuses_the_statement_and_never_matches(name: str) -> None:
    assert (
        " AND CASE WHEN t.kind = 'staged' AND t.bucket = s.bucket AND t.key = s.key "
        f"AND t.target = IF(s.kind = 'asking', 'datasource', s.kind) AND {STANDING} "
        "THEN raise_error(concat('strata:', t.kind, ':', t.key, ':strata')) "
        "WHEN t.kind = 'staged' THEN false WHEN "
    ) in RESPECTFUL[name]("v")


def test_an_insert_has_two_clauses_so_that_delta_keeps_the_rows_that_only_ask() -> None:
    # Of a single clause Delta would apply the condition to the source, before the comparison.
    sql = RESPECTFUL["insert"]("v")
    assert re.findall("WHEN (?:NOT )?MATCHED .*? THEN ", sql) == [
        "WHEN NOT MATCHED AND s.kind <> 'asking' THEN ",
        "WHEN NOT MATCHED AND false THEN ",
    ]
    assert "WHEN NOT MATCHED AND s.kind <> 'asking' THEN INSERT" in RESPECTFUL["replace"]("v")
    assert "WHEN NOT MATCHED AND s.kind = 'schema' THEN INSERT" in RESPECTFUL["complete"]("v")


def test_claims_are_looked_for_beside_the_segments_and_below_their_keys() -> None:
    homes = {(kind, bucket) for kind in ("staged", "datasource") for bucket in (2, 10)}
    assert with_claims(PARTITIONS) == PARTITIONS | homes
    below = ("", "b/2")
    assert bounds_with_claims(BOUNDS) == {**BOUNDS, "staged": below, "datasource": below}
    assert bounds_with_claims({"schema": ("00", "ff")}) == {"schema": ("00", "ff")}


def test_a_delete_by_condition_names_its_partitions_and_meets_claims() -> None:
    sql = delete_where("x", [("segment", 1), ("staged", 1)], "t.datasource = 'a'", STANDING)("")
    assert sql == (
        "DELETE FROM x AS t WHERE ((t.kind = 'segment' AND t.bucket IN (1)) OR "
        "(t.kind = 'staged' AND t.bucket IN (1))) AND CASE "
        f"WHEN t.kind = 'staged' AND {STANDING} "
        "THEN raise_error(concat('strata:', t.kind, ':', t.key, ':strata')) "
        "WHEN t.kind = 'staged' THEN false ELSE t.datasource = 'a' END"
    )


# --- the general commit ---------------------------------------------------------------------------


def test_the_general_commit_refuses_what_is_otherwise_and_what_is_gone() -> None:
    sql = change_rows("x", PARTITIONS, BOUNDS, "CLASH")("v")
    assert conjuncts(sql)[2:] == [
        "(t.kind = s.kind OR t.kind = 'staged' OR t.kind = s.target)",
        f"({partitions_clause(PARTITIONS)})",
        f"({bounds_clause(BOUNDS)})",
    ]
    refused = "THEN raise_error(concat('strata:', t.kind, ':', t.key, ':strata'))"
    same = "t.bucket = s.bucket AND t.key = s.key"
    assert f"WHEN {same} AND t.kind = 'staged' AND CLASH {refused}" in sql
    assert f"WHEN {same} AND s.change = 'insert' {refused}" in sql
    assert f"WHEN {same} AND s.change <> 'probe' AND NOT t.commit_id <=> s.seen {refused}" in sql
    # In a value, not in the condition: that is applied to the whole source.
    assert "WHEN NOT MATCHED AND s.change <> 'probe' THEN INSERT (" in sql
    assert "ELSE raise_error(concat('strata:', s.kind, ':', s.key, ':strata')) END, s.bucket" in sql


def test_the_general_commit_can_be_told_that_it_only_inserts() -> None:
    both = re.compile("WHEN (?:NOT )?MATCHED")
    assert both.findall(change_rows("x", PARTITIONS, BOUNDS)("v")) == [
        *["WHEN MATCHED"] * 2,
        "WHEN NOT MATCHED",
    ]
    sql = change_rows("x", PARTITIONS, BOUNDS, inserts_only=True)("v")
    assert both.findall(sql) == ["WHEN NOT MATCHED"]
    assert all(f"s.{column.name}" in sql for column in COLUMNS)


def test_clashes_pass_by_what_is_decided_known_or_shared() -> None:
    assert plain_clash(["b", "a"]) == (
        "t.target = s.kind AND (t.action <> 'hold' OR NOT s.shared) "
        "AND t.operation NOT IN ('a', 'b')"
    )
    assert staging_clash(["own/0"], []) == (
        "s.kind = 'staged' AND t.target = s.target "
        "AND NOT (t.action = 'hold' AND s.action = 'hold') AND true "
        "AND concat(t.operation, '/', t.part) NOT IN ('own/0')"
    )


DIFFERS = "NOT t.digest <=> s.digest"
ANY_SEGMENT = f"t.kind = 'segment' OR {DIFFERS}"
OTHER_SCHEMA = f"t.kind <> 'segment' AND {DIFFERS}"


@pytest.mark.parametrize("name", BOTH)
def test_a_statement_merges_the_source_into_the_target(name: str) -> None:
    assert BOTH[name]("v").startswith("MERGE INTO x AS t USING v AS s ON ")


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("ANY_SEGMENT", ANY_SEGMENT),
        ("OTHER_CONTENT", CONTRADICTS.replace("t.digest <> s.digest", DIFFERS)),
        ("OTHER_SCHEMA", OTHER_SCHEMA),
        ("insert", ANY_SEGMENT),
        ("replace", OTHER_SCHEMA),
        ("complete", OTHER_SCHEMA),
    ],
)
def test_a_check_compares_the_keys_of_both_sides_itself(name: str, condition: str) -> None:
    # A backfill only compares the rows of datasources: one that matched would be written anew.
    passed = "WHEN t.kind = 'datasource' THEN false " if name == "complete" else ""
    assert (
        f" WHEN {' AND '.join(SAME_KEY)} AND ({condition}) "
        f"THEN raise_error(concat('strata:', t.kind, ':', t.key, ':strata')) {passed}"
        "ELSE true END WHEN "
    ) in BOTH[name]("v")


def test_only_what_carries_terms_refuses_a_datasource_that_is_gone() -> None:
    plain = insert_missing("x", PARTITIONS, BOUNDS, Refuse.ANY_SEGMENT, CLAIMS)("v")
    carrying = insert_missing("x", PARTITIONS, BOUNDS, Refuse.ANY_SEGMENT, CLAIMS, terms=True)("v")
    gone = (
        "CASE WHEN s.kind = 'datasource' AND s.digest IS NOT NULL "
        "THEN raise_error(concat('strata:', s.kind, ':', s.key, ':strata')) ELSE s.kind END"
    )
    # In a value, not in the condition: that is applied to the whole source. Nothing else differs.
    assert carrying == plain.replace("VALUES (s.kind,", f"VALUES ({gone},")
    both = [
        insert_or_replace("x", PARTITIONS, BOUNDS, CLAIMS, terms)("v") for terms in (False, True)
    ]
    assert both[1] == both[0].replace("VALUES (s.kind,", f"VALUES ({gone},")


@pytest.mark.parametrize("refuse", Refuse)
def test_an_insert_changes_nothing_that_is_there(refuse: Refuse) -> None:
    sql = STATEMENTS[refuse.name]("v")
    assert re.findall("WHEN (?:NOT )?MATCHED", sql) == ["WHEN NOT MATCHED"]
    assert sql.endswith(
        f"INSERT ({', '.join(NAMES)}) VALUES ({', '.join(f's.{name}' for name in NAMES)})"
    )


def test_a_replacement_updates_segments_only_and_keeps_when_they_were_first_published() -> None:
    sql = RESPECTFUL["replace"]("v")
    updated = sql.split("UPDATE SET ")[1].split(" WHEN NOT MATCHED")[0].split(", ")
    kept = ("kind", "bucket", "key", "published_at", "revision")
    assert updated == [
        *(f"{name} = s.{name}" for name in NAMES if name not in kept),
        "revision = t.revision + 1",
    ]
    assert f"WHEN MATCHED AND t.kind = 'segment' AND {CONTRADICTS} THEN UPDATE" in sql


def test_a_completion_updates_only_what_was_seen_without_a_schema_and_inserts_only_schemas() -> (
    None
):
    sql = RESPECTFUL["complete"]("v")
    assert re.findall("WHEN (?:NOT )?MATCHED[^(]*?THEN [A-Z]+", sql) == [
        "WHEN MATCHED AND t.kind = 'segment' AND t.fingerprint IS NULL AND t.commit_id = s.seen "
        "THEN UPDATE",
        "WHEN NOT MATCHED AND s.kind = 'schema' THEN INSERT",
    ]
    updated = sql.split("UPDATE SET ")[1].split(" WHEN NOT MATCHED")[0].split(", ")
    untouched = {"kind", "bucket", "key", "datasource", "location", "starts_at", "ends_at"}
    names = {text.partition(" = ")[0] for text in updated}
    assert names == set(NAMES) - untouched - {"published_at"}


def test_a_delete_can_be_held_to_the_rows_that_were_seen() -> None:
    assert conjuncts(delete_keys("x", PARTITIONS, BOUNDS, same_commit=True)("v"))[-1] == (
        "t.commit_id = s.commit_id"
    )
    assert STATEMENTS["delete"]("v").endswith(" WHEN MATCHED THEN DELETE")


def test_a_delete_of_what_was_seen_lets_no_staged_row_slip_past_its_check() -> None:
    sql = delete_keys("x", PARTITIONS, BOUNDS, same_commit=True, claims=CLAIMS)("v")
    assert sql.endswith(
        " ELSE true END AND (t.kind = 'staged' OR t.commit_id = s.commit_id) "
        "WHEN MATCHED THEN DELETE"
    )


def test_a_retirement_reads_both_kinds_and_refuses_a_second_retired_row() -> None:
    sql = retire_keys("x", [3, 1, 3], ("00", "ff"), "c'1", 17, "o'neil")("v")
    both = partitions_clause((kind, n) for kind in ("schema", "retired") for n in (1, 3))
    assert (
        f"ON t.bucket = s.bucket AND t.key = s.key AND ({both}) "
        "AND t.key BETWEEN '00' AND 'ff' "
        "AND CASE WHEN t.bucket = s.bucket AND t.key = s.key AND t.kind = 'retired' "
        "THEN raise_error("
    ) in sql
    assert sql.endswith(
        "WHEN MATCHED AND t.kind = 'schema' AND t.commit_id = s.commit_id THEN UPDATE SET "
        r"kind = 'retired', commit_id = 'c\u00271', revision = t.revision + 1, "
        r"changed_at = timestamp_micros(17), changed_by = 'o\u0027neil'"
    )


# --- locations -----------------------------------------------------------------------------------

PATHS = [
    ("/data/meta", "/data/meta"),
    ("/data/meta///", "/data/meta"),
    ("/", "/"),
    ("./meta", "./meta"),
    ("data/my meta", "data/my meta"),
    ("s3://bucket/meta/", "s3://bucket/meta"),
    ("abfss://c@a.dfs.core.windows.net/meta", "abfss://c@a.dfs.core.windows.net/meta"),
    ("dbfs:/meta", "dbfs:/meta"),
    ("file:///data/a`b", "file:///data/a`b"),
    (Path("/data/meta"), "/data/meta"),
    (PurePosixPath("meta"), "meta"),
]
SCHEMAS = [
    ("meta", ("meta",)),
    ("main.meta", ("main", "meta")),
    ("`main`.`meta`", ("main", "meta")),
    ("`my.catalog`.meta", ("my.catalog", "meta")),
    ("main.`a/b`", ("main", "a/b")),
    ("`a/b`", ("a/b",)),
    ("`we``ird`", ("we`ird",)),
    ("````", ("`",)),
    ("`two words`.ß", ("two words", "ß")),
]
BAD_LOCATIONS = [
    ("", "must not be empty; give a path such as /data/meta or a schema such as main.meta"),
    ("  ", "must not be empty"),
    (b"/data/meta", "/data/meta"),
    ("a.b.c", "'a.b.c' is neither a path nor a schema name"),
    ("a..b", "write a path with a slash"),
    (".a", "write a path with a slash"),
    ("a.", "write a path with a slash"),
    (".", "write a path with a slash"),
    ("two words", "with backticks where a part has dots"),
    ("main.meta ", "with backticks"),
    ("``", "is neither"),
    ("`a", "is neither"),
    ("a`", "is neither"),
    ("a`b`", "is neither"),
    ("`a`b", "is neither"),
    ("```", "is neither"),
    ("/data\n", "'/data\\n' has control characters; remove them"),
    ("main.\x00", "has control characters; remove them"),
    ("s3://b/\x7f", "has control characters; remove them"),
]


@pytest.mark.parametrize(("given_as", "path"), PATHS)
def test_a_path_is_read_as_a_path(given_as: Any, path: str) -> None:
    assert Location.parse(given_as) == Location(path=path)


@pytest.mark.parametrize(("text", "parts"), SCHEMAS)
def test_a_name_of_one_or_two_parts_is_read_as_a_schema(text: str, parts: tuple[str, ...]) -> None:
    assert Location.parse(text) == Location(schema=parts)


@pytest.mark.parametrize(("text", "fragment"), BAD_LOCATIONS)
def test_a_bad_location_is_refused_with_the_way_out(text: Any, fragment: str) -> None:
    with pytest.raises(InvalidLocation) as caught:
        Location.parse(text)
    assert caught.value.condition == "INVALID_LOCATION"
    assert caught.value.values == {"location": text}
    assert fragment in caught.value.message


@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1), min_size=1, max_size=2
    )
)
def test_quoted_parts_of_a_schema_read_back(parts: list[str]) -> None:
    assert Location.parse(".".join(map(identifier, parts))).schema == tuple(parts)


@pytest.mark.parametrize(
    ("location", "relation", "text"),
    [
        ("/data/meta", "delta.`/data/meta/entries`", "/data/meta"),
        ("/da`ta", "delta.`/da``ta/entries`", "/da`ta"),
        ("meta", "`meta`.`entries`", "meta"),
        ("`my.cat`.meta", "`my.cat`.`meta`.`entries`", "my.cat.meta"),
    ],
)
def test_a_location_names_its_tables(location: str, relation: str, text: str) -> None:
    parsed = Location.parse(location)
    assert (parsed.table("entries"), str(parsed)) == (relation, text)


# Delta reports paths as Hadoop prints them: nothing in them is escaped.
@pytest.mark.parametrize(
    ("uri", "tail"),
    [
        ("file:{}/a b%20", "a b%20"),
        ("file://{}/a", "a"),
        ("{}/a%20b", "a%20b"),
        ("file:{}/a?b#c", "a?b#c"),
        ("{}/x/../a", "a"),
    ],
)
def test_a_local_path_is_the_uri_without_its_scheme(tmp_path: Path, uri: str, tail: str) -> None:
    assert local_path(uri.format(tmp_path)) == tmp_path.resolve() / tail


@pytest.mark.parametrize("uri", ["file:{}", "{}"])
def test_a_local_path_has_its_links_resolved(tmp_path: Path, uri: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert local_path(uri.format(tmp_path / "link" / "meta")) == tmp_path.resolve() / "real/meta"


@pytest.mark.parametrize("uri", ["s3://bucket/meta", "dbfs:/meta", "hdfs://host:1/meta"])
def test_other_storage_has_no_local_path(uri: str) -> None:
    assert local_path(uri) is None
