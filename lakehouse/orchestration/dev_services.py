"""Dagster's webserver, daemon and server of code as `lakehouse dev` has them, in fewer processes
than Dagster has; beside `dagster_internals`, of what Dagster does not call public.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import dagster as dg

_OF_CODE_SERVER = "warning"
"""From which level on the log of a code server is shown."""
_WEBSERVER = "lakehouse.cli.dev_processes.dagster_webserver"
_LOOK_SECONDS = 5
_ASK_SECONDS = 5
_FRESHNESS_SECONDS = 120
"""How often Dagster's daemon evaluates the freshness of all assets, by itself every half minute: of
a thousand tables, that is most of what it does while nothing happens. Alerts do not wait for it.
"""
_CODE_THREADS = 32


def run_services(
    module: str, working_directory: str | None, host: str | None, port: str | None
) -> None:
    """Run Dagster's webserver, daemon and server of code until they are stopped, as `dg dev`
    does, but the daemon and what hands calls on to the code are in this process, which would only
    wait for them.

    Returns where the webserver ended by itself.

    :param module: the module of the definitions.
    """
    from dagster._cli.utils import get_instance_for_cli
    from dagster._utils.interrupts import setup_interrupt_handlers
    from dagster._utils.log import configure_loggers

    from lakehouse.orchestration.event_log import keep_engines
    from lakehouse.orchestration.warm_runs.dagster_runs import with_own_events

    os.environ["DAGSTER_IS_DEV_CLI"] = "1"
    os.environ["FRESHNESS_DAEMON_INTERVAL_SECONDS"] = str(_FRESHNESS_SECONDS)
    setup_interrupt_handlers()
    configure_loggers(formatter="colored", log_level="INFO")
    keep_engines()
    ask_less_often()
    with (
        # With what a file `.env` of the working directory says, for all that is started here.
        get_instance_for_cli() as instance,
        _code_server(instance, module, working_directory or str(Path.cwd())) as workspace,
        _webserver(host, port, workspace) as webserver,
        with_own_events(instance) as daemon_instance,
    ):
        _run_daemon(daemon_instance, workspace, webserver)


def run_webserver() -> None:
    """Run Dagster's webserver by the arguments of this process."""
    from dagster_webserver.cli import main

    ask_less_often()
    main()  # type: ignore[no-untyped-call]


def ask_less_often() -> None:
    """Let this process ask a server of code less often than each second whether it is there, and
    whether its code was loaded anew.
    """
    from dagster._grpc import client, server_watcher

    client.CLIENT_HEARTBEAT_INTERVAL = _ASK_SECONDS
    server_watcher.WATCH_INTERVAL = _ASK_SECONDS


@contextmanager
def _code_server(
    instance: dg.DagsterInstance, module: str, working_directory: str
) -> Iterator[Path]:
    """Serve the code, which a process of its own loads, a new one for each reload; yield the file
    that says where.
    """
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
    from dagster._core.utils import FuturesAwareThreadPoolExecutor
    from dagster._core.workspace.context import WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL
    from dagster._grpc.proxy_server import DagsterProxyApiServicer
    from dagster._grpc.server import DagsterGrpcServer

    # A sensor that watches occupies a thread here, and one of the process that has the code.
    os.environ["DAGSTER_GRPC_MAX_WORKERS"] = str(_CODE_THREADS)
    loaded = LoadableTargetOrigin(module_name=module, working_directory=working_directory)
    # Outside of Dagster's own, whose levels the daemon sets: of this one, warnings are shown.
    is_over, logger = Event(), logging.getLogger(__name__)
    servicer = DagsterProxyApiServicer(
        loadable_target_origin=loaded,
        fixed_server_id=None,
        container_image=None,
        container_context=None,
        inject_env_vars_from_instance=True,
        location_name=module,
        log_level=_OF_CODE_SERVER,
        startup_timeout=instance.code_server_process_startup_timeout,
        server_termination_event=is_over,
        instance_ref=instance.get_ref(),
        logger=logger,
        server_heartbeat=False,
        server_heartbeat_timeout=WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL,
        heartbeat_ttl=WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL,
        defs_state_info=None,
    )
    with TemporaryDirectory() as folder:
        workspace, socket = Path(folder, "workspace.yaml"), str(Path(folder, "code"))
        server = DagsterGrpcServer(
            server_termination_event=is_over,
            dagster_api_servicer=servicer,
            logger=logger,
            threadpool_executor=FuturesAwareThreadPoolExecutor(max_workers=_CODE_THREADS),
            socket=socket,
        )
        place = {
            "location_name": module,
            "socket": socket,
            "host": "localhost",
            "additional_metadata": loaded.as_dict,
        }
        # JSON is YAML.
        workspace.write_text(json.dumps({"load_from": [{"grpc_server": place}]}))
        serving = Thread(target=server.serve, name="code-server")
        serving.start()
        try:
            yield workspace
        finally:
            is_over.set()
            serving.join()


@contextmanager
def _webserver(
    host: str | None, port: str | None, workspace: Path
) -> "Iterator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", _WEBSERVER, "--workspace", str(workspace)]
    command += ["--dagster-log-level", "info", "--code-server-log-level", _OF_CODE_SERVER]
    command += ["--host", host] if host else []
    command += ["--port", port] if port else []
    webserver = subprocess.Popen(command)
    try:
        yield webserver
    finally:
        webserver.terminate()
        webserver.wait()


def _run_daemon(
    instance: dg.DagsterInstance, workspace: Path, webserver: "subprocess.Popen[bytes]"
) -> None:
    from dagster._cli.workspace.cli_target import workspace_opts_to_load_target
    from dagster._daemon.controller import daemon_controller_from_instance
    from dagster_shared.cli import WorkspaceOpts

    from lakehouse.orchestration.prompt_daemons import daemons_of

    code_servers = workspace_opts_to_load_target(WorkspaceOpts(workspace=(str(workspace),)))
    updated = time.time()
    with daemon_controller_from_instance(
        instance,
        code_servers,
        gen_daemons=daemons_of,
        code_server_log_level=_OF_CODE_SERVER,
    ) as controller:
        while webserver.poll() is None:
            time.sleep(_LOOK_SECONDS)
            controller.check_daemon_threads()
            updated = controller.check_workspace_freshness(updated)
