"""Dagster's webserver, daemon and server of code, and a server of runs, started together by a
process of their own.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.orchestration.dagster_internals import run_services, services_launch_runs_by
from lakehouse.orchestration.warm_runs.run_launcher import WarmRunLauncher
from lakehouse.orchestration.warm_runs.server_process import run_server


def main() -> None:
    """Run them as the arguments of this process say, until they are stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--module-name", required=True)
    parser.add_argument("--working-directory")
    parser.add_argument("--host")
    parser.add_argument("--port")
    given = parser.parse_args()
    with _quick_runs(given.module_name, given.working_directory):
        run_services(given.module_name, given.working_directory, given.host, given.port)


@contextmanager
def _quick_runs(module: str, working_directory: str | None) -> Iterator[None]:
    """Let runs begin quickly, whatever `dagster.yaml` a home has; on systems other than Linux a
    process cannot be copied without danger.
    """
    if sys.platform != "linux":
        yield
        return
    with run_server(module, working_directory) as address:
        launcher = {
            "module": WarmRunLauncher.__module__,
            "class": WarmRunLauncher.__name__,
            "config": {"address": address, "module": module},
        }
        with services_launch_runs_by(launcher):
            yield


if __name__ == "__main__":
    main()
