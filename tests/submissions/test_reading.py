"""Documents that strangers write: mistakes are told by line and field, attacks cost nothing."""

import contextlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podeval.errors import BadInput
from podeval.systems.submission import (
    BLOCKS,
    PATTERNS_IN_WORDS,
    DocumentPart,
    Model,
    Reported,
    Submission,
    build_json_schema,
)
from podeval.systems.submission_reading import MAX_BYTES, BadDocument, load, load_all, parse

GOOD = """\
schema_version: 1
system:
  id: my_tts
  name: My TTS
  description: Speaks.
  licence: Apache-2.0
  open: true
  languages: [en]
benchmarks:
  - name: real_pod
    tracks: [voice]
source:
  kind: model
  repo: me/my-tts
  revision: 0123456789abcdef0123456789abcdef01234567
  task: text-to-speech
"""
SOURCE = GOOD.index("source:")
HEADER = "benchmark,paper,table,printed,module,key,variant,breakdown,group,value,better,note\n"
ROW = "real_pod,podeval,Table 5,MATTR,mattr,mattr,podeval,,,0.7300,higher,\n"


def with_source(*lines: str) -> str:
    return GOOD[:SOURCE] + "source:\n" + "".join(f"  {line}\n" for line in lines)


def problem(text: str) -> str:
    with pytest.raises(BadDocument) as caught:
        parse(text, "doc.yaml")
    assert len(caught.value.problems) == 1, str(caught.value)
    return str(caught.value)


def test_a_good_document_is_read() -> None:
    submission = parse(GOOD)
    assert submission.system.id == "my_tts"
    assert isinstance(submission.source, Model)
    assert submission.source.task == "text-to-speech"


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("licence: Apache", "license: Apache", 6, 3, "system.license: is not a field here; did you mean licence?"),
        ("  name: My TTS\n", "", 2, 1, "system.name: is missing; add name (as shown on the board)"),
        ("name: My TTS", "name: 12", 4, 3, "system.name: must be text, not 12; put it in quotes"),
        ("name: My TTS", "name: 2024-01-01", 4, 3, 'system.name: must be text, not "2024-01-01"; put it in quotes'),
        ("id: my_tts", "id: My-TTS", 3, 3, 'system.id: is "My-TTS", but must be 2 to 64 lower-case letters'),
        ("open: true", "open: perhaps", 7, 3, 'system.open: should be a valid boolean; it is "perhaps"'),
        ("[en]", "english", 8, 3, 'system.languages: must be a list, not "english"'),
        ("[en]", "[english]", 8, 15, 'system.languages[1]: is "english", but must be a language code'),
        ("[en]", "[]", 8, 3, "system.languages: needs at least 1 entry"),
        ("real_pod", "realpod", 10, 5, "benchmarks[1].name: there is no benchmark 'realpod'; did you mean real_pod?"),
        ("[voice]", "[sing]", 10, 5, "benchmarks[1]: real_pod has no track sing; choose among voice, write"),
        ("kind: model", "kind: modl", 13, 3, "source.kind: must be one of 'outputs', 'model', 'human', 'builtin'"),
        ("  kind: model\n", "", 12, 1, "source.kind: is missing; write outputs, model"),
        ("text-to-speech", "text-to-sing", 16, 3, "source.task: must be 'text-to-speech', 'podcast', 'script-wr"),
        ("0123456789abcdef0123456789abcdef01234567", "main", 15, 3, 'source.revision: is "main", but must be a full'),
        ("me/my-tts", "my-tts", 14, 3, 'source.repo: is "my-tts", but must be a Hub repo as owner/name'),
        ("  task: text-to-speech\n", "", 12, 1, "source.task: is missing; add task"),
        ("  repo:", "  repos:", 14, 3, "source.repos: is not a field here; did you mean repo?"),
        ("schema_version: 1", "schema_version: 2", 1, 1, "schema_version: must be 1, not 2"),
        ("system:\n", "system: me\nsystems:\n", 2, 1, "system: must be a block of fields"),
    ],
)
def test_a_mistake_is_told_by_its_place_and_field_with_what_to_do(
    old: str, new: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(BadDocument) as caught:
        parse(GOOD.replace(old, new, 1), "doc.yaml")
    assert f"doc.yaml, line {line}, column {column}, {message}" in str(caught.value)


def test_all_mistakes_are_told_at_once_and_many_are_cut_short() -> None:
    text = GOOD.replace("My TTS", "12").replace("true", "perhaps")
    with pytest.raises(BadDocument) as caught:
        parse(text)
    assert [result.field for result in caught.value.problems] == ["system.name", "system.open"]
    many = GOOD.replace("[en]", "[" + ", ".join(["x"] * 30) + "]")
    with pytest.raises(BadDocument, match="and 20 more"):
        parse(many)


def test_an_unknown_field_of_an_entry_does_not_make_its_list_empty() -> None:
    with pytest.raises(BadDocument) as caught:
        parse(GOOD.replace("    tracks: [voice]\n", "    tracks: [voice]\n    splits: [topics]\n"))
    assert [result.field for result in caught.value.problems] == ["benchmarks[1].splits"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("id: my_tts", "id: [my_tts"), "is not YAML: line 4, column 7"),
        (GOOD.replace("  name", "\tname"), "is not YAML: line 4, column 1"),
        (GOOD.replace("My TTS", "My: TTS"), "is not YAML: line 4, column 11: mapping values are not allowed"),
        (GOOD + "---\n" + GOOD, "is not YAML: line 17, column 1"),
        (GOOD.replace("My TTS", "My \x00 TTS"), "line 4, column 12: the character U+0000 is not allowed"),
        (
            GOOD.replace("My TTS", "9" * 5000),
            "a number has 5,000 characters, but at most 1,000 are read: line 4, column 9",
        ),
        (GOOD.replace("My TTS", "2024-99-99"), "line 4, column 9: this cannot be read as !!timestamp"),
        (GOOD.replace("  name:", "  ? [a]\n  :"), "line 4, column 5: while constructing a mapping"),
        (GOOD.replace("My TTS", '"\\ud800"'), "is not YAML: line 4, column 12"),
        (GOOD.replace("My TTS", "!!python/object/apply:os.system {a: b}"), "could not determine a constructor"),
        (GOOD.replace("My TTS", "!thing {a: b}"), "could not determine a constructor"),
        ("a: " + "[" * 100_000, "is nested more than 100 deep"),
        ("a: " + "{b: " * 50_000, "is nested more than 100 deep"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
            + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
            "the YAML's aliases repeat more than 300,000 values",
        ),
    ],
)
def test_text_that_is_no_yaml_or_would_cost_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text, "doc.yaml")
    assert str(caught.value).startswith("doc.yaml: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + GOOD, "line 17, column 1, schema_version: appears twice; keep one"),
        ("", "line 1: the document is not a list of fields"),
        ("- a\n", "line 1, column 1: the document is not a list of fields"),
        ("just words", "line 1, column 1: the document is not a list of fields"),
        (GOOD.replace("  name:", '  "\\e[2J": 1\n  name:'), "line 4, column 3, system.?: is not a field here"),
        (GOOD.replace("My TTS", "!!set {a: b}"), "line 4, column 3, system.name: must be text"),
    ],
)
def test_text_that_is_no_document_is_refused_with_its_line(text: str, message: str) -> None:
    assert message in problem(text)


@pytest.mark.parametrize("name", ['"a\\nb"', '"a\\u202eb"', '"\\e[31m"', '"\\x9b31m"', '"a\\Lb"', '""', "x" * 201])
def test_a_name_that_would_disturb_a_page_or_terminal_is_refused(name: str) -> None:
    message = problem(GOOD.replace("My TTS", name))
    assert "line 4, column 3, system.name" in message
    message.encode()


@pytest.mark.parametrize("link", ["http://a.org", "javascript:alert(1)", "https://a.org/<b>", "https://"])
def test_only_plain_https_links_are_taken(link: str) -> None:
    text = GOOD.replace("  licence", f'  links:\n    code: "{link}"\n  licence')
    assert "line 7, column 5, system.links.code: " in problem(text)
    assert "must be a link that starts with https://" in problem(text)


def test_outputs_need_one_pinned_place() -> None:
    revision = "revision: 0123456789abcdef0123456789abcdef01234567"
    parse(with_source("kind: outputs", "repo: me/audio", revision))
    parse(with_source("kind: human", "folder: audio/en"))
    assert "line 12, column 1, source: give either repo" in problem(with_source("kind: outputs"))
    assert "give either repo" in problem(with_source("kind: outputs", "repo: me/a", revision, "folder: audio"))
    assert "give both repo and revision" in problem(with_source("kind: outputs", "repo: me/audio"))


@pytest.mark.parametrize("folder", ["/etc", "../other", "a/../../b", ".hidden", "a//b", "~"])
def test_a_folder_cannot_lead_out_of_the_submission(folder: str) -> None:
    assert "source.folder" in problem(with_source("kind: outputs", f'folder: "{folder}"'))


def test_an_adapter_names_its_pinned_base() -> None:
    base = "base: {repo: them/llm, revision: main}"
    text = GOOD.replace("text-to-speech", f"script-writer\n  {base}")
    assert 'line 17, column 26, source.base.revision: is "main", but must be a full commit hash' in problem(text)


def test_a_file_too_large_or_not_text_or_missing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "submission.yaml"
    with pytest.raises(BadInput, match=r"cannot read .*submission.yaml: No such file"):
        load(file)
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(BadInput, match="larger than 256 KiB"):
        load(file)
    with pytest.raises(BadInput, match="larger than 256 KiB"):
        parse("#" * (MAX_BYTES + 1))
    file.write_bytes(b"name: \xff")
    with pytest.raises(BadInput, match=r"not UTF-8 text \(byte 6\)"):
        load(file)
    file.write_text(GOOD, encoding="utf-8-sig")
    assert load(tmp_path) == load(file) == parse(GOOD)


@pytest.fixture
def reported(tmp_path: Path) -> Callable[..., Submission]:
    def read(results: str, document: str = with_source("kind: reported", "results: results.csv")) -> Submission:
        (tmp_path / "submission.yaml").write_text(document, encoding="utf-8")
        (tmp_path / "results.csv").write_text(results, encoding="utf-8")
        return load(tmp_path)

    return read


def test_figures_in_a_file_and_in_the_document_are_the_same_and_keep_their_digits(
    reported: Callable[..., Submission],
) -> None:
    names = HEADER.strip().split(",")
    cells = [f"{name}: '{cell}'" for name, cell in zip(names, ROW.strip().split(","), strict=True) if cell]
    in_file = reported(HEADER + ROW).source
    in_document = parse(with_source("kind: reported", "results:", f"  - {{{', '.join(cells)}}}")).source
    assert isinstance(in_file, Reported)
    assert in_file == in_document
    assert in_file.results[0].value == Decimal("0.73")
    assert str(in_file.results[0].value) == "0.7300"


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (HEADER + ROW.replace("0.7300", "n/a"), "results.csv, line 2, source.results[1].value: "),
        (HEADER + ROW.replace("0.7300", "nan"), "results.csv, line 2, source.results[1].value: "),
        (HEADER + ROW.replace("0.7300", ""), "line 2, source.results[1].value: is missing; add value"),
        (HEADER + ROW.replace("higher", "up"), "line 2, source.results[1].better: must be 'higher', 'lower' or"),
        (
            HEADER.replace("printed", "print") + ROW,
            "line 1, print: this is not a column of a results file; did you mean",
        ),
        (HEADER.replace("note", "value") + ROW, "results.csv, line 1: the header contains a column twice"),
        (HEADER + ROW.strip() + ",x\n", "results.csv, line 2: the row has more cells than the 12 columns"),
        (HEADER + '"open', "results.csv, line 2: the file is not valid CSV"),
        (HEADER + ROW + ROW, "figure 2 (MATTR) appears twice"),
        (HEADER + ROW.replace(",mattr,mattr,", ",mattr,,"), "module and key belong together"),
        (HEADER + ROW.replace(",podeval,,,", ",podeval,category,,"), "breakdown and group belong together"),
        (HEADER + ROW.replace(",podeval,,,", ",podeval,category,Cooking,"), "real_pod has no category Cooking"),
        (HEADER, "source.results: needs at least 1 entry"),
        ("", "source.results: needs at least 1 entry"),
    ],
)
def test_mistakes_in_a_results_file_are_told_by_its_own_lines(
    reported: Callable[..., Submission], results: str, message: str
) -> None:
    with pytest.raises(BadDocument) as caught:
        reported(results)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/passwd", "results.yaml", "a/b.csv"])
def test_a_results_file_lies_beside_its_document(name: str) -> None:
    assert "must be the name of a .csv file" in problem(with_source("kind: reported", f"results: {name}"))


def test_a_results_file_that_is_a_link_or_missing_is_not_followed(
    tmp_path: Path, reported: Callable[..., Submission]
) -> None:
    document = with_source("kind: reported", "results: other.csv")
    with pytest.raises(BadDocument, match=r"other\.csv is not a file"):
        reported(HEADER + ROW, document)
    (tmp_path / "other.csv").symlink_to(tmp_path / "results.csv")
    with pytest.raises(BadDocument, match=r"other\.csv is not a file"):
        reported(HEADER + ROW, document)


def test_a_form_has_no_files_beside_it() -> None:
    assert "list the figures here" in problem(with_source("kind: reported", "results: results.csv"))


def test_a_folder_of_systems_is_read_and_named_after_them(tmp_path: Path) -> None:
    for name in ("my_tts", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "submission.yaml").write_text(GOOD.replace("my_tts", name), encoding="utf-8")
    (tmp_path / "README.md").write_text("not a system", encoding="utf-8")
    assert list(load_all(tmp_path)) == ["my_tts", "other"]
    (tmp_path / "other").rename(tmp_path / "renamed")
    with pytest.raises(BadInput, match="the system id is other, but the folder is renamed"):
        load_all(tmp_path)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60), st.integers(0, len(GOOD)))
def test_whatever_is_typed_into_a_document_it_is_read_or_refused(typed: str, at: int) -> None:
    with contextlib.suppress(BadInput):
        assert isinstance(parse(GOOD[:at] + typed + GOOD[at:]), Submission)


def test_every_block_and_pattern_of_the_document_has_words_for_its_errors() -> None:
    def blocks(part: type[DocumentPart]) -> set[type[DocumentPart]]:
        result = {part}
        for field in part.model_fields.values():
            stack = [field.annotation]
            while stack:
                kind = stack.pop()
                stack += get_args(kind)
                if isinstance(kind, type) and issubclass(kind, DocumentPart) and kind not in result:
                    result |= blocks(kind)
        return result

    assert blocks(Submission) == set(BLOCKS.values())

    def patterns(schema: object) -> set[str]:
        if isinstance(schema, dict):
            own_patterns = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
            return own_patterns.union(*(patterns(value) for value in schema.values()))
        return set().union(*map(patterns, schema)) if isinstance(schema, list) else set()

    worded = set(PATTERNS_IN_WORDS)
    unworded = {pattern for pattern in patterns(build_json_schema()["$defs"]) if pattern not in worded}
    # What is left is the pattern of numbers written as text and that of a results file's name.
    assert all("csv" in pattern or r"\d" in pattern for pattern in unworded)
