"""PySpark calls exist on Spark 3.5, except in code for Spark 4."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPARK_4_ALONE = {
    "lakehouse/iceberg/frames/frames.py": ["createDataFrame", '"DataFrame"'],
    "lakehouse/iceberg/frames/pyspark_internals.py": [
        "pyspark.sql.connect.client.retries",
        '"DefaultPolicy"',
        '"RetryPolicyState"',
        '"int | None"',
    ],
    "lakehouse/iceberg/frames/parallel_jobs.py": ["inheritable_thread_target"],
    "lakehouse/spark/executors.py": ["registerProgressHandler"],
    "lakehouse/orchestration/io_manager.py": ['"Column" not callable', '"DataFrame"'],
    "lakehouse/spark/spark_session.py": ["pyspark.logger"],
}
"""By file, what mypy finds of PySpark 3.5 in code that does not run there."""


@pytest.mark.unit
@pytest.mark.long
def test_what_spark_3_5_lacks_is_called_on_spark_4_alone(tmp_path: Path) -> None:
    python = ROOT / ".venv-glue-5-0" / "bin" / "python"
    if not python.is_file():
        assert not os.environ.get("REQUIRE_SPARK_3_5"), ".ci/spark_line has not run."
        pytest.skip("PySpark 3.5 is not here; `make test-glue` installs it")
    options = ["--python-executable", str(python), "--cache-dir", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "lakehouse"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(lakehouse/\S+?):\d+: error: (.*)$", ran.stdout, re.MULTILINE)

    assert found, ran.stdout + ran.stderr
    assert [line for line in found if not is_known(*line)] == []
    gone = [
        (file, known)
        for file, all_known in SPARK_4_ALONE.items()
        for known in all_known
        if not any(file == other and known in error for other, error in found)
    ]
    assert gone == []


def is_known(file: str, error: str) -> bool:
    """Whether it is said of a file that it has this."""
    return any(known in error for known in SPARK_4_ALONE.get(file, ()))
