"""Publishes the segments of a manifest, all of them or none.

    spark-submit --properties-file conf/local.conf --py-files dist/strata_catalog-….whl \\
        jobs/publish.py --help
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from catalog.cli.shell import run_job


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_job("publish", argv)


if __name__ == "__main__":
    sys.exit(main())
