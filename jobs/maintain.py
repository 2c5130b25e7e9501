"""Compacts the tables and removes files that no reader needs.

    spark-submit --properties-file conf/local.conf --py-files dist/strata_catalog-….whl \\
        jobs/maintain.py --help
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from catalog.cli.shell import run_job


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_job("maintain", argv)


if __name__ == "__main__":
    sys.exit(main())
