"""Spark's temporary folders: in the home, private, and removed after their process."""

import os
import socket
import subprocess
import sys

from lakehouse.settings import Settings
from lakehouse.spark.spark_folders import prepare_temporary_folder, temporary_folder


def test_it_is_in_the_home_and_closed_to_others(settings: Settings) -> None:
    prepare_temporary_folder(settings)

    folder = temporary_folder(settings)
    assert folder.parent == settings.home / "tmp"
    assert [path.stat().st_mode & 0o777 for path in (settings.home, folder.parent, folder)] == [
        0o700
    ] * 3


def test_a_server_and_the_process_that_starts_it_have_folders_of_their_own(settings):
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
