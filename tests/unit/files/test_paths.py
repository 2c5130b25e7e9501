"""Patterns of file paths."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from catalog.files.paths import Pattern, is_hidden


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("/data/orders/**/*.parquet", "/data/orders"),
        ("/data/orders/2024/*.parquet", "/data/orders/2024"),
        ("/data/x?/a.csv", "/data"),
        ("/data/[ab]/x/*.csv", "/data"),
        ("/data/{2023/12,2024}/x.csv", "/data"),
        ("/*.parquet", "/"),
        ("/data/orders", "/data/orders"),
        ("/data/orders/", "/data/orders"),
        ("/data//orders//*.csv", "/data/orders"),
        ("/data/a b%20#c/*.csv", "/data/a b%20#c"),
        ("data/*.csv", "data"),
        ("file:/data/*.csv", "file:/data"),
        ("file:///data/*.csv", "file:///data"),
        ("dbfs:/Volumes/c/s/v/*.json", "dbfs:/Volumes/c/s/v"),
        ("s3://bucket/x/*.parquet", "s3://bucket/x"),
        ("s3://bucket/*.parquet", "s3://bucket/"),
        ("s3://bucket/", "s3://bucket/"),
        ("s3://bucket", "s3://bucket/"),
        (
            "abfss://box@account.dfs.core.windows.net/*/a",
            "abfss://box@account.dfs.core.windows.net/",
        ),
    ],
)
def test_the_root_is_what_stands_before_the_first_wildcard(text: str, root: str) -> None:
    pattern = Pattern.parse(text)
    assert (pattern.root, pattern.text) == (root, text)


@pytest.mark.parametrize(
    ("text", "path", "fits"),
    [
        ("/d/**/*.parquet", "/d/a.parquet", True),
        ("/d/**/*.parquet", "/d/2024/01/a.parquet", True),
        ("/d/**/*.parquet", "/d/2024/01/a.orc", False),
        ("/d/**/*.parquet", "/e/a.parquet", False),
        ("/d/**/*.parquet", "/dd/a.parquet", False),
        ("/d/**/*.parquet", "/d", False),
        ("/d/*.parquet", "/d/a.parquet", True),
        ("/d/*.parquet", "/d/2024/a.parquet", False),
        ("/d/*.parquet", "/d/.parquet", False),
        ("/d/*/*", "/d/x/a", True),
        ("/d/*/*", "/d/a", False),
        ("/d/*/*", "/d/x/y/a", False),
        ("/d/**", "/d/x/y/a", True),
        ("/d/**/x/**/a", "/d/x/a", True),
        ("/d/**/x/**/a", "/d/1/x/2/x/3/a", True),
        ("/d/**/x/**/a", "/d/1/2/a", False),
        ("/d/a**b", "/d/a-b", True),
        ("/d/a**b", "/d/a/b", False),
        ("/d/a?.csv", "/d/a1.csv", True),
        ("/d/a?.csv", "/d/a.csv", False),
        ("/d/a?b", "/d/a/b", False),
        ("/d/[abc].csv", "/d/b.csv", True),
        ("/d/[abc].csv", "/d/d.csv", False),
        ("/d/[a-c1-3].csv", "/d/2.csv", True),
        ("/d/[a-c1-3].csv", "/d/-.csv", False),
        ("/d/[a-].csv", "/d/-.csv", True),
        ("/d/[--a].csv", "/d/0.csv", True),
        ("/d/[a-a].csv", "/d/-.csv", False),
        ("/d/[!a-c].csv", "/d/d.csv", True),
        ("/d/[!a-c].csv", "/d/b.csv", False),
        ("/d/[^a-c].csv", "/d/b.csv", False),
        ("/d/[*?{}].csv", "/d/?.csv", True),
        ("/d/[*?{}].csv", "/d/a.csv", False),
        ("/d/[[]1[]].csv", "/d/[1].csv", True),
        ("/d/[]a].csv", "/d/a.csv", True),
        ("/d/[!]a].csv", "/d/].csv", False),
        ("/d/[&&||~~].csv", "/d/|.csv", True),
        ("/d/[\\].csv", "/d/\\.csv", True),
        ("/d/{a,b}.csv", "/d/b.csv", True),
        ("/d/{a,b}.csv", "/d/c.csv", False),
        ("/d/{a,b}.csv", "/d/a,b.csv", False),
        ("/d/{a*,{b,c}d}.csv", "/d/cd.csv", True),
        ("/d/{a*,{b,c}d}.csv", "/d/axyz.csv", True),
        ("/d/{a*,{b,c}d}.csv", "/d/d.csv", False),
        ("/d/x{,y}.csv", "/d/x.csv", True),
        ("/d/{2023/12,2024}/*.csv", "/d/2023/12/a.csv", True),
        ("/d/{2023/12,2024}/*.csv", "/d/2023/11/a.csv", False),
        ("/d/{**,x}/a", "/d/1/2/a", True),
        ("/d/{a}", "/d/a", True),
        ("/d/a.csv", "/d/a.csv", True),
        ("/d/a.csv", "/d/axcsv", False),
        ("/d", "/d/x/y/z", True),
        ("/d/", "/d/x", True),
        ("/d/(a|b)+.csv", "/d/(a|b)+.csv", True),
        ("/d/*.csv", "file:/d/a.csv", True),
        ("/d/*.csv", "file:///d/a.csv", True),
        ("file:/d/*.csv", "/d/a.csv", True),
        ("s3://b/x/*.csv", "s3a://b/x/a.csv", True),
        ("s3://b/*.csv", "s3://b/a.csv", True),
        ("/d/*.csv", "/d/a b%20c.csv", True),
        ("/d/*.csv", "/d/a\nb.csv", True),
        ("d/*.csv", "d/a.csv", True),
        # What Spark passes by, at any depth below the root.
        ("/d/**", "/d/_SUCCESS", False),
        ("/d/**", "/d/.a.crc", False),
        ("/d/**", "/d/_temporary/0/a", False),
        ("/d/_*", "/d/_a", False),
        ("/d", "/d/.hidden/a", False),
        ("/d/_a", "/d/_a", False),
        ("/_d/x/*", "/_d/x/a", True),
        ("/d/**", "/d/_day=1/a", True),
        ("/d/**", "/d/a_b/c.d", True),
    ],
)
def test_a_pattern_fits_or_not(text: str, path: str, fits: bool) -> None:
    assert Pattern.parse(text).matches(path) is fits


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("/data/orders/**/*.parquet", "/data/orders/2024/01/a.parquet", "2024/01/a.parquet"),
        ("/data/orders", "file:/data/orders/2024/01/a.parquet", "2024/01/a.parquet"),
        ("s3://bucket/*/a", "s3a://bucket/x/a", "x/a"),
        ("/data/a.parquet", "/data/a.parquet", "a.parquet"),
    ],
)
def test_the_name_of_a_file_is_its_path_below_the_root(text: str, path: str, name: str) -> None:
    assert Pattern.parse(text).name_of(path) == name


def test_a_file_elsewhere_has_no_name() -> None:
    with pytest.raises(InvalidInput, match="/other/a is not below /data"):
        Pattern.parse("/data/*").name_of("/other/a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ("/data/a\x00b", "must not hold control characters"),
        ("/data/*\n", "must not hold control characters"),
        ("/data/\ud800", "must not hold control characters"),
        ("s3://buck*t/x", "must not have a wildcard in its scheme or bucket"),
        ("s3://{a,b}/x", "must not have a wildcard in its scheme or bucket"),
        ("s*://bucket/x", "must not have a wildcard in its scheme or bucket"),
        ("*.parquet", "must name a folder before its first wildcard"),
        ("**/a", "must name a folder before its first wildcard"),
        ("/data/[ab", "has a [ without its ]"),
        ("/data/[a/b]", "has a [ without its ]"),
        ("/data/[]", "has a [ without its ]"),
        ("/data/[!]", "has a [ without its ]"),
        ("/data/a]", "has a ] without its ["),
        ("/data/{a,b", "has a { without its }"),
        ("/data/{a,{b}", "has a { without its }"),
        ("/data/a}", "has a } without its {"),
        ("/data/[z-a]", "has [z-a], whose range runs backwards"),
        ("/data/" + "{a,b}" * 11, "must not represent more than 1000 patterns"),
    ],
)
def test_a_bad_pattern_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)) as caught:
        Pattern.parse(text)
    assert caught.value.values["pattern"] == text


def test_a_pattern_travels() -> None:
    pattern = Pattern.parse("/d/**/{a,b}*.[ch]sv")
    copy = pickle.loads(pickle.dumps(pattern))
    assert copy == pattern
    assert copy.matches("/d/x/ab.csv")


def test_many_stars_take_no_longer_than_few() -> None:
    pattern = Pattern.parse("/d/**/**/x/**/" + "*a" * 40 + "/**/z")
    assert not pattern.matches("/d/" + "x/" * 60 + "a" * 200 + "/y")


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        *(("a", False), ("_a", True), (".a", True), ("_a=1", False), (".a=1", True)),
        *(("a_", False), ("a._COPYING_", True)),
    ],
)
def test_hidden_is_what_spark_passes_by(name: str, hidden: bool) -> None:
    assert is_hidden(name) is hidden


# --- against a matcher that is slow and simple ---


def fits_slowly(pattern: str, path: str) -> bool:
    """Whether a path fits, tried letter by letter in every way there is."""
    if pattern.startswith("{"):
        end = pattern.index("}")
        return any(
            fits_slowly(choice + pattern[end + 1 :], path) for choice in pattern[1:end].split(",")
        )
    if pattern.startswith("**/"):
        below = [place + 1 for place, letter in enumerate(path) if letter == "/"]
        return any(fits_slowly(pattern[3:], path[place:]) for place in [0, *below])
    if pattern.startswith("*"):
        if fits_slowly(pattern[1:], path):
            return True
        return path[:1] not in ("", "/") and fits_slowly(pattern, path[1:])
    if not pattern or not path:
        return pattern == path
    if pattern.startswith("["):
        end = pattern.index("]")
        return path[0] in pattern[1:end] and fits_slowly(pattern[end + 1 :], path[1:])
    if pattern[0] == path[0] or (pattern[0] == "?" and path[0] != "/"):
        return fits_slowly(pattern[1:], path[1:])
    return False


letters = st.sampled_from("ab")
pieces = st.one_of(letters, st.sampled_from(["*", "?", "[a]", "[ab]", "{a,b}", "{ab,*b}", "{a,}b"]))
components = st.one_of(
    st.just("**"),
    st.lists(pieces, min_size=1, max_size=4).map("".join).filter(lambda text: "**" not in text),
)
wild = (
    st.tuples(st.lists(components, max_size=4), pieces)
    .map(lambda made: "/".join([*made[0], made[1]]))
    .filter(lambda text: text.count("{") < 9)  # as many as a pattern may have
)
names = st.text(letters, min_size=1, max_size=4)


@given(wild, st.lists(names, min_size=1, max_size=5))
def test_a_pattern_fits_what_a_slow_matcher_says_that_it_fits(text: str, below: list[str]) -> None:
    path = "/".join(below)
    assert Pattern.parse(f"/[r]oot/{text}").matches(f"/root/{path}") == fits_slowly(text, path)
