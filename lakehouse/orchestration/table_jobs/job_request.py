"""What a job is asked: which table to compute for which run, and what it cannot know without a
home.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.errors import JobFailed
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.iceberg.erasure.without_gone import Gone
    from lakehouse.iceberg.metadata.engine import Engine

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
    """One table to be computed for one run.

    It holds the keys that hash personal values, and so is read once and removed.
    """

    table: str
    run: Mapping[str, Any]
    """What the run asks, but for its partitions."""
    partitions: Sequence[str]
    """The partitions of the run, as Dagster names them; empty where it has none."""
    settings: Mapping[str, str | None]
    masking_key: str = field(repr=False)
    """In hex digits."""
    gone_key: str | None = field(repr=False)
    """Key of the hashes of who is gone, in hex digits."""
    gone: Mapping[str, str] = field(repr=False)
    """When people were erased, by their keyed hash in hex digits."""

    dead_writes: Mapping[str, Sequence[str]]
    """Ids of writes that never ended, by their table: the job drops their branches."""
    failed_last: Sequence[str]
    """Names of rules that failed last: one that holds for what is written is evaluated on all
    rows.
    """

    @classmethod
    def of(
        cls,
        table: str,
        run: Run,
        settings: Settings,
        engine: "Engine",
        gone: "Gone",
        dead_writes: Mapping[str, Sequence[str]],
        failed_last: Collection[str] = (),
    ) -> "JobRequest":
        """Return what is asked for a run of a table."""
        return cls(
            table,
            {name: getattr(run, name) for name in _OF_RUN},
            run.partition_values,
            {name: getattr(settings, name) for name in _OF_SETTINGS},
            engine.masking_key.hex(),
            gone.key.hex() if gone.key else None,
            {digest.hex(): at.isoformat() for digest, at in gone.erased_at.items()},
            dead_writes,
            sorted(failed_last),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as a piece of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> "JobRequest":
        """Read what `to_json` wrote.

        :raises JobFailed: when something else asks.
        """
        if set(asked) != set(cls.__dataclass_fields__):
            raise JobFailed(
                f"The job was asked with {', '.join(sorted(asked)) or 'nothing'}; expected"
                f" {', '.join(cls.__dataclass_fields__)}.",
                next_step="Let a run of the lakehouse start it, see LAKEHOUSE_JOBS.",
            )
        return cls(**asked)

    @property
    def erased_at(self) -> dict[bytes, datetime]:
        """When people were erased, by their keyed hash."""
        gone = self.gone.items()
        return {bytes.fromhex(digest): datetime.fromisoformat(at) for digest, at in gone}
