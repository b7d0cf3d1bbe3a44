"""Selects the AWS job of a table."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from lakehouse.settings import Settings, TableJob
from lakehouse.spark.project_code import process_code


@dataclass(frozen=True)
class TableJobs:
    """The configured jobs; without a job, this process computes a table."""

    settings: Settings | None = None

    @classmethod
    def of_run(cls, settings: Settings) -> "TableJobs":
        """Return the jobs for a new run; reads the code now, not when the first job starts."""
        if settings.jobs:
            process_code(settings)
        return cls(settings)

    def job_of(self, table: str) -> TableJob | None:
        """Return the job of a table; None if this process computes it."""
        jobs = self.settings.jobs if self.settings else ()
        return next((job for job in jobs if fnmatchcase(table, job.tables)), None)


NO_JOBS = TableJobs()
