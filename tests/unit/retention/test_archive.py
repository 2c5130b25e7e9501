"""Where archived data goes: which datastore, and a path that nothing else can have."""

from __future__ import annotations

import posixpath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidObject
from catalog.retention.archive import archive_of, manifest_of, target_of
from tests.unit.retention.test_rules import node

STORE = node("datastore/cold", {"location": "s3://bucket/cold/"})
LINK = node("datastore_link/sales/cold", {"role": "archive"})


def test_the_archive_is_the_datastore_that_the_database_links_to_as_such() -> None:
    others = [
        node("datastore/hot", {"location": "/hot"}),
        node("datastore_link/sales/hot", {"role": "primary"}),
        node("datastore_link/other/hot", {"role": "archive"}),
    ]
    assert archive_of("orders", {"sales"}, [STORE, LINK, *others]) == "s3://bucket/cold"


@pytest.mark.parametrize(
    ("databases", "objects", "says"),
    [
        (set(), [STORE, LINK], "no table represents the datasource"),
        ({"sales"}, [STORE], "none does"),
        ({"sales"}, [STORE, node("datastore_link/sales/cold", {"role": "cache"})], "none does"),
        (
            {"sales"},
            [STORE, LINK, node("datastore_link/sales/b", {"role": "archive"})],
            "several do (b, cold)",
        ),
        ({"sales"}, [LINK], "there is no datastore/cold"),
        ({"sales"}, [LINK, node("datastore/cold")], "location of a folder in its body"),
        ({"sales"}, [LINK, node("datastore/cold", {"location": "a/b"})], "not 'a/b'"),
        ({"sales"}, [LINK, node("datastore/cold", {"location": "/"})], "not '/'"),
        ({"sales"}, [LINK, node("datastore/cold", {"location": 7})], "not 7"),
    ],
)
def test_without_one_archive_the_error_says_what_to_put(
    databases: set[str], objects: list[Any], says: str
) -> None:
    with pytest.raises(InvalidObject) as refused:
        archive_of("orders", databases, objects)
    assert says in refused.value.message


@pytest.mark.parametrize(
    ("segment_id", "path"),
    [
        ("orders/2024-01-01", "/a/orders/2024-01-01/@c1"),
        ("orders/day=1/x.parquet", "/a/orders/day=1/x.parquet/@c1"),
        ("../../etc", "/a/%2E./%2E./etc/@c1"),
        ("orders/a//b", "/a/orders/a/%/b/@c1"),
        ("orders/_manifest", "/a/orders/%5Fmanifest/@c1"),
        ("orders/@c1", "/a/orders/%40c1/@c1"),
        ("a b/50% ä:*?", "/a/a%20b/50%25%20%C3%A4%3A%2A%3F/@c1"),
    ],
)
def test_a_segment_has_a_folder_of_its_own_whatever_its_id(segment_id: str, path: str) -> None:
    assert target_of("/a", segment_id, "c1") == path


IDS = st.from_regex(r"[^/\x00-\x1f]+/[^\x00-\x1f]+", fullmatch=True).filter(
    lambda text: text.isprintable()
)


@given(IDS, IDS, st.sampled_from(["c1", "c2"]), st.sampled_from(["c1", "c2"]))
def test_no_two_segments_share_a_folder_and_none_leaves_the_archive(
    one: str, other: str, first: str, second: str
) -> None:
    path, beside = target_of("/a", one, first), target_of("/a", other, second)
    assert posixpath.normpath(path) == path
    assert path.startswith("/a/")
    if (one, first) != (other, second):
        assert not f"{path}/".startswith(f"{beside}/")
    assert not path.startswith(manifest_of("/a", other.partition("/")[0]) + "/")
