"""What PYSPARK_SUBMIT_ARGS has PySpark start Spark with: the configuration among it, and the rest.

Arguments go before a file of properties, so that configuration which stayed among them would take
the place of what nothing works without, such as the class path of the driver.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

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
        """Read what the environment says; nothing where a quote in it is open, since no Spark
        starts by it.
        """
        try:
            words = _single_words(shlex.split(arguments or ""))
        except ValueError:
            return cls()
        configuration: dict[str, str] = {}
        file, others = None, []
        while words:
            option = words.pop(0)
            name, equals, value = words[0].partition("=") if words else ("", "", "")
            if option in _CONFIGURATION and equals:
                configuration[name] = value
            elif option in _NAMES and words:
                configuration[_NAMES[option]] = words[0]
            elif option == _FILE and words:
                file = Path(words[0])
            else:
                others.append(option)
                continue
            del words[0]
        return cls(configuration, file, tuple(others))


def _single_words(words: list[str]) -> list[str]:
    """Return the words before that which stands for PySpark, an option and its value each as a
    word.
    """
    if _SHELL in words:
        words = words[: len(words) - 1 - words[::-1].index(_SHELL)]
    single: list[str] = []
    for word in words:
        in_one = _IN_ONE_WORD.fullmatch(word)
        single += in_one.groups() if in_one else [word]
    return single
