"""The words for backups and rollbacks: what their answers show."""

from __future__ import annotations

from catalog.backups.backup import BackupReport
from catalog.backups.difference import Changed
from catalog.backups.manifest import ContentDigest
from catalog.backups.restore import RestoreReport
from catalog.backups.rollback import RollbackReport
from catalog.cli.commands.backups import shown_backup, shown_restore, shown_rollback

ENTRIES = {"segment": ContentDigest(3, "0f"), "schema": ContentDigest(1, "a0")}


def test_a_backup_shows_what_it_holds() -> None:
    answer = shown_backup(BackupReport("/b", 7, ENTRIES, ContentDigest(2, "c")))
    assert dict(answer.facts) == {
        "path": "/b",
        "version": 7,
        "rows": 4,
        "runs": 2,
        "repeated": False,
        "dry_run": False,
    }
    assert answer.tables["contents"].rows == (("schema", 1, "a0"), ("segment", 3, "0f"))
    assert answer.figures == {"rows": 4}
    again = shown_backup(BackupReport("/b", 7, ENTRIES, repeated=True))
    assert (again.facts["runs"], again.note) == (0, "It existed already, and was checked.")


def test_a_restore_shows_where_the_catalog_is_and_what_came_back() -> None:
    answer = shown_restore(RestoreReport("/b", "/data/meta", 2, 7, 64, ENTRIES, runs=2))
    assert (answer.facts["location"], answer.facts["backup_version"]) == ("/data/meta", 7)
    assert (answer.facts["rows"], answer.facts["segment_buckets"]) == (4, 64)
    assert answer.note == "The catalog is ready."


def test_a_rollback_shows_kinds_and_the_first_keys() -> None:
    changes = (
        Changed("object", updated=1, first=(("update", "db/x"),)),
        Changed("segment", 1, 0, 2, (("insert", "a/1"), ("delete", "a/2"))),
    )
    answer = shown_rollback(RollbackReport(9, "c", "version 3", 6, changes, retries=1), 1)
    assert (answer.facts["rows"], answer.facts["beside"], answer.facts["retries"]) == (4, 2, 1)
    assert answer.tables["changes"].rows == (("object", 0, 1, 0), ("segment", 1, 0, 2))
    assert answer.tables["keys"].rows[1] == ("segment", "insert", "a/1")
    assert answer.figures == {"rows": 4, "conflicts_retried": 1}
    nothing = shown_rollback(RollbackReport(9, "", "version 9", 9), 0)
    assert (nothing.facts["commit_id"], nothing.note) == (
        None,
        "The contents are the same already.",
    )
