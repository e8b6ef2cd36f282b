"""Every step says what it does, with an example that names it."""

from typing import Any

import pytest
import typer

from podeval.cli.datasets import construct

STEPS = [
    (group.name, command.name or command.callback.__name__)  # type: ignore[union-attr]
    for group in construct.registered_groups
    if group.typer_instance is not None
    for command in group.typer_instance.registered_commands
]


def test_there_are_steps_for_each_benchmark() -> None:
    assert {group for group, _ in STEPS} == {"real_pod", "lfs_bench", "podbench", "mtalk_bench"}
    assert all(isinstance(group.typer_instance, typer.Typer) for group in construct.registered_groups)


@pytest.mark.parametrize(("benchmark", "step"), STEPS)
def test_help_has_an_example(benchmark: str, step: str, podeval: Any) -> None:
    said = " ".join(podeval(benchmark, step, "--help").output.split())
    assert f"Example: podeval data construct {benchmark} {step}" in said
