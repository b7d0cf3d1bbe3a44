"""Dagster's services as `lakehouse dev` has them: what they use of Dagster is there."""

from pathlib import Path
from threading import Event
from unittest.mock import Mock, create_autospec

import dagster as dg
import grpc
import pytest
from dagster._cli.workspace.cli_target import workspace_opts_to_load_target
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._grpc import client, proxy_server, server, server_watcher
from dagster_shared.cli import WorkspaceOpts

from lakehouse.orchestration.dev_services import (
    _code_server,
    ask_less_often,
    refresh_where_reloaded,
    restart_if_dead,
)

pytestmark = pytest.mark.unit


def test_the_code_is_served_under_the_name_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_GRPC_MAX_WORKERS", "2")
    for module, name in (
        (proxy_server, "DagsterProxyApiServicer"),
        (server, "DagsterGrpcServer"),
    ):
        monkeypatch.setattr(module, name, create_autospec(getattr(module, name)))
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
        _code_server(instance, "shop.definitions", "/shop") as workspace,
    ):
        options = WorkspaceOpts(workspace=(str(workspace),))
        (origin,) = workspace_opts_to_load_target(options).create_origins()
    assert origin.location_name == "shop.definitions"
    assert origin.get_display_metadata()["working_directory"] == "/shop"
    loaded = proxy_server.DagsterProxyApiServicer.call_args.kwargs["loadable_target_origin"]
    assert (loaded.module_name, loaded.working_directory) == ("shop.definitions", "/shop")
    assert server.DagsterGrpcServer.return_value.serve.called


def test_what_says_how_often_a_server_is_asked_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "CLIENT_HEARTBEAT_INTERVAL", 1)
    monkeypatch.setattr(server_watcher, "WATCH_INTERVAL", 1)
    ask_less_often()
    assert client.CLIENT_HEARTBEAT_INTERVAL == server_watcher.WATCH_INTERVAL == 5


class Unreachable(grpc.RpcError):
    """How gRPC fails where nothing listens."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_dead_server_of_code_is_started_again(*, is_dead: bool) -> None:
    failure = DagsterUserCodeUnreachableError()
    failure.__cause__ = Unreachable() if is_dead else TimeoutError()
    servicer = create_autospec(
        proxy_server.DagsterProxyApiServicer,
        instance=True,
        _load_error=None,
        _client_heartbeat_shutdown_event=Event(),
    )
    servicer._get_grpc_client.return_value = create_autospec(client.DagsterGrpcClient)
    servicer._get_grpc_client.return_value.ping.side_effect = [failure]
    servicer.ReloadCode.side_effect = DagsterUserCodeUnreachableError()
    told: list[bool] = []
    restart_if_dead(servicer, told.append)
    assert told == ([False, True] if is_dead else [])
    assert servicer.ReloadCode.called == is_dead


def served(answer: str | Exception) -> GrpcServerCodeLocation:
    """Return code that was loaded from the server `first`, and whose server answers now."""
    location = create_autospec(GrpcServerCodeLocation, server_id="first")
    location.client = create_autospec(client.DagsterGrpcClient)
    location.client.get_server_id.side_effect = [answer]
    return location


@pytest.mark.parametrize(
    ("answer", "is_read_again"),
    [
        pytest.param("first", False, id="of the code that is served"),
        pytest.param("second", True, id="of code before it"),
        pytest.param(None, True, id="not read"),
        pytest.param(DagsterUserCodeUnreachableError(), False, id="out of reach"),
    ],
)
def test_the_description_of_the_code_is_read_again_where_it_is_of_other_code(
    answer: str | Exception | None, *, is_read_again: bool
) -> None:
    workspace = create_autospec(WorkspaceProcessContext)
    entry = Mock(code_location=answer and served(answer))
    entries = workspace.create_request_context.return_value.get_code_location_entries
    entries.return_value = {"shop": entry}
    refresh_where_reloaded(workspace)
    assert workspace.refresh_workspace.called == is_read_again
