"""Folders of Spark's spill files, event logs and own tables: in the home, unless its configuration
sets others.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakehouse.runtime.session_configuration import submit_arguments
from lakehouse.runtime.spark_properties import spark_defaults
from lakehouse.settings import Settings

_LOCAL, _TABLES = "spark.local.dir", "spark.sql.warehouse.dir"
_LOCAL_OF_ENVIRONMENT = "SPARK_LOCAL_DIRS"
_LISTS = (_LOCAL_OF_ENVIRONMENT, _LOCAL)
_LOGS_EVENTS, _EVENTS = "spark.eventLog.enabled", "spark.eventLog.dir"
_EVENTS_BY_ITSELF = "file:///tmp/spark-events"
_PROPERTY = re.compile(r"^[ \t]*(spark\.[\w.-]+)[ \t]*[=: \t][ \t]*(.*?)[ \t]*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@")


def folders_outside(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the folders outside of the home that a Spark of this process uses, each after the name
    of its setting.
    """
    cluster = settings.cluster
    defaults = _CONTINUED.sub("", spark_defaults(settings).decode("utf-8", "replace"))
    configuration = dict(_PROPERTY.findall(defaults))
    for word in submit_arguments(settings):
        name, _, value = word.removeprefix("--conf=").partition("=")
        configuration[name] = value
    is_local = settings.spark_master.startswith("local")
    set_here = (_LOCAL, _TABLES) if is_local else (_TABLES,)
    configuration = {
        name: value for name, value in configuration.items() if name not in set_here
    }
    # Its precedence is higher than that of the lakehouse.
    configuration |= dict(cluster.configuration)
    if configuration.get(_LOGS_EVENTS, "").strip().lower() == "true":
        configuration.setdefault(_EVENTS, _EVENTS_BY_ITSELF)
    else:
        configuration.pop(_EVENTS, None)
    if cluster.spark_local_dirs:
        # Spark prefers it to its configuration.
        configuration.pop(_LOCAL, None)
        configuration[_LOCAL_OF_ENVIRONMENT] = cluster.spark_local_dirs
    for name in (_LOCAL_OF_ENVIRONMENT, _LOCAL, _EVENTS, _TABLES):
        value = configuration.get(name, "")
        folders = value.split(",") if name in _LISTS else [value]
        for folder in map(str.strip, folders):
            if folder and not _is_in_home(settings, folder):
                yield name, _PASSWORD.sub("//", folder)


def _is_in_home(settings: Settings, folder: str) -> bool:
    place = urlsplit(folder)
    if place.scheme not in ("", "file"):
        return False
    path = Path(unquote(place.path) if place.scheme else folder)
    return path.resolve().is_relative_to(settings.home.resolve())
