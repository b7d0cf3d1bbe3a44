"""Dagster's webserver as a process of its own."""

from lakehouse.orchestration.dev_services import run_webserver

if __name__ == "__main__":
    run_webserver()
