"""YAML of strangers is read as the standard loader reads it, and refused before it costs more than it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from podeval.errors import BadInput
from podeval.hub.repo_info import read_card
from podeval.listening.designs import read_design
from podeval.listening.webmushra import read_configuration
from podeval.text.yaml_text import read_yaml

REPOSITORY = Path(__file__).parents[2]
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def test_documents_are_read_as_the_standard_loader_reads_them() -> None:
    files = sorted(REPOSITORY.glob("submissions/**/*.yaml"))
    assert len(files) > 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert read_yaml(text) == yaml.safe_load(text)
    assert read_yaml("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2024-01-01}") == yaml.safe_load(
        "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2024-01-01}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a" * 200_001, "has 200,001 characters; at most 200,000 of YAML are read"),
        ("[" * 100_000, "is nested more than 100 deep: line 1, column 101"),
        ("- " * 100_000, "is nested more than 100 deep"),
        (BOMB, "has aliases that repeat more than 300,000 values"),
        ("a: &a [*a]", "has a list or block, a, that contains itself: line 1, column 8"),
        ("1:1" * 60_000, "has a number of 180,000 characters: line 1, column 1; at most 1,000 are read"),
        ("a: [", "is not YAML: line 2, column 1: "),
        ("a: 1\nb: !!bool maybe", "is not YAML: line 2, column 4: this cannot be read as !!bool"),
        ('!!int ""', "is not YAML: line 1, column 1: this cannot be read as !!int"),
        ("a: 1\n? [a]\n: b", "is not YAML: line 2, column 3: "),
        ("a: 2024-13-45", "is not YAML: line 1, column 4: .*month must be in 1..12"),
        ("a: 1\nb: c\x07d", r"is not YAML: line 2, column 5: the character U\+0007 is not allowed"),
    ],
)
def test_what_costs_more_than_it_is_and_what_is_no_yaml_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_yaml(text)
    path = tmp_path / "test.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=rf"test\.yaml {sentence}"):
        read_design(path)
    with pytest.raises(BadInput, match=r"test\.yaml"):
        read_configuration(path)
    assert read_card(f"---\n{text}\n---\nA model.") == ({}, "\nA model.")
