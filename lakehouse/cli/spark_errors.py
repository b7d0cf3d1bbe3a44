"""An error of Spark in one readable line: its message, without the Java stack, the plan and the query."""

import re

# The embedded Spark says `org.….ValidationException: …`, Spark Connect `(org.….ValidationException) …`.
_JAVA_CLASS = re.compile(r"^\(?(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)(?:: |\) )")
_PY4J = re.compile(r"^An error occurred while calling [\w.]+\.\s*:?\s*", re.DOTALL)
# Where the message ends and the query, the plan or the stack begins.
_REST = re.compile(r"\n\s*== |;\n|\n\s*'?\w+ .*\n\s*\+- |\n\s*at [\w.$/]+\(|\nJVM stacktrace:|\n\tat ")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_POSITION = re.compile(r"== SQL \(line (\d+), position (\d+)\)")


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line, with the place in the query where Spark tells it."""
    text = _PY4J.sub("", str(error)).strip()
    position = _POSITION.search(text)
    message = _REST.split(text, maxsplit=1)[0]
    message = _SQLSTATE.sub("", _JAVA_CLASS.sub("", message.strip()))
    line = " ".join(message.split()) or type(error).__name__
    return f"{line} (line {position[1]}, position {position[2]})" if position else line
