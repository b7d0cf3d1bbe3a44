"""Commits get their snapshot properties in one way: `commit/snapshot_properties.py` alone names
Spark's options for them.
"""

from pathlib import Path

import pytest

import lakehouse

pytestmark = pytest.mark.unit

_HOME = Path(lakehouse.__file__).parent


def test_one_module_names_the_options_of_spark():
    naming = [
        file.relative_to(_HOME).as_posix()
        for file in _HOME.rglob("*.py")
        if "snapshot-property" in file.read_text(encoding="utf-8")
    ]
    assert naming == ["iceberg/commit/snapshot_properties.py"]
