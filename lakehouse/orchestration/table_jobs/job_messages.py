"""Uploads a job's messages to the bucket, with retries.

In Dagster's own writer, one failed upload ends the upload thread: all later messages are dropped
silently, and the job continues and publishes.
"""

import sys
import time
from io import StringIO
from typing import IO, Any

from dagster_pipes import PipesS3MessageWriter, PipesS3MessageWriterChannel

_PAUSE_SECONDS = 2.0


class RetryingMessageWriter(PipesS3MessageWriter):
    """Writes messages to the bucket, with retries.

    At the end of a job, Dagster waits one minute for the last messages; `compute_in_job` then
    checks the table itself.
    """

    def make_channel(self, params: Any) -> PipesS3MessageWriterChannel:
        """Return the channel that uploads to the folder of the run."""
        return _LastingChannel(
            self._client, params["bucket"], params.get("key_prefix"), interval=self.interval
        )


class _LastingChannel(PipesS3MessageWriterChannel):
    def upload_messages_chunk(self, payload: IO[str], index: int) -> None:
        """Upload messages, which are no longer in the queue; return after success."""
        content = payload.read()
        is_logged = False
        while True:
            try:
                # A failed upload has consumed its payload.
                super().upload_messages_chunk(StringIO(content), index)
            except Exception as error:
                if not is_logged:
                    print(f"Messages are told again until they are: {error}", file=sys.stderr)  # noqa: T201
                is_logged = True
                time.sleep(_PAUSE_SECONDS)
            else:
                return
