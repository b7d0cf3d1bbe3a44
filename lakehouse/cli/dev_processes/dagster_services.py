"""Dagster's webserver, daemon and server of code, started together by a process of their own."""

import argparse
import sys
from contextlib import suppress

from lakehouse.orchestration.dagster_internals import run_services


def main() -> None:
    """Run them as the arguments of this process say, until they are stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--module-name", required=True)
    parser.add_argument("--working-directory")
    parser.add_argument("--host")
    parser.add_argument("--port")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        run_services(given.module_name, given.working_directory, given.host, given.port)
        sys.exit("Dagster's webserver ended by itself; its last words are above.")


if __name__ == "__main__":
    main()
