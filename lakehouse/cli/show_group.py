"""A group of commands whose own word may be followed by what is shown."""

import click


class ShowGroup(click.Group):
    """A group of which any word that is none of its commands names what its `show` is given."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word."""
        if args and self.get_command(ctx, args[0]) is None:
            return "show", self.get_command(ctx, "show"), args
        return super().resolve_command(ctx, args)
