"""One publishing process of `crowds.processes`: reads seconds, publishes so long, says how many."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from catalog import Catalog, Segment
from tests import sessions
from tests.benchmarks import data
from tests.benchmarks.scale import SCALES, Scale


def main(location: str, number: int, scale: Scale) -> int:
    """Warms up, says so, then serves one line of input after the other."""
    out = sys.stdout
    # Spark and its launcher print to stdout too.
    sys.stdout = sys.stderr
    settings = {} if scale.judged else sessions.SHORT_LIVED
    spark = sessions.start("local[2]", defaults=scale.judged, **settings)
    catalog = Catalog.open(spark, location, actor=f"process {number}")
    numbers = data.counter(number * 100_000_000)

    def publish() -> None:
        segment_id = f"process_{number}/{next(numbers):09d}"
        catalog.publish([Segment(segment_id, data.schema(number), num_rows=1)])

    for _ in range(scale.warm(10)):
        publish()
    answer = {"published": 0, "seconds": 0.0, "failures": []}
    print(json.dumps(answer), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(_serve(publish, float(line))), file=out, flush=True)
    spark.stop()
    return 0


def _serve(publish: Callable[[], None], seconds: float) -> dict[str, Any]:
    began = time.perf_counter()
    published = 0
    failures: list[str] = []
    while time.perf_counter() < began + seconds:
        try:
            publish()
            published += 1
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}"[:200])
    took = time.perf_counter() - began
    return {"published": published, "seconds": took, "failures": failures}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), SCALES[sys.argv[3]]))
