"""What can be set for a catalog, with the defaults that most want."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, field

from catalog.files.opening import Files, OpenFile
from catalog.table.layout import DEFAULT_SEGMENT_BUCKETS


@dataclass(frozen=True)
class Settings:
    """Choices that hold for an open catalog.

    Attributes:
        deadline: seconds that a call may wait for others before it gives up; the running of its
            own commit does not count.
        segment_buckets: partitions for segments, used when the catalog is created. Writers of
            datasources in different buckets never wait for each other.
        file_lock: hold an operating-system lock on local disk. Without it two processes damage
            the table; only writers inside one JVM may go without.
        open_file: opens the data file at a path, on the driver and on executors, where it has to
            be importable; by default through pyarrow, with the credentials of the environment.
        announcements: the folder in which streaming jobs announce the schemas of open segments; by
            default beside the table. A catalog in a metastore schema has no such place and needs
            one, such as a volume path.
    """

    deadline: float = 120.0
    segment_buckets: int = DEFAULT_SEGMENT_BUCKETS
    file_lock: bool = True
    open_file: OpenFile = field(default_factory=Files)
    announcements: str | None = None


def user() -> str:
    """Whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        return f"uid {os.getuid()}"
