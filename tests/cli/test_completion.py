"""What a shell is told to complete: names of metrics, keys, benchmarks, splits."""

import pytest
from typer.main import get_command

from podeval.cli import app


def complete(line: str) -> list[str]:
    """What may follow on a line, whose last word is not whole."""
    from typer._completion_classes import BashComplete

    *words, last = line.split(" ")
    shell = BashComplete(get_command(app), {}, "podeval", "_PODEVAL_COMPLETE")
    return [item.value for item in shell.get_completions(words[1:], last)]


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("podeval measure dn", ["dnsmos"]),
        ("podeval metrics show dis", ["distinct_n", "distillmos"]),
        ("podeval score x.wav --metrics wer,dn", ["wer,dnsmos"]),
        ("podeval run --metrics wer,we", []),
        ("podeval measure wer x.wav --set n", ["normaliser=whisper", "normaliser=basic"]),
        ("podeval run --benchmark l", ["lfs_bench"]),
        ("podeval run --benchmark lfs_bench --split ", ["test", "sample"]),
        ("podeval run --benchmark nothing --split ", []),
        ("podeval report certificate RUN --key dnsmos.o", ["dnsmos.ovrl", "dnsmos.ovrl_stem"]),
        ("podeval report certificate RUN --key spt", ["sptd.sptd", "sptd.speakers"]),
        ("podeval compare A B --fail-if-worse dnsm", ["dnsmos"]),
        ("podeval run hib", ["hibari_piper"]),
        ("podeval score --profile r", ["reference"]),
        ("podeval data info podb", ["podbench"]),
    ],
)
def test_values_are_completed_by_what_there_is(line: str, completions: list[str]) -> None:
    assert complete(line) == completions
