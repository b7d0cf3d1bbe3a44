"""The file by which Spark is told its configuration at its start: arguments of a process are read
by everybody on the machine, and configuration may hold secrets.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_NAME = "spark.properties"
_COMMENTS = ("#", "!")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})


def properties_text(configuration: Mapping[str, str]) -> str:
    """Return a configuration as a file of properties, a line each."""
    lines = (f"{name}={value.translate(_ESCAPES)}\n" for name, value in configuration.items())
    return "".join(lines)


def write_properties(
    settings: Settings, folder: Path, configuration: Mapping[str, str]
) -> Path:
    """Write a configuration to a file that nobody else reads, for `--properties-file`; it is
    removed once Spark has read it, by `remove_properties`.

    It begins with `spark-defaults.conf`, which Spark reads by itself only without such a file; of
    two values of a name the last counts.
    """
    file = folder / _NAME
    content = _defaults(settings) + properties_text(configuration).encode()
    replace_bytes(file, content, mode=0o600)
    return file


def remove_properties(folder: Path) -> None:
    """Remove what `write_properties` wrote."""
    (folder / _NAME).unlink(missing_ok=True)


def default_configuration(settings: Settings) -> dict[str, str]:
    """Return what `spark-defaults.conf` says, but for escapes within it."""
    text = _CONTINUED.sub("", _defaults(settings).decode("utf-8", "replace"))
    return dict(_properties(text))


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        entry = line.strip()
        if entry and not entry.startswith(_COMMENTS):
            name, *value = _SEPARATOR.split(entry, maxsplit=1)
            yield name, value[0] if value else ""


def _defaults(settings: Settings) -> bytes:
    import pyspark

    of_spark = Path(pyspark.__file__).parent / "conf"
    file = Path(settings.cluster.spark_conf_dir or of_spark) / "spark-defaults.conf"
    # Its last line may lack an end, or say that it goes on.
    return file.read_bytes() + b"\n\n" if file.is_file() else b""
