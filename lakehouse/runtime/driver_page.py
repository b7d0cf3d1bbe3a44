"""What the web page of a driver says of its executors, on whatever cluster it is: Spark's own REST
interface, as its manual describes it under "Monitoring".
"""

import json
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER = "driver"
_PORT = "4040"
"""Spark's own default."""
_SECONDS = 3.0


def executors_page(session: "SparkSession") -> str:
    """Return where the driver of a session tells of its executors, as the session's configuration
    says, also to a client of Spark Connect.
    """
    host = session.conf.get("spark.driver.host", "")
    port = session.conf.get("spark.ui.port", _PORT)
    application = session.conf.get("spark.app.id", "")
    return f"http://{host}:{port}/api/v1/applications/{application}/executors"


def count_executors(page: str) -> int | None:
    """Return how many executors a driver has now; None where its page does not answer, such as
    behind a firewall, or is another application's.
    """
    try:
        # Always http://.
        with urllib.request.urlopen(page, timeout=_SECONDS) as answer:  # noqa: S310
            executors = json.load(answer)
        active = [one for one in executors if one["isActive"] and one["id"] != _DRIVER]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    return len(active)
