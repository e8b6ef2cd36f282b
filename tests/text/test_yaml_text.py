"""YAML of strangers is read as the standard loader reads it, and refused before it costs more than it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval.arena.manifest import read_manifest
from podeval.errors import BadInput
from podeval.hub.repo_info import read_card
from podeval.judges.judge import Judge, find_judge
from podeval.listening.designs import read_design
from podeval.listening.webmushra import read_configuration
from podeval.metrics.rubric_writing import load_review
from podeval.text.yaml_text import find_place, read_yaml

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
        ("a" * 200_001, "has 200,001 characters, but at most 200,000 are read"),
        ("[" * 100_000, "is nested more than 100 deep: line 1, column 101"),
        ("- " * 100_000, "is nested more than 100 deep"),
        (BOMB, "the YAML's aliases repeat more than 300,000 values"),
        ("a: &a [*a]", "the list or block a contains itself: line 1, column 8"),
        ("1:1" * 60_000, "a number has 180,000 characters, but at most 1,000 are read: line 1, column 1"),
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
    with pytest.raises(BadInput, match=rf"test\.yaml: .*{sentence}"):
        read_design(path)
    with pytest.raises(BadInput, match=r"test\.yaml"):
        read_configuration(path)
    assert read_card(f"---\n{text}\n---\nA model.") == ({}, "\nA model.")


@pytest.mark.parametrize("before", ["", "\n", "\n\n", "\r\n", " \n", "\ufeff", "\ufeff\n"])
def test_the_metadata_of_a_card_may_stand_below_empty_lines_as_on_the_hub(before: str) -> None:
    from huggingface_hub import RepoCard

    readme = f"{before}---\nlicense: mit\n---\nA model."
    assert read_card(readme) == ({"license": "mit"}, "\nA model.")
    if "\ufeff" not in before:
        assert RepoCard(readme).data.to_dict() == {"license": "mit"}
    assert read_card(f"{before}A model.\n---\nlicense: mit\n---\n")[0] == {}


NESTED = """\
kind: mushra
shared: &shared
  text: Listen.
items:
  - id: one
  - id: two
    <<: *shared
    stimuli: {a: a.wav, b: 5}
"""


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ((), "line 1, column 1"),
        (("kind",), "line 1, column 1"),
        (("items", 1, "id"), "line 6, column 5"),
        (("items", 1, "stimuli", "b"), "line 8, column 25"),
        (("items", 1, "text"), "line 3, column 3"),
        (("items", 0, "stimuli"), "line 5, column 5"),
        (("mushra", "items", 1, "stimuli", "b", "Stimulus", "audio"), "line 8, column 25"),
        (("items", 7), "line 4, column 1"),
        (("nothing",), "line 1, column 1"),
    ],
)
def test_a_field_is_found_where_it_stands_or_in_the_block_that_lacks_it(
    location: tuple[str | int, ...], place: str
) -> None:
    assert find_place(NESTED, location) == place


def test_an_empty_document_begins_at_its_beginning() -> None:
    assert find_place("", ("kind",)) == "line 1, column 1"


def find_judge_in(path: Path) -> Judge:
    return find_judge(str(path))


@pytest.mark.parametrize(
    ("read", "text", "place"),
    [
        (read_design, "kind: mushra\nid: x\n  \ntitle: [no]\n", r"line 4, column 1: .*title"),
        (read_manifest, "systems: []\nitems:\n  - id: 5\n", r"line 3, column 5: items\.0\.id"),
        (find_judge_in, "backend: endpoint\nmodel: m\ntries: 99\n", r"line 3, column 1: tries"),
        (load_review, "judge: x\nkind: rubrics\nprompt: p\nitems: 3\n", r"line 4, column 1: items"),
    ],
)
def test_a_wrong_field_of_a_file_is_told_by_line_and_column(
    read: Callable[[Any], Any], text: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=place) as refusal:
        read(path)
    assert "file.yaml" in str(refusal.value)
