"""Times of sensor checks of a project, in a process that has just loaded its definitions.

Run in a project folder as `python -m benchmarks.sensor_looks LOOKS`; prints wall and CPU seconds of
each check. Cursors are saved next to the home, as Dagster does. No sensor may request a run or wait
for files.
"""

import json
import sys
import time

import dagster as dg

from lakehouse.ingestion.sensors import feed_sensors, shared_sensor
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.project import load_project
from lakehouse.settings import Settings


def main(checks: int) -> None:
    """Run some checks."""
    feed_sensors.WATCH_SECONDS = shared_sensor.WATCH_SECONDS = 0.0
    settings = Settings.from_env()
    repository = load_project(settings).definitions().get_repository_def()
    kept = settings.home.with_name("cursors.json")
    cursors = json.loads(kept.read_text()) if kept.exists() else {}
    with open_instance(settings) as instance:
        for _ in range(checks):
            wall, cpu = time.perf_counter(), time.process_time()
            _look(instance, repository, cursors)
            print(time.perf_counter() - wall, time.process_time() - cpu)  # noqa: T201
    kept.write_text(json.dumps(cursors))


def _look(
    instance: dg.DagsterInstance,
    repository: dg.RepositoryDefinition,
    cursors: dict[str, str | None],
) -> None:
    for sensor in repository.sensor_defs:
        with dg.build_sensor_context(
            instance,
            cursor=cursors.get(sensor.name),
            repository_def=repository,
            sensor_name=sensor.name,
        ) as context:
            ticked = sensor.evaluate_tick(context)
            cursors[sensor.name] = context.cursor
        assert not ticked.run_requests, f"{sensor.name} asks for {ticked.run_requests}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
