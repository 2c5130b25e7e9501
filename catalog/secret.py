"""References to secrets: where one is kept, in place of the secret itself (pure)."""

from __future__ import annotations

import re
from typing import Any

# The characters that scopes and keys of secret stores have.
_REFERENCE = re.compile(r"secret://[A-Za-z0-9_.@-]+/[A-Za-z0-9_.-]+")


def is_reference(value: Any) -> bool:
    """Whether a value says where a secret is kept, as `secret://scope/name`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None
