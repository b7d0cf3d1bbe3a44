"""Which tables are computed in a job of AWS, and in which."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from lakehouse.runtime.project_code import process_code
from lakehouse.settings import Settings, TableJob


@dataclass(frozen=True)
class TableJobs:
    """The jobs of a deployment; left out, every table is computed by this process."""

    settings: Settings | None = None

    @classmethod
    def of_run(cls, settings: Settings) -> "TableJobs":
        """Return the jobs for a run that begins: where there are any, its code is read now, and not
        when the first of them is started.
        """
        if settings.jobs:
            process_code(settings)
        return cls(settings)

    def job_of(self, table: str) -> TableJob | None:
        """Return the job that computes a table; None where this process does."""
        jobs = self.settings.jobs if self.settings else ()
        return next((job for job in jobs if fnmatchcase(table, job.tables)), None)


NO_JOBS = TableJobs()
