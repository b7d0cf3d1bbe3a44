"""Request to a job: the table, the run, and state that only the home has."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.errors import JobFailed
from lakehouse.iceberg.values.write_context import Run
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.iceberg.catalog.engine import Engine
    from lakehouse.iceberg.erasure.suppression_list import ErasedIds

_OF_RUN = (
    "run_id",
    "full_recompute",
    "reads_everything",
    "follows_erasures",
    "code_version",
)
_OF_SETTINGS = ("bucket", "region", "endpoint_url", "definitions")


@dataclass(frozen=True)
class JobRequest:
    """A table to compute for one run.

    Contains the keys that hash personal values: it is read once and deleted.
    """

    table: str
    run: Mapping[str, Any]
    """Parameters of the run except for its partitions."""
    partitions: Sequence[str]
    """Dagster partition keys of the run; empty without partitions."""
    settings: Mapping[str, str | None]
    masking_key: str = field(repr=False)
    """Hexadecimal."""
    erasure_key: str | None = field(repr=False)
    """Key of the data subject hashes, hexadecimal."""
    erased: Mapping[str, str] = field(repr=False)
    """Erasure timestamps by data subject hash, hexadecimal."""

    @classmethod
    def of(
        cls, table: str, run: Run, settings: Settings, engine: "Engine", erased: "ErasedIds"
    ) -> "JobRequest":
        """Return the request for a run of a table."""
        return cls(
            table,
            {name: getattr(run, name) for name in _OF_RUN},
            run.partition_values,
            {name: getattr(settings, name) for name in _OF_SETTINGS},
            engine.masking_key.hex(),
            erased.key.hex() if erased.key else None,
            {digest.hex(): at.isoformat() for digest, at in erased.erased_at.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the request as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "JobRequest":
        """Parse the output of `to_json`.

        :raises JobFailed: the fields differ, for example if the job was started by hand.
        """
        if set(content) != set(cls.__dataclass_fields__):
            raise JobFailed(
                f"The job was requested with {', '.join(sorted(content)) or 'nothing'}; expected"
                f" {', '.join(cls.__dataclass_fields__)}.",
                next_step="Let a run of the lakehouse start it, see LAKEHOUSE_JOBS.",
            )
        return cls(**content)

    @property
    def erased_at(self) -> dict[bytes, datetime]:
        """Erasure timestamps by data subject hash."""
        erased = self.erased.items()
        return {bytes.fromhex(digest): datetime.fromisoformat(at) for digest, at in erased}
