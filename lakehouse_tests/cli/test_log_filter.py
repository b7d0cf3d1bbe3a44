"""What `lakehouse dev` prints of Dagster's log: what happened, and not each look of a
sensor.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.cli.dev_processes.log_filter import LogFilter, is_told

pytestmark = pytest.mark.unit

AT = "2026-11-23 13:47:31 +0000"


@pytest.mark.parametrize(
    "line",
    [
        (
            f"{AT} - dagster.daemon.SensorDaemon - INFO - Checking for new runs for sensor:"
            " fruits_files"
        ),
        (
            f"\x1b[32m{AT}\x1b[0m - dagster.daemon.SensorDaemon - \x1b[34mINFO\x1b[0m - Sensor"
            " alerts skipped: 0 things."
        ),
        (
            f"{AT} - dagster - DEBUG - ingest_fruits - 0a1b - 77 - bronze__raw_fruits -"
            " STEP_INPUT - Got input."
        ),
        (
            f"{AT} - dagster - INFO - ingest_x - 0a1b - no_anomaly - op 'no_anomaly' did not"
            " yield or return expected outputs {'silver__x_no_anomaly'}."
        ),
        (
            f"{AT} - dagster.daemon - INFO - Instance is configured with the following daemons:"
            " ['AssetDaemon']"
        ),
    ],
)
def test_a_look_is_not_told(line: str) -> None:
    assert not is_told(line + "\n")


@pytest.mark.parametrize(
    "line",
    [
        (
            f"{AT} - dagster.daemon.SensorDaemon - INFO - Completed launch of run 0a1b for"
            " fruits_files"
        ),
        (
            f"{AT} - dagster - DEBUG - ingest_fruits - 0a1b - 77 - RUN_START - Started"
            " execution of run."
        ),
        (
            f"{AT} - dagster - DEBUG - ingest_fruits - 0a1b - 77 - x - ASSET_MATERIALIZATION -"
            " Materialized silver fruits."
        ),
        (
            f"{AT} - dagster - ERROR - ingest_fruits - 0a1b - 77 - x - STEP_FAILURE - Execution"
            " of step failed."
        ),
        f"{AT} - dagster.daemon - WARNING - Sensor fruits_files skipped: not so.",
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1',"
            " 3000): address already in use"
        ),
    ],
)
def test_what_happened_is_told(line: str) -> None:
    assert is_told(line + "\n")


def printed(*lines: str) -> list[str]:
    log = LogFilter()
    shown = [text for line in lines for text in log.read(line + "\n")]
    return [text.rstrip("\n") for text in [*shown, *log.end()]]


MADE = "ingest_x - 0a1b - 77 - silver__x - ASSET_MATERIALIZATION - Materialized value silver x."
FAILED = f"{AT} - dagster - ERROR - ingest_x - 0a1b - 77 - silver__x - STEP_FAILURE - Failed."


def test_partitions_of_an_event_are_one_line() -> None:
    assert printed(*[f"{AT} - dagster - DEBUG - {MADE}"] * 31) == [f"{AT} - dagster - {MADE}"]


@pytest.mark.parametrize(
    "trace",
    [
        (
            "",
            "dagster._core.errors.DagsterExecutionStepExecutionError: Error in op:",
            "",
            "Stack Trace:",
            '  File "x.py", line 1, in f',
            "",
            "The above exception was caused by the following exception:",
            "shop.errors.Broken: no such fruit",
            "",
            "Stack Trace:",
            '  File "y.py", line 2, in g',
        ),
        (
            "Traceback (most recent call last):",
            '  File "x.py", line 1, in f',
            "    raise Broken",
            "KeyError: 'x'",
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            "Traceback (most recent call last):",
            '  File "y.py", line 2, in g',
            "shop.errors.Broken: no such fruit",
        ),
        (
            "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:",
            "\tstatus = StatusCode.DEADLINE_EXCEEDED",
            ">",
            "",
            "shop.errors.Broken: no such fruit",
            "It has more lines.",
        ),
    ],
)
@pytest.mark.parametrize(
    "after",
    [(), ("2026-11-23 13:47:31 UTC  Spark died.",), (f"{AT} - dagster.daemon - INFO - Next.",)],
)
def test_an_error_is_one_line_with_its_cause(trace: tuple, after: tuple) -> None:
    line = f"{FAILED} shop.errors.Broken: no such fruit"
    assert printed(FAILED, *trace, *after) == [line, *after]


def test_a_bare_traceback_is_its_last_line() -> None:
    lines = ("Traceback (most recent call last):", '  File "x.py", line 1', "KeyError: 'x'")
    assert printed(*lines, "address in use") == ["KeyError: 'x'", "address in use"]


def test_the_child_tells_that_hands_signals_on_and_ends_as_dagster_did(tmp_path: Path) -> None:
    """In place of Dagster a script that ends with a code of its own when it is interrupted."""
    (tmp_path / "dagster.py").write_text(
        "import sys, time\n"
        "try:\n"
        f"    print('{AT} - dagster.daemon - INFO - Sensor x skipped: nothing')\n"
        "    print('\\x1b[32mready\\x1b[0m', sys.argv[1:])\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.exit(7)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "lakehouse.cli.dev_processes.dagster_dev", "--port", "1"],
        env={"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "ready ['--port', '1']\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 7
    child.stderr.close()
