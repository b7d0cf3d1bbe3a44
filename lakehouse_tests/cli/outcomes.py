"""What a command came to: the records that it printed, and the packages that it imported."""

import json
import subprocess
import sys

HEAVY = "{'dagster', 'pyspark', 'pyiceberg', 'pandas', 'rich'}"


def imported_by(*arguments: str, env: dict[str, str]) -> set[str]:
    script = (
        f"import sys; from lakehouse.cli.program import run; run(sys.argv[1:]); print({HEAVY} &"
        " sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return eval(done.stdout.splitlines()[-1])


def records(ran) -> list[dict]:
    return json.loads("\n".join(ran.out))
