"""Designs are whole or refused; assignment is balanced; answers to a page are what the page asks."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval.errors import BadInput
from podeval.listening.designs import Design, read_design
from podeval.listening.listener_pages import (
    build_williams_row,
    choose_items,
    clean_words,
    count_marks,
    find_attention_failures,
    make_pages,
    validate_answer,
)

CLIP = {"audio": "x.wav", "seconds": 18}


def mushra(items: int = 4, systems: int = 3, **changes: Any) -> dict[str, Any]:
    names = [f"s{n}" for n in range(systems)]
    return {
        "kind": "mushra",
        "id": "naturalness",
        "title": "Naturalness",
        "systems": names,
        "items": [
            {"id": f"c{n}", "reference": CLIP, "high": CLIP, "low": CLIP, "stimuli": dict.fromkeys(names, CLIP)}
            for n in range(items)
        ],
        **changes,
    }


def single(kind: str, items: int = 6, systems: int = 3, **changes: Any) -> dict[str, Any]:
    names = [f"s{n}" for n in range(systems)]
    clip = {"audio": "x.wav", "seconds": 60, "speakers": 2, "music": False}
    extra: dict[str, Any] = {"scales": ["timbre"]} if kind == "mos" else {}
    item = {"criteria": ["It answers.", "It is clear."]} if kind == "rubric" else {}
    if kind == "text_preference":
        clip = {"text": "some words to read"}
    stimuli = [{"id": f"i{n}", "stimuli": dict.fromkeys(names, clip), **item} for n in range(items)]
    return {"kind": kind, "id": kind, "title": kind, "systems": names, "items": stimuli, **extra, **changes}


def test_every_row_of_the_square_is_an_order_and_each_thing_follows_each_other_equally_often() -> None:
    for size in (2, 3, 4, 5, 6, 7):
        rows = [build_williams_row(size, row) for row in range(2 * size if size % 2 else size)]
        assert all(sorted(row) == list(range(size)) for row in rows)
        follows = Counter((a, b) for row in rows for a, b in itertools.pairwise(row))
        assert len(follows) == size * (size - 1)
        assert len(set(follows.values())) == 1
        for place in range(size):
            assert len(set(Counter(row[place] for row in rows).values())) == 1


@pytest.mark.parametrize(("items", "each"), [(17, 17), (17, 5), (6, 4), (3, 2), (4, 1)])
def test_items_are_heard_equally_often_whatever_a_listener_gets(items: int, each: int) -> None:
    for listeners in (1, items, 3 * items + 1):
        heard = Counter(item for place in range(listeners) for item, _ in choose_items(place, items, each))
        assert max(heard.values()) - min(heard.get(i, 0) for i in range(items)) <= 1
        assert all(len({i for i, _ in choose_items(p, items, each)}) == each for p in range(listeners))


@pytest.mark.parametrize("kind", ["mos", "rubric", "preference", "text_preference", "abx"])
@pytest.mark.parametrize("each", [2, 3, 6])
def test_every_item_is_heard_in_every_system_equally_often(kind: str, each: int) -> None:
    design = read_design(single(kind, items_each=each, minutes=120))
    met: Counter[tuple[str, frozenset[str]]] = Counter()
    for place in range(3 * 6 // each * 2):
        pages = make_pages(design, place, seed=1)
        assert len(pages) == each
        met.update((page.item, frozenset(page.stimuli)) for page in pages)
    assert len(met) == 6 * 3
    assert set(met.values()) == {2}


@pytest.mark.parametrize("kind", ["mos", "preference"])
def test_each_all_has_every_listener_rate_every_recording_or_pair_in_an_order_of_their_own(kind: str) -> None:
    design = read_design(single(kind, each="all", minutes=120))
    orders = [make_pages(design, place, place) for place in range(4)]
    for order in orders:
        assert len({page.id for page in order}) == len(order) == 18
        assert set(Counter((page.item, frozenset(page.stimuli)) for page in order).values()) == {1}
    numbered = {page.stimuli for order in orders for page in order if page.id == "i0/1"}
    assert len(numbered) > 1, "the number of a page tells no system"
    assert count_marks(design) == (18, dict.fromkeys(design.systems, 20 * 6 * (1 if kind == "mos" else 2)))
    assert design.estimate(6) == pytest.approx(3 * read_design(single(kind, minutes=120)).estimate(6))
    with pytest.raises(BadInput, match="each: all is possible for mos"):
        read_design(mushra(each="all"))


def test_a_questionnaire_has_all_systems_of_an_item_in_balanced_order() -> None:
    design = read_design(single("questionnaire", systems=4, items_each=1, minutes=60))
    first = [tuple(page.stimuli[0] for page in make_pages(design, place, 0)) for place in range(0, 24, 6)]
    assert all(sorted(order) == list(design.systems) for order in first)
    assert len({order[0] for order in first}) == 4


def test_sides_and_letters_differ_between_listeners_and_are_the_same_when_asked_again() -> None:
    design = read_design(mushra())
    assert make_pages(design, 0, 7) == make_pages(design, 0, 7)
    assert {page.stimuli for page in make_pages(design, 0, 7)} != {page.stimuli for page in make_pages(design, 0, 8)}
    shown = make_pages(design, 0, 7)[0].stimuli
    assert sorted(shown) == ["HQ", "LQ", "s0", "s1", "s2"]


def test_a_test_that_takes_too_long_is_refused_with_what_would_fit() -> None:
    """17 pages of a reference, two anchors and four systems of 18 s: (5 + 7 * 18 + 6 * 4) * 17 s are 44 minutes."""
    with pytest.raises(BadInput, match="about 44 minutes for 17 items, but the limit is 30; 11 items would fit"):
        read_design(mushra(17, 4, items_each=17))
    assert read_design(mushra(17, 4)).items_heard == 11
    assert read_design(mushra(17, 4, items_each=17, minutes=45)).items_heard == 17


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (mushra(systems=0), "systems"),
        (mushra(kind="karaoke"), "kind"),
        (mushra() | {"systems": ["s0", "HQ"]}, "names of the anchors"),
        (mushra() | {"systems": ["s0", "s9"]}, "lacks s9"),
        (single("mos") | {"scales": ["charm"]}, "no scale 'charm'"),
        (single("mos") | {"scales": []}, "must name its scales"),
        (single("preference", systems=1), "at least two"),
        (single("text_preference") | {"kind": "preference"}, "compares audio"),
        (single("rubric") | {"kind": "mushra"}, "lacks the reference"),
        ("[", "cannot be read"),
    ],
)
def test_what_is_no_design_is_refused_with_the_place(content: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_design(content)


def test_the_example_in_the_documentation_is_a_design(tmp_path: Path) -> None:
    from podeval.listening import designs

    text = designs.__doc__.split("\n\n")[1]
    path = tmp_path / "design.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_design(path).systems == ("aria", "basso")
    path.write_text(yaml.safe_dump(mushra()), encoding="utf-8")
    assert read_design(path).digest == read_design(mushra()).digest
    assert read_design(path).digest != read_design(mushra(title="Other")).digest


def first_page(content: dict[str, Any]) -> tuple[Design, Any]:
    design = read_design(content)
    return design, make_pages(design, 0, 0)[0]


def test_a_mushra_page_wants_every_letter_between_0_and_100() -> None:
    design, page = first_page(mushra())
    full = dict.fromkeys("ABCDE", 50)
    assert {given.stimulus for given in validate_answer(design, page, full)} == {"s0", "s1", "s2", "HQ", "LQ"}
    for wrong, sentence in (
        ({"A": 50}, "still asks for B, C, D, E"),
        (full | {"F": 1}, "does not ask for F"),
        (full | {"A": 101}, "from 0 to 100"),
        (full | {"A": float("nan")}, "from 0 to 100"),
        (full | {"A": True}, "from 0 to 100"),
        (full | {"A": "50"}, "from 0 to 100"),
        ([1, 2], "one object"),
    ):
        with pytest.raises(BadInput, match=sentence):
            validate_answer(design, page, wrong)


def questionnaire_answer(**changes: Any) -> dict[str, Any]:
    from podeval.listening.questionnaire import QUESTIONNAIRE

    marked = {q.name: {"mark": 3, "reason": "so it is"} for q in QUESTIONNAIRE if q.reason}
    return {"speakers": {"mark": 2}, **marked, **changes}


def test_a_questionnaire_wants_a_reason_for_every_mark_and_notes_missed_checks() -> None:
    design, page = first_page(single("questionnaire", items_each=1, minutes=60))
    given = validate_answer(design, page, questionnaire_answer(comment="nice\x00 \n one"))
    assert len(given) == 9
    assert given[-1].words == "nice one"
    assert find_attention_failures(design, page, given) == []
    missed = validate_answer(design, page, questionnaire_answer(speakers=3, music={"mark": 5, "reason": "lovely"}))
    assert len(find_attention_failures(design, page, missed)) == 2
    with pytest.raises(BadInput, match="say in a few words why"):
        validate_answer(design, page, questionnaire_answer(quality={"mark": 4, "reason": " \n"}))
    with pytest.raises(BadInput, match="whole number from 1 to 5"):
        validate_answer(design, page, questionnaire_answer(quality={"mark": 6, "reason": "x"}))


def test_a_rubric_wants_every_criterion_and_a_rationale() -> None:
    design, page = first_page(single("rubric"))
    given = validate_answer(design, page, {"criterion_1": 1, "criterion_2": 0, "rationale": "because"})
    assert [(g.question, g.value) for g in given] == [("criterion_1", 1), ("criterion_2", 0), ("rationale", None)]
    with pytest.raises(BadInput, match="reason for your judgement"):
        validate_answer(design, page, {"criterion_1": 1, "criterion_2": 0, "rationale": "\x07"})


def test_a_preference_is_kept_with_both_sides() -> None:
    design, page = first_page(single("preference"))
    given = validate_answer(design, page, {"preference": -2})[0]
    assert (given.stimulus, given.words, given.value) == (*page.stimuli, -2)
    decided, page = first_page(single("text_preference", ties=False))
    with pytest.raises(BadInput, match="no difference cannot"):
        validate_answer(decided, page, {"preference": 0})


def test_words_are_kept_short_and_without_control_characters() -> None:
    assert clean_words("a\x1b[31m\u202eb\r\n c") == "a [31m b c"
    assert len(clean_words("x" * 100_000)) == 2000
    with pytest.raises(BadInput, match="a reason must be text"):
        clean_words(7)
