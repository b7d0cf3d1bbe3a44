"""The properties file from which Spark reads its configuration at its start.

Arguments of a process are visible to all users of the machine, and configuration can hold secrets.
"""

from collections.abc import Mapping
from pathlib import Path

from lakehouse.runtime.session_configuration import is_default
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_NAME = "spark.properties"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})


def properties_text(configuration: Mapping[str, str]) -> str:
    """Return a configuration in the format of a properties file."""
    lines = (f"{name}={value.translate(_ESCAPES)}\n" for name, value in configuration.items())
    return "".join(lines)


def write_properties(
    settings: Settings, folder: Path, configuration: Mapping[str, str]
) -> Path:
    """Write a configuration to a private file for `--properties-file`.

    The last value of a name applies, so the file contains the lakehouse's defaults, then
    `spark-defaults.conf`, which Spark does not read in addition to this file, then the rest.
    Remove the file with `remove_properties` after Spark has read it.
    """
    defaults = {
        name: value for name, value in configuration.items() if is_default(settings, name)
    }
    rest = {name: value for name, value in configuration.items() if name not in defaults}
    file = folder / _NAME
    parts = (
        properties_text(defaults).encode(),
        spark_defaults(settings),
        properties_text(rest).encode(),
    )
    replace_bytes(file, b"".join(parts), mode=0o600)
    return file


def remove_properties(folder: Path) -> None:
    """Remove the file of `write_properties`."""
    (folder / _NAME).unlink(missing_ok=True)


def spark_defaults(settings: Settings) -> bytes:
    """Return the content of `spark-defaults.conf`; empty if there is none."""
    import pyspark

    installed = Path(pyspark.__file__).parent / "conf"
    file = Path(settings.cluster.spark_conf_dir or installed) / "spark-defaults.conf"
    # Its last line may lack a line end, or end with a continuation.
    return file.read_bytes() + b"\n\n" if file.is_file() else b""
