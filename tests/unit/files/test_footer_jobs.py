"""Files that end the job which reads them: put aside alone, and never for somebody else's fault."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catalog.errors import GaveUp, UnreadableFiles
from catalog.files.footer import Footer, described_apart
from catalog.files.paths import Place
from catalog.schema import Schema

FOOTER = Footer(Schema.of("a INT"), 1, 1)
PLACES = [Place(f"/{n}.parquet", "parquet") for n in range(8)]


class Cluster:
    """Describes places in jobs, of which those with poison fail."""

    def __init__(self, *poison: Place) -> None:
        self.poison = poison
        self.jobs: list[int] = []

    def describe(self, places: Sequence[Place]) -> list[Footer | str]:
        self.jobs.append(len(places))
        if set(self.poison) & set(places):
            raise RuntimeError("worker crashed\nat line 1")
        return [FOOTER if place in PLACES else "there is no such file" for place in places]


def test_what_no_file_ends_is_one_job() -> None:
    cluster = Cluster()
    assert described_apart(cluster.describe, PLACES) == [FOOTER] * 8
    assert cluster.jobs == [8]
    assert described_apart(cluster.describe, []) == []
    assert cluster.jobs == [8]


@pytest.mark.parametrize("bad", PLACES, ids=lambda place: place.path)
def test_a_file_that_ends_its_job_is_told_apart_from_the_rest(bad: Place) -> None:
    cluster = Cluster(bad)
    outcomes = described_apart(cluster.describe, PLACES)
    assert outcomes == [
        "reading it failed: worker crashed" if place == bad else FOOTER for place in PLACES
    ]
    # The whole, two for each halving, and a file that cannot be there, to know who is to blame.
    assert len(cluster.jobs) == 1 + 2 * 3 + 1


def test_files_that_end_their_jobs_are_put_aside_however_many_follow_each_other() -> None:
    outcomes = described_apart(Cluster(*PLACES[2:]).describe, PLACES)
    assert outcomes[:2] == [FOOTER, FOOTER]
    assert set(outcomes[2:]) == {"reading it failed: worker crashed"}


@pytest.mark.parametrize("number", [1, 8])
def test_a_spark_that_runs_no_job_at_all_is_an_error_and_no_file_is_to_blame(number: int) -> None:
    def describe(places: Sequence[Place]) -> list[Footer | str]:
        raise RuntimeError("no module named pyarrow")

    with pytest.raises(UnreadableFiles, match="no module named pyarrow"):
        described_apart(describe, PLACES[:number])


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("gone"),
        RuntimeError("[SPARK_JOB_CANCELLED] Job 7 cancelled as part of cancellation of all jobs"),
        GaveUp("others were busy"),
    ],
    ids=["lost", "cancelled", "ours"],
)
@pytest.mark.parametrize("number", [1, 8])
def test_what_is_not_about_the_files_is_raised_and_not_tried_again(
    error: Exception, number: int
) -> None:
    jobs = 0

    def describe(places: Sequence[Place]) -> list[Footer | str]:
        nonlocal jobs
        jobs += 1
        raise error

    with pytest.raises(type(error)) as raised:
        described_apart(describe, PLACES[:number])
    assert (raised.value, jobs) == (error, 1)


def test_a_cancelled_question_about_the_cluster_blames_nobody() -> None:
    def describe(places: Sequence[Place]) -> list[Footer | str]:
        raise RuntimeError("crashed" if places == PLACES[:1] else "[SPARK_JOB_CANCELLED] by me")

    with pytest.raises(RuntimeError, match="SPARK_JOB_CANCELLED"):
        described_apart(describe, PLACES[:1])
