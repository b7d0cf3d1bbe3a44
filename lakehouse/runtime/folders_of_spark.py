"""Spark's folders outside of the home, by LAKEHOUSE_SPARK_CONF and SPARK_LOCAL_DIRS."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakehouse.settings import Settings

_FOLDERS = ("spark.local.dir", "spark.eventLog.dir", "spark.sql.warehouse.dir")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@")


def folders_outside(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the names of settings and their folders outside of the home."""
    configuration = dict(settings.cluster.configuration)
    folders = {name: configuration.get(name, "") for name in _FOLDERS}
    folders["SPARK_LOCAL_DIRS"] = settings.cluster.spark_local_dirs or ""
    for name, value in folders.items():
        for folder in map(str.strip, value.split(",")):
            if folder and not _is_in_home(settings, folder):
                yield name, _PASSWORD.sub("//", folder)


def _is_in_home(settings: Settings, folder: str) -> bool:
    place = urlsplit(folder)
    if place.scheme not in ("", "file"):
        return False
    path = Path(unquote(place.path) if place.scheme else folder)
    return path.resolve().is_relative_to(settings.home.resolve())
