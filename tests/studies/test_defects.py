"""The study of planted defects: places, matching and tables; what is heard is not asked here."""

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="module")
def study() -> Any:
    sys.path.insert(0, str(STUDIES))
    try:
        yield load("defects")
    finally:
        sys.path.remove(str(STUDIES))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(heard: list[Any], *, clean: bool = False, seconds: float = 1800.0) -> dict[str, Any]:
    planted = [] if clean else [("hole", 10.0, 10.15), ("sentence_twice", 30.0, 34.0), ("click", 50.0, 50.0)]
    return {"source": "people", "half": "after", "clean": clean, "planted": planted, "heard": heard,
            "seconds": seconds, "processor": 60.0}  # fmt: skip


def test_a_finding_answers_for_one_defect_near_it(study: Any) -> None:
    heard = [
        ("hole", 10.1, 10.2, ""),
        ("hole", 10.4, 10.5, ""),
        ("repeated", 30.2, 34.0, ""),
        ("click", 55.0, 55.0, ""),
    ]
    outcomes, alarms = study.defects_report.match_findings(row(heard))
    assert [(each.kind, each.found, each.named) for each in outcomes] == [
        ("hole", True, "hole"), ("sentence_twice", True, "repeated"), ("click", False, "")
    ]  # fmt: skip
    assert alarms == [("click", 55.0, 55.0, "")], "what is within 3 s of a plant is its own"


def test_the_report_has_recall_precision_times_and_alarms_an_hour(study: Any, tmp_path: Path) -> None:
    heard = [("hole", 10.1, 10.2, ""), ("click", 70.0, 70.0, "a click")]
    study.defects_report.write([row(heard), row([("loop", 3.0, 5.0, "again")], clean=True)], tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for line in (
        "| hole | 0.95 | not planted | 1 of 1 | 0.21 to 1.00 |",
        "| hole | 0.10 s | too few | 0.10 s |",
        "| hole | 1 | 0 | 0.21 to 1.00 |",
        "| click | 0 | 1 | 0.00 to 0.79 |",
        "| people | after | undamaged | 1 in 0.50 h | 2.0 | 0.1 to 11.1 |",
    ):
        assert line in text
    assert (tmp_path / "defects-recall.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_interval_of_a_median_holds_it_in_95_of_100_samples(study: Any) -> None:
    interval, chance = study.defects_report.median_interval, np.random.default_rng(2)
    assert interval([1.0] * 5) == (0.0, float("inf")), "five values leave one in sixteen outside"
    for size in (6, 20):
        bounds = [interval(list(chance.exponential(1.0, size))) for _ in range(500)]
        assert np.mean([low <= np.log(2) <= high for low, high in bounds]) == pytest.approx(0.965, abs=0.03)


def test_places_after_the_thresholds_are_fixed_follow_from_them(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (drawn,) = study.draw_seeds("after")
    assert (drawn,) == study.draw_seeds("after")
    assert study.draw_seeds("before") == study.KNOWN_SEEDS
    assert drawn not in study.KNOWN_SEEDS
    monkeypatch.setattr(study.thresholds, "FILES", study.thresholds.FILES[1:])
    assert study.draw_seeds("after") != (drawn,)


def test_the_digest_is_of_values_and_versions_and_not_of_names(study: Any, tmp_path: Path) -> None:
    versions = {"content_errors": "1.2", "integrity": "1.1"}

    def digest(source: str, versions: dict[str, str] = versions) -> str:
        (tmp_path / "module.py").write_text(source, encoding="utf-8")
        return str(study.thresholds.digest_values([tmp_path / "module.py"], versions))

    source = """
NEAR, FAR = 1.5, 3
UNIT = "per 1000 words"
SWALLOWED: frozenset[str] = frozenset(("and", "the"))

def find(at):
    return at > 2 * NEAR
"""
    drawn = digest(source)
    for old, new in (
        ("find(", "list_all("),
        ("NEAR", "CLOSE"),
        ("per 1000", "by 1000"),
        ('"and", "the"', '"the", "and"'),
    ):
        assert digest(source.replace(old, new)) == drawn, f"{new} instead of {old} draws no other places"
    assert digest("FAR = 3\n" + source.replace("NEAR, FAR = 1.5, 3", "NEAR = 1.5")) == drawn, "nor does their order"
    for old, new in (("1.5", "1.6"), (", 3", ", 4"), ('"the"', '"was"')):
        assert digest(source.replace(old, new)) != drawn, f"{new} instead of {old} draws others"
    assert digest(source, versions | {"integrity": "1.2"}) != drawn, "so does what a new version may find"


def test_the_places_of_content_errors_1_2_are_drawn_that_were_held_out(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed is of commit ccbac2d4; since `integrity` 1.3 the thresholds are others, and so are the places."""
    module = study.thresholds
    assert study.draw_seeds("after") == (module.digest_thresholds(),) != ("a36393cca56ffb76",)
    own = {name: module.catalogue.get(name).version for name in module.LISTENING}
    now = module.digest_thresholds()
    monkeypatch.setattr(module, "catalogue", Versions(own | {"content_errors": "9.9"}))
    assert module.digest_thresholds() != now
    for digest in module.DRAWN_BEFORE:
        monkeypatch.setattr(module, "digest_thresholds", lambda digest=digest: digest)
        assert study.draw_seeds("after") == ("a36393cca56ffb76",)


class Versions:
    """Metrics that have nothing but a version."""

    def __init__(self, versions: dict[str, str]) -> None:
        self.versions = versions

    def get(self, name: str) -> Any:
        return SimpleNamespace(version=self.versions[name])


def test_what_was_heard_is_not_heard_again_unless_the_thresholds_changed(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(study, "make", lambda key: made.append(key["number"]))
    monkeypatch.setattr(study, "hear", lambda dialogue, cache: {"seconds": 1.0, "processor": 1.0})
    part = {"source": "people", "half": "before", "seed": "1", "clean": False}
    wanted = [part | {"number": number} for number in range(3)]
    study.hear_all(tmp_path, wanted[:2])
    with (tmp_path / "heard.jsonl").open("a") as torn:
        torn.write('{"source": "peo')
    study.hear_all(tmp_path, wanted)
    assert made == [0, 1, 2]
    monkeypatch.setattr(study.thresholds, "FILES", study.thresholds.FILES[1:])
    study.hear_all(tmp_path, wanted[:1])
    assert made == [0, 1, 2, 0]


@pytest.mark.long
def test_people_s_dialogues_hold_what_can_be_planted_where_it_is_said_to_be(study: Any) -> None:
    clean = study.make_dialogue("people", 0, random.Random("a"), clean=True)
    assert clean.planted == []
    dialogue = study.make_dialogue("people", 0, random.Random("a"), clean=False)
    places = {kind: (start, end) for kind, start, end in dialogue.planted}
    assert set(study.defects_report.NAMED) - set(places) == {
        "word_omitted", "turn_wrong_voice", "half_turn_wrong_voice"
    }  # fmt: skip

    def cut(start: float, end: float) -> Any:
        return dialogue.samples[round(start * dialogue.rate) : round(end * dialogue.rate)]

    start, end = places["loop"]
    assert np.array_equal(cut(start - 3, start), cut(start, end))
    start, end = places["pause"]
    assert np.abs(cut(start + 0.4, end - 0.4)).max() < 0.001
    assert not cut(*places["hole"])[10:-10].any()
    assert len(dialogue.samples) / dialogue.rate == pytest.approx(places["cut_off"][0], abs=0.01)


def test_readers_in_turns_miss_a_word_and_change_their_voice_where_it_is_said(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clips are stand-ins of one level a reader; where words lie in real ones is the recogniser's to say."""
    from studies.planted_readers import RATE

    words = ("said", "nobody", "heard", "anything", "outside")
    times = tuple((at / 2, at / 2 + 0.4) for at in range(5))

    def cut(reader: int) -> Any:
        sound = np.full(round(2.5 * RATE), 0.1 * (reader + 1), np.float32)
        return tuple((sound, words, times) for _ in range(3))

    monkeypatch.setattr("studies.planted_readers.read_clips", lambda: tuple(map(cut, range(5))))
    for seed in range(5):
        dialogue = study.make_readers_dialogue(random.Random(seed), clean=False)
        places = {kind: (start, end) for kind, start, end in dialogue.planted}
        assert set(places) == {"word_omitted", "turn_wrong_voice", "half_turn_wrong_voice"}
        start, end = places["word_omitted"]
        assert end - start == pytest.approx(2.1, abs=0.15), "a word of 0.4 s is gone from the sound"
        assert all(len(turn.text.split()) in (5, 10) for turn in dialogue.script.turns), "and stands in the script"

        def hear(at: float, dialogue: Any = dialogue) -> int:
            return round(float(dialogue.samples[round(at * dialogue.rate)]) * 10)

        start, end = places["half_turn_wrong_voice"]
        assert hear(start + 1) != hear(start - 1), "two voices in one turn"
        clean = study.make_readers_dialogue(random.Random(seed), clean=True)
        assert clean.planted == []
        assert len(clean.script.turns) == 12
