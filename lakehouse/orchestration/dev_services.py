"""Dagster's webserver, daemon and server of code as `lakehouse dev` has them, in fewer processes
than Dagster has; beside `dagster_internals`, of what Dagster does not call public.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from dagster._core.remote_representation.code_location import CodeLocation
    from dagster._core.workspace.context import IWorkspaceProcessContext
    from dagster._grpc.client import DagsterGrpcClient

OnCodeServer = Callable[[dg.DagsterInstance, bool], None]

_OF_CODE_SERVER = "warning"
"""From which level on the log of a code server is shown."""
_WEBSERVER = "lakehouse.cli.dev_processes.dagster_webserver"
_LOOK_SECONDS = 5
_ASK_SECONDS = 5
_REFRESH_SECONDS = 60.0
_CODE_THREADS = 32


def run_services(
    module: str,
    working_directory: str | None,
    host: str | None,
    port: str | None,
    on_code_server: OnCodeServer,
) -> None:
    """Run Dagster's webserver, daemon and server of code until they are stopped, as `dg dev`
    does, but the daemon and what hands calls on to the code are in this process, which would only
    wait for them.

    Returns where the webserver ended by itself.

    :param module: the module of the definitions.
    :param on_code_server: called when the server of code died (False), and when it was started
        again (True).
    """
    from dagster._cli.utils import get_instance_for_cli
    from dagster._utils.interrupts import setup_interrupt_handlers
    from dagster._utils.log import configure_loggers

    from lakehouse.orchestration.event_log import keep_engines
    from lakehouse.orchestration.warm_runs.dagster_runs import with_own_events

    os.environ["DAGSTER_IS_DEV_CLI"] = "1"
    setup_interrupt_handlers()
    configure_loggers(formatter="colored", log_level="INFO")
    keep_engines()
    ask_less_often()
    with (
        # With what a file `.env` of the working directory says, for all that is started here.
        get_instance_for_cli() as instance,
        _code_server(
            instance, module, working_directory or str(Path.cwd()), on_code_server
        ) as workspace,
        _webserver(host, port, workspace) as webserver,
        with_own_events(instance) as daemon_instance,
    ):
        _run_daemon(daemon_instance, workspace, webserver)


def run_webserver() -> None:
    """Run Dagster's webserver by the arguments of this process, without requests of other sites."""
    from dagster_webserver import cli

    from lakehouse.orchestration.same_site import SameSite, served_hosts
    from lakehouse.settings import Settings

    create_app = cli.create_app_from_workspace_process_context  # type: ignore[attr-defined]
    ui_url = Settings.from_env().ui_url or ""
    hosts = served_hosts(sys.argv, ui_url)

    def create_same_site_app(*args: Any, **options: Any) -> Any:
        app = create_app(*args, **options)
        app.add_middleware(SameSite, hosts=hosts, ui_url=ui_url)
        return app

    cli.create_app_from_workspace_process_context = create_same_site_app  # type: ignore[attr-defined]
    ask_less_often()
    cli.main()  # type: ignore[no-untyped-call]


def ask_less_often() -> None:
    """Let this process ask a server of code less often than each second whether it is there, and
    whether its code was loaded anew.
    """
    from dagster._grpc import client, server_watcher

    client.CLIENT_HEARTBEAT_INTERVAL = _ASK_SECONDS
    server_watcher.WATCH_INTERVAL = _ASK_SECONDS


def _proxy_servicer(
    instance: dg.DagsterInstance, loaded: Any, is_over: Event, logger: logging.Logger
) -> Any:
    """Return Dagster's servicer that loads the code in a process of its own."""
    from dagster._core.workspace.context import WEBSERVER_GRPC_SERVER_HEARTBEAT_TTL
    from dagster._grpc.proxy_server import DagsterProxyApiServicer

    return DagsterProxyApiServicer(
        loadable_target_origin=loaded,
        fixed_server_id=None,
        container_image=None,
        container_context=None,
        inject_env_vars_from_instance=True,
        location_name=loaded.module_name,
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


@contextmanager
def _code_server(
    instance: dg.DagsterInstance,
    module: str,
    working_directory: str,
    on_code_server: OnCodeServer = lambda *_: None,
) -> Iterator[Path]:
    """Serve the code, which a process of its own loads, a new one for each reload; yield the file
    that says where. A process that died is started again.
    """
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
    from dagster._core.utils import FuturesAwareThreadPoolExecutor
    from dagster._grpc.server import DagsterGrpcServer

    # A sensor that watches occupies a thread here, and one of the process that has the code.
    os.environ["DAGSTER_GRPC_MAX_WORKERS"] = str(_CODE_THREADS)
    loaded = LoadableTargetOrigin(module_name=module, working_directory=working_directory)
    # Outside of Dagster's own, whose levels the daemon sets: of this one, warnings are shown.
    is_over, logger = Event(), logging.getLogger(__name__)
    servicer = _proxy_servicer(instance, loaded, is_over, logger)

    def watch() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            restart_if_dead(servicer, partial(on_code_server, instance))

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
        watching = Thread(target=watch, name="code-server-watch")
        serving.start()
        watching.start()
        try:
            yield workspace
        finally:
            is_over.set()
            serving.join()
            watching.join()


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


def restart_if_dead(servicer: Any, on_code_server: Callable[[bool], None]) -> None:
    """Start the process that has the code again where it died.

    Code that cannot be loaded is left for a reload in the UI.

    :param servicer: a `DagsterProxyApiServicer`.
    """
    from dagster._core.errors import DagsterUserCodeUnreachableError

    client = servicer._get_grpc_client()
    if client is None or servicer._load_error or not _is_dead(client):
        return
    on_code_server(False)
    servicer._client_heartbeat_shutdown_event.set()
    # It asks the dead server to shut down once the new one is there.
    with suppress(DagsterUserCodeUnreachableError):
        servicer.ReloadCode(None, None)
    if not servicer._load_error:
        on_code_server(True)


def _is_dead(client: "DagsterGrpcClient") -> bool:
    """Whether nothing listens at the address of a server; one that is busy does."""
    from dagster._core.errors import DagsterUserCodeUnreachableError

    try:
        client.ping("")
    except DagsterUserCodeUnreachableError as error:
        status = getattr(error.__cause__, "code", None)
        return status is not None and status().name == "UNAVAILABLE"
    return False


def _run_daemon(
    instance: dg.DagsterInstance, workspace: Path, webserver: "subprocess.Popen[bytes]"
) -> None:
    from dagster._cli.workspace.cli_target import workspace_opts_to_load_target
    from dagster._daemon.controller import daemon_controller_from_instance
    from dagster_shared.cli import WorkspaceOpts

    from lakehouse.orchestration.prompt_daemons import daemons_of

    code_servers = workspace_opts_to_load_target(WorkspaceOpts(workspace=(str(workspace),)))
    asked_at = time.monotonic()
    with daemon_controller_from_instance(
        instance,
        code_servers,
        gen_daemons=daemons_of,
        code_server_log_level=_OF_CODE_SERVER,
    ) as controller:
        while webserver.poll() is None:
            time.sleep(_LOOK_SECONDS)
            controller.check_daemon_threads()
            if time.monotonic() - asked_at >= _REFRESH_SECONDS:
                refresh_where_reloaded(controller._workspace_process_context)
                asked_at = time.monotonic()


def refresh_where_reloaded(workspace: "IWorkspaceProcessContext[Any]") -> None:
    """Read the description of the code again where other code is served than it is of, or where it
    could not be read.

    Dagster's daemon reads it every minute in any case: of a thousand tables, that is most of what
    an idle daemon and the server of code do. That code was loaded anew it sees within seconds by
    itself; this is for a reload that came while the description was read, which it misses.
    """
    entries = workspace.create_request_context().get_code_location_entries()
    if not all(_is_current(entry.code_location) for entry in entries.values()):
        workspace.refresh_workspace()


def _is_current(location: "CodeLocation | None") -> bool:
    from dagster._core.errors import DagsterUserCodeUnreachableError
    from dagster._core.remote_representation.code_location import GrpcServerCodeLocation

    if not isinstance(location, GrpcServerCodeLocation):
        return False
    try:
        return location.client.get_server_id() == location.server_id
    except DagsterUserCodeUnreachableError:
        # Dagster tries to reach it again by itself, and reads the description then.
        return True
