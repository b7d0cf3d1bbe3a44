"""S3 addresses: `s3://bucket/key`."""

import re

_ADDRESS = re.compile(r"\s*s3a?:(?://([^/]*)/?(.*))?", re.IGNORECASE | re.DOTALL)


def bucket_and_key(address: str) -> tuple[str, str] | None:
    """Return the bucket and the key of an address, each possibly empty; None for other text.

    A key may contain characters that end the path of a URL, such as `#`.
    """
    parts = _ADDRESS.match(address)
    return (parts[1] or "", parts[2] or "") if parts else None
