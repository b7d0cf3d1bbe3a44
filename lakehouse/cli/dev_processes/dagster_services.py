"""Dagster's webserver, daemon and server of code, and a server of runs, started together by a
process of their own.
"""

import argparse
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime

import click
import dagster as dg

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.alerts_sensor import dispatch_report
from lakehouse.orchestration.dev_services import run_services
from lakehouse.orchestration.incident_reports import Report, report_firing, report_resolved
from lakehouse.orchestration.warm_runs.server_process import run_server
from lakehouse.settings import Settings

_CODE_SERVER = Report(
    "code server",
    "Dagster's code server died",
    ("No file is ingested and no sensor runs until `lakehouse dev` has started it again.",),
    ("lakehouse doctor",),
)


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
        run_services(module, folder, given.host, given.port, report_code_server)
        sys.exit("Dagster's webserver ended by itself; its last words are above.")


def report_code_server(instance: dg.DagsterInstance, is_running: bool) -> None:
    """Print, report and send that Dagster's server of code died or was started again; the sensor
    that sends alerts runs in it.
    """
    settings = Settings.from_env()
    what = "was started again" if is_running else "died, and is started again"
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    click.echo(f"{at}  Dagster's code server {what}.", err=True)
    try:
        if is_running:
            report_resolved(settings, _CODE_SERVER.key, "It was started again.")
        else:
            report_firing(settings, _CODE_SERVER)
        dispatch_report(instance, settings, _CODE_SERVER.key, logging.getLogger(__name__))
    except (LakehouseError, OSError) as error:
        # The note stays, and the sensor sends it once it runs.
        click.echo(f"The alert was not sent: {error}", err=True)


if __name__ == "__main__":
    main()
