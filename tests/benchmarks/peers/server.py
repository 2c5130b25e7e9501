"""A PostgreSQL server of our own: made, started on loopback, stopped and removed."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The server refuses to run as root.
SERVICE_USER = "postgres"
PROGRAMS = ("initdb", "pg_ctl", "postgres")

LOOPBACK = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}


def lacking() -> str | None:
    """Why no server can be started here, or nothing if one can."""
    if programs() is None:
        return f"no PostgreSQL server is installed ({', '.join(PROGRAMS)})"
    if os.geteuid() == 0 and service_user() is None:
        return f"it does not run as root, and there is no user {SERVICE_USER}"
    return None


def version() -> str:
    """The release that is installed."""
    text = run("postgres", "--version")
    found = re.search(r"\d+(\.\d+)*", text)
    return found[0] if found else text


class Server:
    """A server with a data directory of its own; `conninfo` says how to reach it."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        # Folders of root are closed to the user that the server runs as.
        parent = None if os.geteuid() == 0 else folder
        self._home = Path(tempfile.mkdtemp(prefix="strata-postgres-", dir=parent))
        self._data = self._home / "data"
        self._settings = {**LOOPBACK, **settings}
        self._port = _free_port()
        # A password even on loopback: other users of the machine reach it too.
        self._password = secrets.token_hex(16)

    @property
    def conninfo(self) -> str:
        return (
            f"host=127.0.0.1 port={self._port} user=strata password={self._password} "
            "dbname=postgres"
        )

    def start(self) -> None:
        password_file = self._home / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password)
        if os.geteuid() == 0:
            for path in (self._home, password_file):
                shutil.chown(path, SERVICE_USER)
        run(
            "initdb",
            *("--pgdata", str(self._data), "--username", "strata"),
            *("--auth", "scram-sha-256", "--pwfile", str(password_file)),
            *("--encoding", "UTF8", "--locale", "C"),
        )
        password_file.unlink()
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        run(
            "pg_ctl",
            *("start", "--wait", "--silent", "--pgdata", str(self._data)),
            *("--log", str(self._home / "log"), "--options", f"-p {self._port} {options}"),
        )

    def stop(self) -> None:
        """Stops the server, by the process id in its own data directory, and removes its files."""
        if (self._data / "postmaster.pid").exists():
            run("pg_ctl", "stop", "--wait", "--mode", "fast", "--pgdata", str(self._data))
        shutil.rmtree(self._home)


def programs() -> Path | None:
    """The directory of the newest server that is installed."""
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(debian, key=lambda path: _number(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    for folder in [*newest_first, *([Path(on_path).resolve().parent] if on_path else [])]:
        if all(os.access(folder / program, os.X_OK) for program in PROGRAMS):
            return folder
    return None


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else 0.0


def service_user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None


def run(program: str, *arguments: str) -> str:
    """Runs a program of the server, under the service user if we are root."""
    folder = programs()
    assert folder is not None
    user = service_user() if os.geteuid() == 0 else None
    identity: dict[str, Any] = (
        {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    )
    # A file, not a pipe: the server inherits it from pg_ctl, and a pipe would never end.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(folder / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=False,
            **identity,
        )
        output.seek(0)
        text = output.read().decode(errors="replace").strip()
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {text}")
    return text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
