"""`lakehouse connect-conf`: prints the configuration of a Spark Connect server."""

import click

from lakehouse.cli.call_context import State, command


@command("connect-conf")
@click.option(
    "--jars",
    "jar_folder",
    metavar="DIR",
    help="Folder of the jars on the server; by default, the server fetches them.",
)
def connect_conf(state: State, jar_folder: str | None) -> None:
    """Print what a Spark Connect server must be started with.

    The output is a properties file for spark-submit without credentials. On the cluster of
    LAKEHOUSE_SPARK_MASTER, it uses no more resources than a command does. `lakehouse doctor`
    checks a server that SPARK_REMOTE names.
    """
    import pyspark

    from lakehouse.runtime.connect_server import (
        SERVER_CLASS,
        bounds_to_choose,
        properties_text,
        server_configuration,
    )
    from lakehouse.runtime.spark_master import read_master

    settings = state.settings
    cluster = read_master(settings.cluster, settings.spark_master)
    configuration = server_configuration(settings, jar_folder, cluster)
    click.echo(f"# What a Spark Connect server of Spark {pyspark.__version__} is started with.")
    click.echo(f"# spark-submit --properties-file FILE --class {SERVER_CLASS} spark-internal")
    if settings.deployment == "aws":
        click.echo("# It and its executors need credentials of AWS in their environment.")
    else:
        click.echo(f"# It and its executors have to see {settings.home} under that path.")
    click.echo(properties_text(configuration), nl=False)
    bounds = bounds_to_choose(settings, configuration)
    if bounds:
        click.echo(
            "# While it works it may take all cores of a standalone cluster, unless bounded:"
        )
    for name in bounds:
        click.echo(f"# {name}=2")
