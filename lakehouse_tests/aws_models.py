"""What boto3 knows of AWS, read once for each worker.

Each of its sessions reads megabytes of JSON anew, and PyIceberg makes one for each catalog: 50 ms of
the processor.
"""

from functools import cache
from typing import Any

import pytest


def read_once(patch: pytest.MonkeyPatch) -> None:
    """Let all sessions of this process share what the first one reads."""
    from botocore.loaders import JSONFileLoader

    read, loader = JSONFileLoader.load_file, JSONFileLoader()

    @cache
    def read_file(path: str) -> Any:
        return read(loader, path)

    patch.setattr(JSONFileLoader, "load_file", lambda _, path: read_file(path))
