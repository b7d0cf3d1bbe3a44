"""A repository of jars, as Maven Central is one, that a test serves."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lakehouse.spark.jars import Jar

CONTENT = b"as published, with some length " * 1000
JAR = Jar("test.group:small:1.0", sha256(CONTENT).hexdigest())
"""The one jar that is there. It holds no class."""
_POM = (
    "<project><modelVersion>4.0.0</modelVersion>"
    "<groupId>test.group</groupId><artifactId>small</artifactId><version>1.0</version></project>"
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of what is fetched."""


@contextmanager
def served_repository(root: Path) -> Iterator[tuple[Path, str]]:
    """Serve `JAR` from below a folder; yield the folder that has it, and the address."""
    folder = root / "test" / "group" / "small" / "1.0"
    folder.mkdir(parents=True)
    (folder / "small-1.0.pom").write_text(_POM)
    (folder / "small-1.0.jar").write_bytes(CONTENT)
    handler = functools.partial(_Quiet, directory=root)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
