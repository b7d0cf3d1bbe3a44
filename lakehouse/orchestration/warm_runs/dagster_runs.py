"""What is done here of Dagster's that Dagster does not call public: runs that are asked for,
carried out and reported as its own code server does; see `dagster_internals`.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.code_pointer import CodePointer, ModuleCodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import CheckRunHealthResult as CheckRunHealthResult
from dagster._core.launcher import LaunchRunContext as LaunchRunContext
from dagster._core.launcher import WorkerStatus
from dagster._core.origin import JobPythonOrigin
from dagster._core.secrets.env_file import get_env_var_dict
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module
from dagster._grpc.impl import StartRunInSubprocessSuccessful, start_run_in_subprocess
from dagster._grpc.types import ExecuteExternalJobArgs
from dagster._serdes import deserialize_value, serialize_value
from dagster._utils import get_run_crash_explanation
from dagster._utils.hosted_user_process import recon_job_from_origin

from lakehouse.orchestration.event_log import kept_open
from lakehouse.orchestration.instance import own_event_log

MODULES_OF_RUNS = (
    "dagster._core.execution.plan.active",
    "dagster._core.executor.in_process",
    "dagster._core.instance.factory",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.system_config.composite_descent",
)
"""What Dagster imports as it carries a run out, and not before."""


def home_of(instance: dg.DagsterInstance) -> Path:
    """Return the folder of an instance, which services are given as `DAGSTER_HOME`."""
    return Path(instance.root_directory)


def is_of_module(request: Mapping[str, Any], module: str) -> bool:
    """Whether the code of a run is a module, by its name, that this Python is to load."""
    origin = deserialize_value(request["code"], JobPythonOrigin).repository_origin
    pointer = origin.code_pointer
    is_module = isinstance(pointer, ModuleCodePointer) and pointer.module == module
    return is_module and origin.executable_path == sys.executable


def request_of_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any] | None:
    """Return what a process has to know to carry out a run: its id, and texts; None of a run
    that does not say where its code is.
    """
    if run.job_code_origin is None or run.remote_job_origin is None:
        return None
    arguments = ExecuteExternalJobArgs(
        job_origin=run.remote_job_origin,
        run_id=run.run_id,
        instance_ref=_with_own_event_log(instance),
    )
    return {
        "home": str(home_of(instance)),
        "run_id": run.run_id,
        "arguments": serialize_value(arguments),
        "code": serialize_value(run.job_code_origin),
    }


def with_own_events(instance: dg.DagsterInstance) -> dg.DagsterInstance:
    """Return an instance with the event log that commands have.

    A run that is asked for gets a file of events, and where it is of a single partition an event
    for each asset and check that it is about to compute.
    """
    return dg.DagsterInstance.from_ref(_with_own_event_log(instance))


def _with_own_event_log(instance: dg.DagsterInstance) -> InstanceRef:
    """Return what an instance is made of, with the event log that commands have: each event of a
    run takes a fraction of the time.
    """
    reference, home = instance.get_ref(), home_of(instance)
    events = own_event_log(home)
    if not events:
        return reference
    with_events = InstanceRef.from_dir(str(home), overrides=events)
    return reference._replace(
        storage_data=with_events.storage_data,
        run_storage_data=with_events.run_storage_data,
        event_storage_data=with_events.event_storage_data,
        schedule_storage_data=with_events.schedule_storage_data,
    )


def load_definitions(module: str, folder: str | None) -> None:
    """Load the definitions of a module, so that a run finds them loaded, with what a file `.env`
    of the working directory says.

    :param folder: where modules are looked for first.
    """
    _set_environment(get_env_var_dict(str(Path.cwd())))
    for target in loadable_targets_from_python_module(module, folder):
        pointer = CodePointer.from_module(module, target.attribute, folder)
        ReconstructableRepository(pointer).get_definition().load_all_definitions()


def carry_out(request: Mapping[str, Any], is_to_begin: Callable[[], bool]) -> None:
    """Carry out a run in this process, as the code server's would.

    :param is_to_begin: asked once the run is known.
    :raises SystemExit: when it is not to begin.
    """

    class Progress:
        def put(self, event: object) -> None:
            if isinstance(event, StartRunInSubprocessSuccessful) and not is_to_begin():
                raise SystemExit(0)

    arguments = deserialize_value(request["arguments"], ExecuteExternalJobArgs)
    secrets = arguments.instance_ref.secrets_loader if arguments.instance_ref else None
    if secrets is not None:
        location = arguments.job_origin.location_name
        _set_environment(secrets.get_secrets_for_environment(location))
    job = recon_job_from_origin(deserialize_value(request["code"], JobPythonOrigin))
    asked_to_end = multiprocessing.get_context("fork").Event()
    with kept_open(Path(request["home"])):
        start_run_in_subprocess(  # type: ignore[no-untyped-call]
            request["arguments"], job, Progress(), asked_to_end
        )


def _set_environment(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        os.environ[name] = value


def report_crash(
    request: Mapping[str, Any], exit_code: int, is_its: Callable[[dg.DagsterRun], bool]
) -> None:
    """Report a run as failed whose process ended in the middle of it.

    :param is_its: whether the run is still that of the process.
    """
    reference = deserialize_value(request["arguments"], ExecuteExternalJobArgs).instance_ref
    assert reference is not None
    with dg.DagsterInstance.from_ref(reference) as instance:
        run = instance.get_run_by_id(request["run_id"])
        if run is None or run.is_finished or not is_its(run):
            return
        process = f"Run execution process for {run.run_id}"
        instance.report_engine_event(get_run_crash_explanation(process, exit_code), run)
        instance.report_run_failed(run)


def note_cancelling(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Note that a run was asked to end."""
    instance.report_run_canceling(run)


def worker_is_there() -> CheckRunHealthResult:
    """Return what a launcher says of a run whose process works."""
    return CheckRunHealthResult(WorkerStatus.RUNNING)


def worker_is_gone(message: str) -> CheckRunHealthResult:
    """Return what a launcher says of a run whose process is gone: it is reported as failed."""
    return CheckRunHealthResult(WorkerStatus.FAILED, message)
