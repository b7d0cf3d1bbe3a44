"""Which lines of Dagster's log are what happened; most others say that a sensor looked, and
found nothing. An event is one line, an error with its cause in place of a traceback.
"""

import re
from collections import deque

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RECORD = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} - [\w.-]+ - (?P<level>[A-Z]+) - (?P<text>.*)"
)
_HAPPENED = re.compile(
    r" - (RUN_START|RUN_SUCCESS|RUN_FAILURE|RUN_CANCELED|ASSET_MATERIALIZATION) - "
)
_LOOKED = re.compile(
    r"Checking for new runs|No new runs|Sensor \S+ skipped: |Instance is configured"
    r" with|Collected \d+ runs"
    r"|Checking run |Priority sorting|Retrieved \d+ queued runs"
    # Checks that are left out, such as those without a past to judge by; what must not be is an
    # error.
    r"|.* - op '\w+' did not yield or return expected outputs "
)
_TRACEBACK = (
    "Traceback (most recent call last):",
    "Stack Trace:",
    "The above exception was ",
    "During handling of the above exception",
)
_EXCEPTION = re.compile(r"(?:\w+\.)*_?[A-Z]\w*(?::.*)?$")
_TIMED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_DEBUG = re.compile(r"(?:\x1b\[[0-9;]*m)?DEBUG(?:\x1b\[[0-9;]*m)? - ")
_REMEMBERED = 200
_OF_A_LIBRARY = re.compile(r"SupersessionWarning|^\s+return callback\(\*args, \*\*kwargs\)$")


def without_colours(line: str) -> str:
    """Return a line without what tells a terminal its colours."""
    return _COLOUR.sub("", line)


def is_told(line: str) -> bool:
    """Whether a line of the log is shown: runs and what they made, warnings, errors, and what
    is no record of a log.
    """
    plain = without_colours(line).rstrip("\n")
    record = _RECORD.match(plain)
    if record is None:
        return not _OF_A_LIBRARY.search(plain)
    if record["level"] == "DEBUG":
        return _HAPPENED.search(record["text"]) is not None
    return record["level"] != "INFO" or not _LOOKED.match(record["text"])


class LogFilter:
    """Returns the lines to print of a log that is read line by line."""

    def __init__(self) -> None:
        """Start with an empty log."""
        self._error, self._cause, self._is_traceback = "", "", False
        self._recent: deque[str] = deque(maxlen=_REMEMBERED)

    def read(self, line: str) -> list[str]:
        """Return what is printed once a line was read; an error waits for its cause."""
        plain = without_colours(line).rstrip("\n")
        record = _RECORD.match(plain)
        if record is None:
            return self._without_traceback(line, plain)
        before, self._is_traceback = self.end(), False
        if not is_told(line):
            return before
        if record["level"] in ("ERROR", "CRITICAL"):
            self._error = line.rstrip("\n")
            return before
        if record["level"] == "DEBUG":
            # Of an asset with partitions, Dagster logs the same event for each of them.
            if record["text"] in self._recent:
                return before
            self._recent.append(record["text"])
            line = _DEBUG.sub("", line, count=1)
        return [*before, line]

    def end(self) -> list[str]:
        """Return what is left to print at the end of the log."""
        error, cause = self._error, self._cause
        self._error = self._cause = ""
        return [f"{error} {cause}".rstrip() + "\n"] if error else []

    def _without_traceback(self, line: str, plain: str) -> list[str]:
        if self._error and not _TIMED.match(plain):
            if _EXCEPTION.match(plain):
                self._cause = plain
            return []
        if plain.startswith(_TRACEBACK):
            self._is_traceback = True
            return self.end()
        if self._is_traceback and (not plain.strip() or plain[0] in " \t"):
            return []
        self._is_traceback = False
        return [*self.end(), *([line] if is_told(line) else [])]
