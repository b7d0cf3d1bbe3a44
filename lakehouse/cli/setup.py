"""`lakehouse setup`: what Spark needs, fetched once."""

from lakehouse.cli.call_context import State, command


@command("setup")
def setup(state: State) -> None:
    """Fetch Spark's jars, once.

    Where all is there it says so, and uses no network.
    """
    from rich.console import Console

    from lakehouse.runtime.install import set_up

    set_up(state.settings, Console(stderr=True))
