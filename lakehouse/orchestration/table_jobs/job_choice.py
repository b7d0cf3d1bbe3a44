"""Which tables are computed in a job of AWS, and in which."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from lakehouse.settings import Settings, TableJob


@dataclass(frozen=True)
class TableJobs:
    """The jobs of a deployment; left out, every table is computed by this process."""

    settings: Settings | None = None

    def job_of(self, table: str) -> TableJob | None:
        """Return the job that computes a table; None where this process does."""
        jobs = self.settings.jobs if self.settings else ()
        return next((job for job in jobs if fnmatchcase(table, job.tables)), None)


NO_JOBS = TableJobs()
