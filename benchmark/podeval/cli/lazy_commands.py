"""Commands that are imported when they are run or listed, so that one command does not pay for all the others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

_LONGEST = 300
"""Characters of a summary, which is the first sentence of a command's help."""

Command = Callable[..., Any] | typer.Typer


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each built when it is first looked up.

    Args:
        imports: a function for each name that imports the command: a function, or the `Typer` of a group.
    """

    def __init__(self, imports: Mapping[str, Callable[[], Command]]) -> None:
        self._imports = imports
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, self._imports[name]())
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._imports)

    def __len__(self) -> int:
        return len(self._imports)


class FullHelpGroup(TyperGroup):
    """A group whose help has every summary whole, its commands under headings where it has some."""

    headings: Mapping[str, tuple[str, ...]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their summaries, heading by heading."""
        rest = [name for name in self.list_commands(ctx) if not any(name in names for names in self.headings.values())]
        *firsts, last = list(self.headings.items()) or [("Commands", ())]
        for title, names in (*firsts, (last[0], (*last[1], *rest))):
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def lazy_group(
    imports: Mapping[str, Callable[[], Command]], headings: Mapping[str, tuple[str, ...]]
) -> type[TyperGroup]:
    """The class of a group with these commands, in this order.

    Args:
        imports: a function that imports a command, by its name.
        headings: the names of commands by the heading of the help.
    """

    class LazyGroup(FullHelpGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = LazyCommands(imports)  # type: ignore[assignment]
            self.headings = headings

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

    return LazyGroup


def _build(name: str, command: Command) -> Any:
    if isinstance(command, typer.Typer):
        info = TyperInfo(command, name=name, cls=FullHelpGroup)
        return get_group_from_info(info, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None)
    return get_command_from_info(
        CommandInfo(name=name, callback=command), pretty_exceptions_short=True, rich_markup_mode=None
    )
