"""Makes the pictures of README.md: the shell on a terminal and the report in a browser.

    python docs/pictures.py

Fills a catalog in a temporary directory, runs the shell under a pseudo-terminal, and opens the
report in headless Chromium. Run it when either looks different.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

DOCS = Path(__file__).resolve().parent
STRATA = Path(sys.executable).parent / "strata"
WIDTH = 100
SHOWN = (
    ("datasources",),
    ("schemas", "--datasource", "orders"),
    ("audit", "history", "--limit", "4"),
)

# Rich's own form fetches a font from the network.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="strata-pictures-") as home:
        place = Path(home)
        fill(place)
        environment = {
            **os.environ,
            "STRATA_LOCATION": "./meta",
            "COLUMNS": str(WIDTH),
            "TERM": "xterm-256color",
        }
        picture_terminal([typed(words, place, environment) for words in SHOWN])
        report = place / "report.html"
        subprocess.run([STRATA, "report", "--html", report], cwd=place, env=environment, check=True)
        # A temporary directory says nothing to readers.
        text = report.read_text(encoding="utf-8").replace(str(place / "meta"), "/data/meta")
        report.write_text(text, encoding="utf-8")
        picture_report(report)
    return 0


def fill(home: Path) -> None:
    """Three datasources that grow for a month, one of which is dropped."""
    from catalog import Catalog, Segment
    from catalog.cli.session import start

    spark = start("strata-pictures")
    catalog = Catalog.open(spark, home / "meta", actor="nightly")
    first = datetime(2024, 1, 1, tzinfo=UTC)
    ddls = {
        "orders": "order_id BIGINT NOT NULL, amount DECIMAL(10,2)",
        "visits": "visitor STRING, at TIMESTAMP, page STRING",
        "clicks": "url STRING, at TIMESTAMP",
    }
    for day in range(30):
        if day == 12:
            ddls["orders"] += ", currency STRING"
        start_at = first + timedelta(days=day)
        catalog.publish(
            [
                Segment(
                    f"{name}/{start_at:%Y-%m-%d}-{part:02}",
                    ddl,
                    num_rows=1000 + 37 * day + 11 * part,
                    size_bytes=48_000 + 900 * day,
                    location=f"s3://lake/{name}/{start_at:%Y-%m-%d}-{part:02}.parquet",
                    starts_at=start_at,
                    ends_at=start_at + timedelta(days=1),
                )
                for name, ddl in ddls.items()
                for part in range(2 + day % 3)
            ],
            reason="daily load",
        )
        if day == 22:
            del ddls["clicks"]
            catalog.drop(datasource="clicks", actor="ann", reason="no longer kept")
    spark.stop()
    strata = [STRATA, "cleanup", "--grace", "0", "--location", home / "meta", "--actor", "upkeep"]
    subprocess.run([*strata], check=True, stdout=subprocess.DEVNULL)


def typed(words: Sequence[str], home: Path, environment: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [STRATA, *words],
        cwd=home,
        env=environment,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        close_fds=True,
    )
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    assert process.wait() == 0
    return f"$ strata {' '.join(words)}\n" + b"".join(parts).decode().replace("\r\n", "\n")


def picture_terminal(texts: Sequence[str]) -> None:
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))
    for text in texts:
        console.print(Text.from_ansi(text))
    file = DOCS / "terminal.svg"
    console.save_svg(str(file), title="strata", theme=MONOKAI, code_format=SVG, unique_id="strata")
    print(file.name, file.stat().st_size)


def picture_report(page: Path) -> None:
    file = DOCS / "report.png"
    chromium = shutil.which("chromium")
    assert chromium, "apt-get install chromium"
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    subprocess.run(
        [
            chromium,
            *flags,
            f"--user-data-dir={page.parent / 'chromium'}",
            "--window-size=1200,1150",
            f"--screenshot={file}",
            page.as_uri(),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    print(file.name, file.stat().st_size)


if __name__ == "__main__":
    sys.exit(main())
