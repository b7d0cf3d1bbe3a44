"""What a command came to: the records that it printed, and the packages that it imported."""

import json
import subprocess
import sys

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings

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


def record_of(ran, table: str) -> dict:
    """Return the record of one table."""
    (record,) = (one for one in records(ran) if one["table"] == table)
    return record


def stop_sensor(settings: Settings, name: str) -> None:
    """Record that a user stopped a sensor of the samples."""
    from dagster._core.definitions.run_request import InstigatorType
    from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
    from dagster._core.scheduler.instigation import (
        InstigatorState,
        InstigatorStatus,
        SensorInstigatorData,
    )

    location = RegisteredCodeLocationOrigin("lakehouse.definitions")
    origin = RemoteRepositoryOrigin(location, "__repository__").get_instigator_origin(name)
    state = InstigatorState(
        origin, InstigatorType.SENSOR, InstigatorStatus.STOPPED, SensorInstigatorData()
    )
    with open_instance(settings) as instance:
        instance.add_instigator_state(state)
