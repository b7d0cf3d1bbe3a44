"""An engine where no Spark can be had: most of an erasure needs none."""

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.erasure.people import no_spark


@pytest.fixture
def engine(settings: Settings) -> Engine:
    """An engine on a catalog in SQLite, without Spark."""
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")
