"""Commands that are imported when they are run or listed, so that one command does not pay for all the others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

Command = Callable[..., Any] | typer.Typer


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each built when it is first looked up.

    Args:
        imports: by name what imports a command: a function, or the `Typer` of a group.
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


def lazy_group(imports: Mapping[str, Callable[[], Command]]) -> type[TyperGroup]:
    """The class of a group with these commands, in this order.

    Args:
        imports: by name what imports a command.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = LazyCommands(imports)  # type: ignore[assignment]

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

    return LazyGroup


def _build(name: str, command: Command) -> Any:
    if isinstance(command, typer.Typer):
        info = TyperInfo(command, name=name)
        return get_group_from_info(info, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None)
    return get_command_from_info(
        CommandInfo(name=name, callback=command), pretty_exceptions_short=True, rich_markup_mode=None
    )
