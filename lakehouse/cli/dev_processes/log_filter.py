"""Which lines of Dagster's log are what happened; most others say that a sensor looked, and
found nothing.
"""

import re

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
