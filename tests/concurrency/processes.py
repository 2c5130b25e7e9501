"""A module in a process of its own, and the JSON lines that it says: started, signalled, ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests.sessions import ROOT

PATIENCE = 300.0


class Process:
    """What was started with `python -m`. Whatever it says that is no JSON object is passed over."""

    def __init__(self, module: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def lines(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                yield json.loads(line)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> list[dict[str, Any]]:
        """Ends it in the middle; gives what it had still said.

        Its JVM may go on for a moment. It has the same stdout, so the end of that is the end of
        both: nothing is written any more.
        """
        self.signal(signal.SIGKILL)
        said = list(self.lines())
        self.wait()
        return said

    def wait(self) -> int:
        return self._process.wait(timeout=PATIENCE)

    def end(self) -> None:
        """Leaves nothing behind, however the test ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
