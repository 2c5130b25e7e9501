"""`python -m catalog` is the shell, for environments without its script on the path."""

import sys

from catalog.cli.shell import main

if __name__ == "__main__":
    sys.exit(main())
