"""Text of strangers is read in time that grows as its length, and in bounded memory: nothing is quadratic."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import patterns, targets, text_readers
from tests.fuzz.targets import TARGETS

SIZES = pytest.param(150, 1_200), pytest.param(300, 2_400, marks=pytest.mark.long)
QUADRATIC = 24
"""Eight times the text takes eight times as long, a reader that is quadratic 64 times."""
MEGABYTE = 1_000_000

NOT_OF_STRANGERS = {
    "benchmark/podeval/cli/generate_docs.py _MARKED": "pages of our own",
    "benchmark/podeval/judges/judge.py fullmatch (.*)@(https?://.*)": "what the operator writes on a command line",
    "benchmark/podeval/text/comparison/normalise.py _BRACKETED": (
        "sees no bracket that is never closed: `_without_open_brackets`"
    ),
}
"""Patterns that take quadratic time on what no stranger sends."""

ON_SHORT_TEXT = ("_OF_A_PODCAST", "_OF_A_TALK", "_PART_AFTER", "_STRICT_AFTER", "_LENGTH")
"""Of `asked_length.py`: looked for in the 200 characters beside a length, or where no long number is left."""

TIMED = [name for name, target in sorted(TARGETS.items()) if target.seconds is not None]


@pytest.mark.long
@pytest.mark.parametrize(("small_size", "large_size"), SIZES)
def test_no_pattern_takes_quadratic_time(small_size: int, large_size: int) -> None:
    slow = []
    for use in patterns.uses():
        if use.place in NOT_OF_STRANGERS or use.place.endswith(
            tuple(f"asked_length.py {name}" for name in ON_SHORT_TEXT)
        ):
            continue
        tree = (use.pattern.pattern, use.pattern.flags)
        for small, large in zip(patterns.attacks(*tree, small_size), patterns.attacks(*tree, large_size), strict=True):
            # A linear pattern takes some ten microseconds; what is cubic is not tried on the larger text.
            if _takes(use, small, 0.002) or (_takes(use, large, 0.002) and _grows(use, small, large)):
                slow.append(f"{use.place}: {large[:20]!r}…")
                break
    assert not slow


def _takes(use: patterns.Use, text: str, most: float) -> bool:
    return patterns.seconds(lambda: use.run(text), 1) > most and patterns.seconds(lambda: use.run(text)) > most


def _grows(use: patterns.Use, small: str, large: str) -> bool:
    return patterns.seconds(lambda: use.run(large)) > QUADRATIC * patterns.seconds(lambda: use.run(small))


FEW_SIGNS = ("a ", "1.", "[", "一", "A: ")


@pytest.mark.every(3)
@pytest.mark.parametrize("name", TIMED)
def test_a_reader_takes_time_by_the_size_of_its_text_and_reads_a_megabyte(name: str) -> None:
    _check_time(name, {*FEW_SIGNS, *(word.decode("utf-8", "replace") for word in TARGETS[name].words[:3])})


@pytest.mark.long
@pytest.mark.parametrize("name", TIMED)
def test_a_reader_takes_that_time_whatever_is_repeated(name: str) -> None:
    _check_time(name, {*FEW_SIGNS, *patterns.SIGNS, *(word.decode("utf-8", "replace") for word in TARGETS[name].words)})


def _check_time(name: str, units: set[str]) -> None:
    target = TARGETS[name]
    assert target.seconds
    for data in target.inputs(name):
        target.read(data)  # what it imports, it imports now
    slowest, worst, most = 0.0, "a", MEGABYTE
    for unit in sorted(units):
        small, large = (_repeated(unit, size) for size in (1_000, 8_000))
        took = patterns.seconds(lambda data=large: target.read(data.encode()), 1)
        if took > 0.05 and took > QUADRATIC * patterns.seconds(lambda data=small: target.read(data.encode()), 1):
            before, took = (patterns.seconds(lambda data=data: target.read(data.encode())) for data in (small, large))
            assert took < max(0.05, QUADRATIC * before), f"{unit!r}: {before:.3f} s, eight times as much {took:.3f} s"
        held = len(large.encode())
        # The longest that is accepted: of what is counted, no more than the reader says.
        accepted = min([MEGABYTE, *(held * limit // max(1, count(large)) - 8 for count, limit in target.limits)])
        if took * accepted > slowest:
            slowest, worst, most = took * accepted, unit, accepted
    for size in {most, MEGABYTE}:
        data = _repeated(worst, size)
        assert size == MEGABYTE or all(count(data) <= limit for count, limit in target.limits)
        took = patterns.seconds(lambda data=data: target.read_in_bounds(data.encode()), 1)
        if took >= target.seconds:
            took = patterns.seconds(lambda data=data: target.read(data.encode()), 4)
        assert took < target.seconds, f"{size} bytes of {worst!r}"


def _repeated(unit: str, size: int) -> str:
    """A unit again and again, in so many bytes at most."""
    return unit * (size // len(unit.encode()))


ROOMS = ("text", "judges/parsing", "judges/prompt", "metrics/checklists", "metrics/judge_use")
ROOMS += ("systems/dialogue_reader", "systems/submission_reading")
ROOMS += ("listening/webmushra", "arena/voting", "datasets/feeds")
TEXTS = {"text", "source", "answer", "prompt", "quote", "transcript", "request", "line", "link", "content", "script"}
ELSEWHERE = {
    "read_text": "files of whoever runs podeval; who reads what they hold is a target",
    "refuse_file_name": "splits a text, and asks whether a file of that name is there",
    "require_found": "`unfound`, with a sentence",
    "refuse_longer": "takes a number",
    "parse_number": "what a pattern for a number matched",
    "cut_at_spaces": "`write_as_in_script` and `compare_entities` cut by it",
    "list_readings": "takes one figure, sign or abbreviation, of a length that its pattern limits",
    "count_word_errors": "`normalise`, and an alignment of a script with what was heard; no limit but theirs",
    "load": "reads a file for `parse`",
    "accept": "puts a script into a question; what answers it is a target",
    "count_signs": "`note` counts them",
    "find_place": "asked only of what `read_yaml` has taken",
    "read_yaml": "targets of what is written in YAML",
    "refuse_endless": "`tokenise` and `normalise` ask it",
    "refuse_endless_chinese": "`tokenise` asks it",
    "require_words": "a list of tokens",
    "count_words_or_characters": "`tokenise`, and a pass over its characters",
    "locate_speaker_turns": "`words_of`, and an alignment by rapidfuzz",
    "console": "a stream",
    "find_enclosures": "`EpisodeLink.parse`, and the network",
    "delimit": "joins three texts",
    "translate": "looks a text up in a catalogue",
    "shorten": "splits a text, and takes 120 characters of it",
}
"""Public readers of text that are no target by themselves, and why."""


def readers() -> Iterator[str]:
    """Public functions and methods of the rooms that read text, that take a text."""
    engine = Path(text_readers.__file__).parents[2] / "benchmark/podeval"
    for room in ROOMS:
        files = sorted((engine / room).rglob("*.py")) if (engine / room).is_dir() else [engine / f"{room}.py"]
        for file in files:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    texts = [a for a in node.args.args if a.arg in TEXTS and "str" in ast.unparse(a.annotation or a)]
                    if texts and ast.unparse(texts[0].annotation or texts[0]) != "Script":
                        yield node.name


def test_every_public_reader_of_text_has_a_target() -> None:
    code = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (targets, text_readers))
    called = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    called |= {node.attr for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}
    called |= {
        alias.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert len(set(readers())) > 25
    assert not {name for name in readers() if name not in called and name not in ELSEWHERE}
