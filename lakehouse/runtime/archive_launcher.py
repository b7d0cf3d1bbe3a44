"""The `python` in an archive for executors: it runs the Python of the machine that it is on, which
finds the packages beside it.
"""

LAUNCHER = "bin/python"
"""Where it is in the archive."""
PACKAGES = "lib"
"""The folder of the packages there."""
_TEXT = """\
#!/bin/sh
# `lakehouse pack-python` made this: Python as it is here, with the packages beside it.
refuse() {{
    echo "$1" >&2
    exit 127
}}
setting=LAKEHOUSE_EXECUTOR_ARCHIVE
root=$(CDPATH= cd -- "${{0%/*}}/.." && pwd) || exit 127
here=$(uname -sm)
[ "$here" = "{platform}" ] ||
    refuse "The archive of $setting is for {platform}, and $(uname -n) is $here"
python=$(command -v python{version}) ||
    refuse "No python{version} is on the PATH of $(uname -n), which $setting needs"
# Behind what Spark set: PySpark is that of the executor.
PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}$root/{packages}
export PYTHONPATH
exec "$python" "$@"
"""


def launcher_text(python: str, platform: str) -> str:
    """Return the program, for a minor version of Python, and for what `uname -sm` says."""
    return _TEXT.format(version=python, platform=platform, packages=PACKAGES)
