"""How a job tells its messages: through the bucket, each again until it is there.

Of Dagster's own writer one failed upload ends the thread that uploads: what it had taken from the
queue, and all that came later, was lost without a word, and the job went on and published.
"""

import sys
import time
from io import StringIO
from typing import IO, Any

from dagster_pipes import PipesS3MessageWriter, PipesS3MessageWriterChannel

_PAUSE_SECONDS = 2.0


class LastingMessageWriter(PipesS3MessageWriter):
    """Writes messages to the bucket whatever comes between.

    At the end of the job Dagster waits a minute for the last of them; what is not there by then,
    `compute_in_job` looks for in the table itself.
    """

    def make_channel(self, params: Any) -> PipesS3MessageWriterChannel:
        """Return what uploads messages to the folder that a job is told."""
        return _LastingChannel(
            self._client, params["bucket"], params.get("key_prefix"), interval=self.interval
        )


class _LastingChannel(PipesS3MessageWriterChannel):
    def upload_messages_chunk(self, payload: IO[str], index: int) -> None:
        """Upload some messages, which are in the queue no longer; return once they are there."""
        content = payload.read()
        is_said = False
        while True:
            try:
                # What failed has read its payload to the end.
                super().upload_messages_chunk(StringIO(content), index)
            except Exception as error:
                if not is_said:
                    print(f"Messages are told again until they are: {error}", file=sys.stderr)  # noqa: T201
                is_said = True
                time.sleep(_PAUSE_SECONDS)
            else:
                return
