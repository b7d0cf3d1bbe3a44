"""A home in which a person stands in every place that is no table and no delivered file; each is
made as the lakehouse makes it.
"""

import gzip
import os
import pickle
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing

from lakehouse.settings import Settings
from lakehouse.spark.spark_folders import temporary_folder
from lakehouse_tests.privacy.places.a_person import EMAIL, PASSPORT


def put(settings: Settings, name: str, content: bytes) -> None:
    file = settings.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _free_page(settings: Settings) -> None:
    settings.make_home()
    with closing(sqlite3.connect(settings.home / "own.db")) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE notes (note TEXT)")
        connection.execute("INSERT INTO notes VALUES (?)", (EMAIL * 2000,))
        connection.execute("DELETE FROM notes")
        connection.commit()


def _spill(settings: Settings) -> None:
    name, _, _ = temporary_folder(settings).name.rpartition("-")
    put(settings, f"tmp/{name}-1/blockmgr-1/0c/shuffle_1_3_0.data", EMAIL.encode())


def _copies(settings: Settings) -> None:
    put(settings, ".ad-hoc-1/inbox/fruits/a.csv", EMAIL.encode())
    for path in (settings.home / ".ad-hoc-1").rglob("*"):
        os.utime(path, (1, 1))
    os.utime(settings.home / ".ad-hoc-1", (1, 1))


def _file(name: str, content: bytes) -> Callable[[Settings], None]:
    return lambda settings: put(settings, name, content)


PLACES: Mapping[str, Callable[[Settings], None]] = {
    "Spark's log": _file("logs/spark.log", f"WARN {EMAIL}\n".encode()),
    "an older log": _file("logs/spark.log.1", f"WARN {PASSPORT}\n".encode()),
    "a compute log": _file("dagster/storage/r/compute_logs/a.err", EMAIL.encode()),
    "an IO manager": _file("dagster/storage/r/result", pickle.dumps([EMAIL])),
    "a compressed file": _file("logs/spark.log.2.gz", gzip.compress(EMAIL.encode())),
    "a note of a process": _file("dev.json", f'{{"url": "{PASSPORT}"}}'.encode()),
    "free pages": _free_page,
    "a spill": _spill,
    "staged rows": _file("staging/fruits/1/rows/0.parquet", EMAIL.encode()),
    "copies of named files": _copies,
    "half of a file": _file("alerts/.incidents.json-a1b2c3d4", EMAIL.encode()),
    "a record of alerts": _file("alerts.jsonl", f'{{"title": "{PASSPORT}"}}\n'.encode()),
    "open incidents": _file("alerts/incidents.json", f'{{"open": "{PASSPORT}"}}'.encode()),
    "reports": _file("alerts/reports.json", f'[{{"title": "{PASSPORT}"}}]'.encode()),
    "anything else": _file("exports/people.csv", f"customer_id,email\n7,{EMAIL}\n".encode()),
}
