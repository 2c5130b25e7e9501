"""Retires schemas that nothing uses, and purges those retired long ago.

    spark-submit --properties-file conf/local.conf --py-files dist/strata_catalog-….whl \\
        jobs/cleanup.py --help
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from catalog.cli.shell import run_job


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_job("cleanup", argv)


if __name__ == "__main__":
    sys.exit(main())
