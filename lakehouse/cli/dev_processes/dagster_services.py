"""Dagster's webserver, daemon and server of code, and a server of runs, started together by a
process of their own.
"""

import argparse
import sys
from contextlib import suppress

from lakehouse.orchestration.dev_services import run_services
from lakehouse.orchestration.warm_runs.server_process import run_server
from lakehouse.settings import Settings


def main() -> None:
    """Run them as the arguments of this process say, until they are stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--module-name", required=True)
    parser.add_argument("--working-directory")
    parser.add_argument("--host")
    parser.add_argument("--port")
    given = parser.parse_args()
    module, folder = given.module_name, given.working_directory
    with (
        suppress(KeyboardInterrupt),
        run_server(Settings.from_env().dagster_home, module, folder),
    ):
        run_services(module, folder, given.host, given.port)
        sys.exit("Dagster's webserver ended by itself; its last words are above.")


if __name__ == "__main__":
    main()
