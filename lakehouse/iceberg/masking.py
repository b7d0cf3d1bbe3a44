"""How personal values are shown: as a keyed hash, so that equal ones can be seen to be equal and none can be read."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from typing import Any


def mask(key: bytes, value: object) -> str | None:
    """Return `masked:` and twelve hex digits of the value's keyed hash; None stays None."""
    if value is None:
        return None
    return "masked:" + hmac.new(key, str(value).encode(), hashlib.sha256).hexdigest()[:12]


def mask_row(key: bytes, row: Mapping[str, Any], personal: Collection[str]) -> dict[str, Any]:
    """Return a row with its personal values masked."""
    return {name: mask(key, value) if name in personal else value for name, value in row.items()}
