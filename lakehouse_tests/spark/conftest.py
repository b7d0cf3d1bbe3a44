"""What tests of the runtime share."""

import os

import pytest


@pytest.fixture(autouse=True)
def java_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the environment, in which `jvm.prepare` names a Java."""
    for name in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON"):
        before = os.environ.get(name)
        monkeypatch.setenv(name, before or "")
        if before is None:
            monkeypatch.delenv(name)
