"""What can be set for a catalog, with the defaults that most want."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.delta.layout import DEFAULT_SEGMENT_BUCKETS
from catalog.files.storage import Files, OpenFile


@dataclass(frozen=True)
class Settings:
    """Choices that hold for an open catalog.

    Attributes:
        deadline: seconds that a call may wait for others before it gives up; the running of its
            own commit does not count. If it is not given, what the catalog has stored, or 120.
        segment_buckets: partitions for segments, used when the catalog is created. Writers of
            datasources in different buckets never wait for each other.
        file_lock: hold an operating-system lock on local disk. Without it two processes damage
            the table; only writers inside one JVM may go without.
        open_file: opens the data file at a path, on the driver and on executors, where it has to
            be importable; by default through pyarrow, with the credentials of the environment.
        announcements: the folder in which streaming jobs announce the schemas of open segments; by
            default next to the table. A catalog in a metastore schema has no such place and needs
            one, such as a volume path.
        given: settings by name, such as `cleanup.grace`, that hold over what the catalog has
            stored for as long as it is open.
        fallback: settings by name that hold where the catalog has stored nothing, as long as no
            configuration file was taken over.
    """

    deadline: float | None = None
    segment_buckets: int = DEFAULT_SEGMENT_BUCKETS
    file_lock: bool = True
    open_file: OpenFile = field(default_factory=Files)
    announcements: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    fallback: Mapping[str, Any] = field(default_factory=dict)


def user() -> str:
    """Whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        return f"uid {os.getuid()}"
