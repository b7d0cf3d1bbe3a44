"""The file by which Spark is told its configuration at its start: arguments of a process are read
by everybody on the machine, and configuration may hold secrets.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lakehouse.errors import SettingsError
from lakehouse.runtime.submitted_arguments import SubmittedArguments
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

_NAME = "spark.properties"
_COMMENTS = ("#", "!")
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


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
    """Return what `spark-defaults.conf` says, or the file that PYSPARK_SUBMIT_ARGS names in its
    place.

    :raises SettingsError: when that one is not there.
    """
    text = _CONTINUED.sub("", _defaults(settings).decode("utf-8", "replace"))
    return dict(_properties(text))


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        entry = line.strip()
        if entry and not entry.startswith(_COMMENTS):
            name, *value = _SEPARATOR.split(entry, maxsplit=1)
            yield name, _ESCAPED.sub(_character, value[0]) if value else ""


def _character(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _CONTROLS.get(letter, letter)


def told_configuration(settings: Settings) -> dict[str, str]:
    """Return what others tell a Spark of this process: by `spark-defaults.conf`, as administrators
    do, and before it by PYSPARK_SUBMIT_ARGS.
    """
    submitted = SubmittedArguments.parse(settings.cluster.pyspark_arguments)
    return default_configuration(settings) | submitted.configuration


def _defaults(settings: Settings) -> bytes:
    file = _file_of_defaults(settings)
    # Its last line may lack an end, or say that it goes on.
    return file.read_bytes() + b"\n\n" if file.is_file() else b""


def _file_of_defaults(settings: Settings) -> Path:
    import pyspark

    submitted = SubmittedArguments.parse(settings.cluster.pyspark_arguments)
    if submitted.properties_file is None:
        of_spark = Path(pyspark.__file__).parent / "conf"
        return Path(settings.cluster.spark_conf_dir or of_spark) / "spark-defaults.conf"
    if not submitted.properties_file.is_file():
        raise SettingsError(
            f"PYSPARK_SUBMIT_ARGS has --properties-file {submitted.properties_file}, which is not"
            " there; expected a file of Spark's configuration.",
            next_step="Correct it, or leave it out.",
        )
    return submitted.properties_file
