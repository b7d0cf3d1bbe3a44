"""What PYSPARK_SUBMIT_ARGS has PySpark start Spark with: the configuration among it, and the rest.

Arguments go before a file of properties, so that configuration which stayed among them would take
the place of what nothing works without, such as the class path of the driver.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.errors import SettingsError

_SHELL = "pyspark-shell"
"""What the arguments end with where PySpark reads them."""
_CONFIGURATION = ("--conf", "-c")
_FILE = "--properties-file"
_NAMES = {
    "--name": "spark.app.name",
    "--master": "spark.master",
    "--jars": "spark.jars",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--executor-cores": "spark.executor.cores",
    "--executor-memory": "spark.executor.memory",
    "--num-executors": "spark.executor.instances",
    "--total-executor-cores": "spark.cores.max",
}
"""Options that are another word for configuration which the lakehouse sets too."""
_IN_ONE_WORD = re.compile(r"(--[^=]+)=(.+)", re.DOTALL)


@dataclass(frozen=True)
class SubmittedArguments:
    """The arguments of one start of Spark. Configuration may hold secrets."""

    configuration: dict[str, str] = field(default_factory=dict, repr=False)
    properties_file: Path | None = None
    """The file that is named in the place of `spark-defaults.conf`."""
    others: tuple[str, ...] = field(default=(), repr=False)
    """What is no configuration that the lakehouse knows."""

    @classmethod
    def parse(cls, arguments: str | None) -> "SubmittedArguments":
        """Read what the environment says.

        :raises SettingsError: when a quote in it is open, by which no Spark starts.
        """
        words = _words(arguments or "")
        configuration: dict[str, str] = {}
        file, others = None, []
        while words:
            word = words.pop(0)
            # The value of an option may look like this too, and is not looked at here.
            in_one = _IN_ONE_WORD.fullmatch(word)
            after = words[0] if words else None
            option, value = in_one.groups() if in_one else (word, after)
            if value is None or not _is_known(option, value):
                others.append(word)
                continue
            if not in_one:
                del words[0]
            if option == _FILE:
                file = Path(value)
            elif option in _NAMES:
                configuration[_NAMES[option]] = value
            else:
                name, _, said = value.partition("=")
                configuration[name] = said
        return cls(configuration, file, tuple(others))


def _is_known(option: str, value: str) -> bool:
    return option in _NAMES or option == _FILE or (option in _CONFIGURATION and "=" in value)


def _words(arguments: str) -> list[str]:
    """Return the words before that which stands for PySpark."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        # What they hold may be secret, and is not shown.
        raise SettingsError(
            f"PYSPARK_SUBMIT_ARGS cannot be read: {error}; expected words as a shell has them, each"
            " quote closed.",
            next_step="Correct it, or unset it.",
        ) from error
    if _SHELL in words:
        words = words[: len(words) - 1 - words[::-1].index(_SHELL)]
    return words
