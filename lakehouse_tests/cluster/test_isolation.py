"""The workers see no file of the driver's; without that, what runs on them shows nothing."""

import sys
from pathlib import Path

import pytest

from lakehouse_tests.cluster.spark_cluster import Part
from lakehouse_tests.processes import ROOT, engine_of_process, start

pytestmark = pytest.mark.e2e


def read_lines(file: str) -> dict[str, str | int]:
    """Read a file by tasks of Spark: the number of its lines, or what a task said."""
    try:
        lines = engine_of_process().spark.read.text(f"file://{file}").collect()
    except Exception as error:
        return {"error": str(error)}
    return {"lines": len(lines)}


@pytest.mark.scenario
def test_a_task_cannot_open_a_file_of_the_drivers(cluster, home, tmp_path):
    file = tmp_path / "drivers.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")

    here = start(home, read_lines, file=str(file))
    there = start(home, read_lines, env=cluster.client_environment, file=str(file))

    assert here.result() == {"lines": 2}
    assert f"File file:{file} does not exist" in there.result()["error"]


def names_seen(worker: Part, folder: Path) -> set[str]:
    """Return the names of what a worker sees in a folder."""
    root = Path("/proc") / str(worker.process.pid) / "root"
    return {path.name for path in (root / str(folder).lstrip("/")).iterdir()}


def test_a_worker_sees_no_folder_of_another(cluster):
    for worker in cluster.workers:
        assert names_seen(worker, cluster.folder) == {worker.folder.name}


def test_a_worker_sees_neither_the_clone_nor_jars(cluster, settings):
    cache = settings.cache_dir.expanduser()
    environment = {folder.name for folder in ROOT.iterdir() if folder == Path(sys.prefix)}

    assert {"lakehouse", *environment} < {path.name for path in ROOT.iterdir()}
    assert any(cache.rglob("*.jar"))
    for worker in cluster.workers:
        assert names_seen(worker, ROOT) == environment
        # Where a Java needs a wrapper, that is there.
        assert names_seen(worker, cache) <= {"java"}
