"""Operations for the tests, in one line each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.commit.operation_rows import OperationRow, OperationState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(hours=1)


def operation(id: str, state: str = "open", epoch: int | None = None, **more: Any) -> OperationRow:
    """An operation, ready ones in the order of their epochs."""
    return OperationRow(
        **{
            "id": id,
            "name": f"work {id}",
            "state": OperationState(state),
            "parts": 2,
            "owner": "ann",
            "lease": LEASE,
            "lease_until": NOW + LEASE,
            "epoch": epoch,
            "order": epoch,
            "commit_id": f"commit of {id}",
            "opened_at": NOW,
            **more,
        }
    )
