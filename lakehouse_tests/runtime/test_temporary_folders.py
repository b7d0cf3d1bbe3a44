"""Spark's temporary folders: in the home, closed to others, and removed once their process is
gone.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

from lakehouse.runtime.session_configuration import session_configuration
from lakehouse.runtime.temporary_folders import prepare_temporary_folder, temporary_folder
from lakehouse.settings import Settings


def test_it_is_in_the_home_and_closed_to_others(settings: Settings) -> None:
    prepare_temporary_folder(settings)

    folder = temporary_folder(settings)
    assert folder.parent == settings.home / "tmp"
    assert [path.stat().st_mode & 0o777 for path in (settings.home, folder.parent, folder)] == [
        0o700
    ] * 3


def test_spark_is_told_of_it_also_where_its_path_has_spaces_and_quotes(
    settings: Settings, tmp_path: Path
) -> None:
    from dataclasses import replace

    odd = replace(settings, home=tmp_path / 'a "b" c')
    given = session_configuration(odd)

    assert given["spark.local.dir"] == str(temporary_folder(odd))
    told = str(temporary_folder(odd)).replace('"', '\\"')
    assert f'"-Djava.io.tmpdir={told}"' in given["spark.driver.extraJavaOptions"]


def test_a_cluster_spills_where_it_says(settings: Settings) -> None:
    from dataclasses import replace

    assert "spark.local.dir" not in session_configuration(
        replace(settings, spark_master="spark://10.0.0.1:7077")
    )


def test_a_server_and_the_process_that_starts_it_have_folders_of_their_own(
    settings: Settings,
) -> None:
    prepare_temporary_folder(settings)
    (temporary_folder(settings) / "spilled").touch()
    prepare_temporary_folder(settings, is_server=True)

    assert (temporary_folder(settings) / "spilled").exists()
    assert temporary_folder(settings, is_server=True).is_dir()


def test_what_dead_processes_left_is_removed_and_nothing_else(settings: Settings) -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    host = socket.gethostname()
    dead, reused = f"{host}-{done.pid}-1700000000", f"{host}-{os.getpid()}-1700000000-server"
    elsewhere, other = f"not-{host}-1-1700000000", "notes"
    for name in (dead, reused, elsewhere, other):
        (settings.home / "tmp" / name / "deeper").mkdir(parents=True)

    prepare_temporary_folder(settings)

    left = {path.name for path in (settings.home / "tmp").iterdir()}
    assert left == {elsewhere, other, temporary_folder(settings).name}
