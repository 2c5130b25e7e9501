"""Settings of the unit tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: timings live in the benchmarks.
settings.register_profile("strata", deadline=None)
settings.load_profile("strata")
