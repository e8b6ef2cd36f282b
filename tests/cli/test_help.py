"""What `--help` says of every command, nested ones too: a whole summary, a sentence, an example that names it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from podeval.cli import app

NO_NOUN = re.compile(r"(of|that|its|whose|who|where|why) ", re.IGNORECASE)
"""What the help of an option does not begin with: it says what the option is."""


def every_command(command: Any = None, path: tuple[str, ...] = ("podeval",)) -> Iterator[tuple[str, Any]]:
    """Every command and group, by what is typed to call it."""
    command = command or get_command(app)
    yield " ".join(path), command
    for name, nested in dict(getattr(command, "commands", {})).items():
        yield from every_command(nested, (*path, name))


COMMANDS = dict(every_command())


def test_nested_commands_are_among_them() -> None:
    assert {"podeval arena add", "podeval data push", "podeval data construct"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_sentence_with_an_example_and_says_what_each_option_is(name: str) -> None:
    command = COMMANDS[name]
    summary = command.help.split("\n\n")[0].replace("\n", " ")
    assert summary.endswith("."), "a complete sentence"
    assert re.match(r"[A-Z][a-z-]+[ ,]", summary), "which begins with what the command does"
    assert f"Example: {name}" in " ".join(command.help.split()), "an example that can be copied"
    shown = command.get_help(command.context_class(command, info_name=name))
    assert not re.search(r"<(list|str|int|float)|range>|x[<>]=", shown), "values are named in words"
    for option in command.params:
        said = getattr(option, "help", None)
        assert said, f"{option.name} says nothing"
        assert not NO_NOUN.match(said), f"{option.name}: {said}"


def test_the_options_of_a_run_are_in_groups() -> None:
    shown = COMMANDS["podeval run"].get_help(COMMANDS["podeval run"].context_class(COMMANDS["podeval run"]))
    heads = [line for line in shown.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert heads == ["Arguments:", "System:", "Server:", "Benchmark:", "Measuring:", "Judge:", "Where:", "Options:"]
    assert shown.partition("\nOptions:\n")[2].split()[0] == "--help", "every other option is in a group"


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if getattr(command, "commands", None)])
def test_no_summary_in_a_list_of_commands_is_cut_off(name: str) -> None:
    group = COMMANDS[name]
    context = group.context_class(group, info_name=name, terminal_width=80)
    listed = group.get_help(context).partition("xample")[2]
    assert "..." not in listed.replace("[ARGS]...", "")
