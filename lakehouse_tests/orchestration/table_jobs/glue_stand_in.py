"""Replaces AWS Glue, which no emulator runs: starts the script of a job as a process."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import boto3

from lakehouse.settings import Settings
from lakehouse.spark import jars, jvm

_STATES = {None: "RUNNING", 0: "SUCCEEDED"}
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass
class GlueStandIn:
    settings: Settings
    folder: Path
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    stopping: set[str] = field(default_factory=set)
    meta: Any = field(default_factory=lambda: SimpleNamespace(region_name="eu-central-1"))

    def start_job_run(self, JobName: str, Arguments: dict[str, str]) -> dict[str, str]:  # noqa: N803
        job = boto3.client("glue", endpoint_url=self.settings.endpoint_url).get_job(
            JobName=JobName
        )["Job"]
        run_id = f"jr_{len(self.processes)}"
        script = self.folder / f"{run_id}.py"
        place = urlsplit(job["Command"]["ScriptLocation"])
        boto3.client("s3", endpoint_url=self.settings.endpoint_url).download_file(
            place.netloc, place.path[1:], str(script)
        )
        given = {"--JOB_NAME": JobName, **job["DefaultArguments"], **Arguments}
        with self.log(run_id).open("wb") as log:
            self.processes[run_id] = subprocess.Popen(
                [
                    sys.executable,
                    str(script),
                    *(part for item in given.items() for part in item),
                ],
                cwd=self.folder,
                env=self._environment(given),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return {"JobRunId": run_id}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803
        state = _STATES.get(self.processes[RunId].poll(), "FAILED")
        if RunId in self.stopping:
            self.processes[RunId].kill()
            self.processes[RunId].wait()
            self.stopped.add(RunId)
            state = "STOPPED"
        return {"JobRun": {"Id": RunId, "JobName": JobName, "JobRunState": state}}

    def batch_stop_job_run(self, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:  # noqa: N803
        for run_id in JobRunIds:
            self.stopping.add(run_id)
        stopped = [{"JobName": JobName, "JobRunId": run_id} for run_id in JobRunIds]
        return {"SuccessfulSubmissions": stopped, "Errors": []}

    def arguments(self, run_id: str) -> dict[str, str]:
        words = cast(list[str], self.processes[run_id].args)[2:]
        return dict(zip(words[::2], words[1::2], strict=True))

    def log(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.log"

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _environment(self, arguments: dict[str, str]) -> dict[str, str]:
        if arguments.get("--datalake-formats") != "iceberg":
            platform = "--conf spark.ui.enabled=false pyspark-shell"
        else:
            there = ":".join(
                str(jars.path(self.settings, jar)) for jar in jars.pinned(self.settings)
            )
            platform = (
                f"--master local[2] --driver-memory 1g --driver-class-path {there}"
                " --conf spark.ui.enabled=false pyspark-shell"
            )
        jvm.prepare(self.settings)
        kept = ("PATH", "JAVA_HOME", "HOME")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.settings.endpoint_url or "",
            "JDK_JAVA_OPTIONS": _JVM,
            "PYSPARK_SUBMIT_ARGS": platform,
        }
