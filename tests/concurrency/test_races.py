"""Forced races: one side stopped in the middle of its statement, the other run, Delta the judge.

The file lock is off and each side has a catalog object, so a queue, of its own: the statements
really overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from catalog import Catalog
from catalog.commit.rows import schema_bucket, segment_bucket
from catalog.delta.layout import DEFAULT_SEGMENT_BUCKETS
from catalog.environment import Environment
from catalog.errors import SegmentConflict
from catalog.maintenance import cleanup
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.unit.builders import segment

NOW = timedelta(0)
Open = Callable[..., Catalog]


def fingerprint(ddl: str) -> str:
    return segment(ddl=ddl).schema.fingerprint


def orphan(catalog: Catalog, ddl: str) -> str:
    """A live schema that nothing refers to."""
    catalog.publish([segment("gone/1", ddl)])
    catalog.drop(["gone/1"])
    return fingerprint(ddl)


def test_a_schema_retired_under_a_running_publish_is_inserted_again(free: Open, gate: Gate) -> None:
    cleaner = free()
    schema = orphan(cleaner, "a INT")
    publisher = free(gate.inside("publish"))
    publish = Side(lambda: publisher.publish([segment("orders/1", "a INT")]))
    gate.await_reached()
    assert [c.fingerprint for c in cleaner.cleanup(grace=NOW).retired] == [schema]
    gate.open()
    assert publish.result.retries >= 1  # Delta refused the first try
    assert cleaner.cache().schema_of("orders/1").ddl == "a INT"
    assert cleaner.schemas().count() == 1
    assert_promises(cleaner)


@pytest.mark.exact
def test_a_publish_that_commits_under_a_running_retirement_is_restored(
    free: Open, gate: Gate
) -> None:
    publisher = free()
    schema = orphan(publisher, "a INT")
    cleaner = free(gate.inside("retire"))
    cleanup = Side(lambda: cleaner.cleanup(grace=NOW))
    gate.await_reached()
    assert publisher.publish([segment("orders/1", "a INT")]).retries == 0
    gate.open()
    report = cleanup.result
    # The search for references does not make the cleaner retry: it retires, sees and restores.
    assert report.retries == 0
    assert [c.fingerprint for c in report.retired] == [schema]
    assert [c.fingerprint for c in report.restored] == [schema]
    assert publisher.cache().schema_of("orders/1").ddl == "a INT"
    assert_promises(publisher)


def test_a_publish_under_a_running_purge_brings_its_schema_itself(free: Open, gate: Gate) -> None:
    publisher = free()
    schema = orphan(publisher, "a INT")
    publisher.cleanup(grace=NOW)
    cleaner = free(gate.inside("purge"))
    cleanup = Side(lambda: cleaner.cleanup(grace=NOW))
    gate.await_reached()
    assert publisher.publish([segment("orders/1", "a INT")]).inserted == 1
    gate.open()
    assert [c.fingerprint for c in cleanup.result.purged] == [schema]
    assert publisher.cache().schema_of("orders/1").ddl == "a INT"
    assert_promises(publisher)


@pytest.mark.stress
def test_a_cleaner_plans_again_when_another_has_retired_what_it_had_planned(
    free: Open, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "FEW", 0)  # a commit for each bucket
    quick = free()
    ddls = [f"c{number} INT" for number in range(4)]
    quick.publish([segment(f"gone/{ddl[1]}", ddl) for ddl in ddls])
    quick.drop(datasource="gone")
    by_bucket = sorted((schema_bucket(fingerprint(ddl)), fingerprint(ddl)) for ddl in ddls)
    assert len({bucket for bucket, _ in by_bucket}) == 4
    slow = free(gate.between("cleanup.batch"))
    first = Side(lambda: slow.cleanup(grace=NOW))
    gate.await_reached()
    # Between the first commit of one cleaner and its second, the other does all the rest.
    second = quick.cleanup(grace=NOW)
    gate.open()
    names = [name for _, name in by_bucket]
    assert [c.fingerprint for c in first.result.retired] == names[:1]
    assert sorted(c.fingerprint for c in second.retired) == sorted(names[1:])
    assert (quick.schemas().count(), quick.inspect.retired_schemas().count()) == (0, 3)
    assert_promises(quick)


@pytest.mark.stress
def test_a_purge_leaves_a_row_alone_that_was_retired_again_meanwhile(
    free: Open, tmp_path: Path
) -> None:
    users = free()
    schema = orphan(users, "a INT")
    users.cleanup(grace=NOW)
    late_gate, retire_gate, restore_gate = Gate(tmp_path), Gate(tmp_path), Gate(tmp_path)
    late = free(late_gate.between("cleanup.restored"))
    late_cleanup = Side(lambda: late.cleanup(grace=NOW))  # has planned to purge what it saw
    late_gate.await_reached()

    users.publish([segment("orders/1", "a INT")])
    users.cleanup(grace=NOW)  # purges the retired copy: the schema is live again
    users.drop(["orders/1"])
    inside, between = retire_gate.inside("retire"), restore_gate.between("cleanup.retired")
    quick = free(Environment(source=inside.source, at=between.at))
    quick_cleanup = Side(lambda: quick.cleanup(grace=NOW))
    retire_gate.await_reached()
    users.publish([segment("orders/2", "a INT")])
    retire_gate.open()
    restore_gate.await_reached()  # retired again, referred to, not yet restored

    late_gate.open()
    assert late_cleanup.result.purged == ()
    assert users.cache().schema_of("orders/2").ddl == "a INT"
    restore_gate.open()
    assert schema in {c.fingerprint for c in quick_cleanup.result.retired}
    assert users.schemas().count() == 1
    assert_promises(users)


def test_two_cleaners_retire_a_schema_once(free: Open, gate: Gate) -> None:
    quick = free()
    schema = orphan(quick, "a INT")
    orphan(quick, "b INT")
    slow = free(gate.inside("retire"))
    cleanup = Side(lambda: slow.cleanup(grace=NOW))
    gate.await_reached()
    assert len(quick.cleanup(grace=NOW).retired) == 2
    gate.open()
    report = cleanup.result
    assert report.retired == ()
    assert report.retries >= 1
    assert schema in {row["fingerprint"] for row in quick.inspect.retired_schemas().collect()}
    assert_promises(quick)


def test_two_publishers_of_one_new_schema_insert_it_once(free: Open, gate: Gate) -> None:
    slow, quick = free(gate.inside("publish")), free()
    publish = Side(lambda: slow.publish([segment("orders/1", "new INT")]))
    gate.await_reached()
    quick.publish([segment("clicks/1", "new INT")])
    gate.open()
    assert publish.result.retries >= 1
    assert quick.schemas().count() == 1
    assert quick.segments().count() == 2
    assert_promises(quick)


@pytest.mark.parametrize("rows", [1, 2], ids=["same content", "other content"])
def test_two_publishers_of_one_segment_id_write_it_once(free: Open, gate: Gate, rows: int) -> None:
    quick = free()
    orphan(quick, "a INT")
    slow = free(gate.inside("publish"))
    publish = Side(lambda: slow.publish([segment("orders/1", rows=rows)]))
    gate.await_reached()
    quick.publish([segment("orders/1", rows=1)])
    gate.open()
    if rows == 1:
        result = publish.result
        assert (result.inserted, result.existing) == (0, 1)
    else:
        with pytest.raises(SegmentConflict, match="orders/1"):
            _ = publish.result
    assert quick.cache().num_rows("orders/1") == 1
    assert_promises(quick)


def test_a_publish_goes_on_after_optimize_under_it(free: Open, gate: Gate, location: str) -> None:
    keeper = free()
    for number in range(3):
        keeper.publish([segment(f"orders/{number}")])
    publisher = free(gate.inside("publish"))
    publish = Side(lambda: publisher.publish([segment("orders/9")]))
    gate.await_reached()
    metrics = keeper._context.store.session.sql(f"OPTIMIZE delta.`{location}/entries`").collect()[0]
    assert metrics["metrics"]["numFilesRemoved"] >= 3
    gate.open()
    assert (publish.result.inserted, publish.result.retries >= 1) == (1, True)
    assert_promises(keeper)


@pytest.mark.exact
def test_publishers_of_datasources_in_different_buckets_do_not_meet(free: Open, gate: Gate) -> None:
    names = {segment_bucket(f"ds{n}/", DEFAULT_SEGMENT_BUCKETS): f"ds{n}" for n in range(40)}
    first, second = list(names.values())[:2]
    schemas = {schema_bucket(fingerprint(f"c{n} INT")): f"c{n} INT" for n in range(40)}
    known, new_elsewhere = list(schemas.values())[:2]
    quick = free()
    quick.publish([segment("known/1", known)])
    slow = free(gate.inside("publish"))
    publish = Side(lambda: slow.publish([segment(f"{first}/1", known)]))
    gate.await_reached()
    assert quick.publish([segment(f"{second}/1", known)]).retries == 0
    assert quick.publish([segment(f"{second}/2", new_elsewhere)]).retries == 0
    assert quick.drop([f"{second}/1"]).retries == 0
    gate.open()
    assert publish.result.retries == 0
    assert_promises(quick)


def test_a_poll_between_a_drop_and_a_clean_up_sees_each_as_it_is(free: Open, gate: Gate) -> None:
    users = free()
    users.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    cache = users.cache()
    users.drop(["orders/1"])
    cleaner = free(gate.between("cleanup.retired"))
    cleanup = Side(lambda: cleaner.cleanup(grace=NOW))
    gate.await_reached()
    cache.poll()
    content = cache._loader.load_at(cache.snapshot.position).content()
    assert cache.snapshot.content() == content
    assert set(content["retired"]) == {fingerprint("a INT")}
    users.publish([segment("orders/3", "a INT")])
    gate.open()
    _ = cleanup.result
    cache.poll()
    assert cache.schema_of("orders/3").ddl == "a INT"
    assert_promises(users)
