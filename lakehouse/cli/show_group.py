"""Command group with `show` as its default command."""

import click


class ShowGroup(click.Group):
    """A group that passes an unknown first word to its command `show`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word."""
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), args
        return super().resolve_command(ctx, args)
