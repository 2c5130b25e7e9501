"""The broadcast cache on real executors, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions import ROOT

SCRIPT = """
import os, sys
os.environ["PYTHONPATH"] = {root!r}
from pyspark.sql import functions as F
from catalog import Catalog
from tests import sessions
from tests.unit.builders import segment

spark = sessions.start(
    "local-cluster[2,1,1024]",
    **{{**sessions.SHORT_LIVED, "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}},
)
spark.sparkContext.setLogLevel("OFF")
catalog = Catalog.open(spark, {location!r})
catalog.publish([segment(f"orders/{{n}}", f"c{{n % 3}} INT", rows=n) for n in range(100)])
handle = catalog.cache().broadcast()

@F.udf("string")
def answer(segment_id):
    return f"{{os.getppid()}} {{handle.num_rows(segment_id)}} {{handle.version}}"

rows = spark.range(100).repartition(4).selectExpr("id", "concat('orders/', id) s")
said = [(row.id, row.a.split()) for row in rows.select("id", answer("s").alias("a")).collect()]
assert all(int(rows) == number for number, (_, rows, _) in said)
assert {{version for _, (_, _, version) in said}} == {{"1"}}
assert os.getpid() not in {{int(parent) for _, (parent, _, _) in said}}
print("ANSWERED BY", len({{parent for _, (parent, _, _) in said}}), "PARENTS")
spark.stop()
"""


@pytest.mark.stress
def test_executors_in_processes_of_their_own_answer_from_the_broadcast(tmp_path: Path) -> None:
    script = SCRIPT.format(root=str(ROOT), location=str(tmp_path / "meta"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert "ANSWERED BY" in done.stdout, done.stdout + done.stderr[-3000:]
