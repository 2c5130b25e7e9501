"""Figures as a Prometheus text file, for a textfile collector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.errors import InvalidInput


@dataclass(frozen=True)
class Gauge:
    """A figure with its name and description."""

    name: str
    text: str
    value: float


def check_exposition() -> None:
    """Raises if prometheus-client is not installed."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise InvalidInput(
            "A metrics file needs prometheus-client: pip install 'strata-catalog[shell]'."
        ) from None


def write_gauges(
    file: str | os.PathLike[str], gauges: Iterable[Gauge], labels: Mapping[str, str]
) -> None:
    """Replaces the file with these figures, all with the same labels."""
    check_exposition()
    from prometheus_client import CollectorRegistry, write_to_textfile
    from prometheus_client import Gauge as Series

    registry = CollectorRegistry()
    for gauge in gauges:
        series = Series(gauge.name, gauge.text, list(labels), registry=registry)
        (series.labels(**labels) if labels else series).set(float(gauge.value))
    write_to_textfile(os.fspath(file), registry)
