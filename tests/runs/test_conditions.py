"""A protocol says how the outputs of a run came about, and values of pauses that podeval set are not ranked."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.board import build as building
from podeval.metrics import catalogue
from podeval.metrics.facts import Key
from podeval.metrics.score import Score, Unscored
from podeval.runs.board_tables import BOARD, read_table
from podeval.runs.measure import (
    CONDITIONS,
    JOINED,
    list_conditions,
    list_task_conditions,
    make_protocols,
    mark_joined_timing,
)
from podeval.runs.own_system import OwnSystem, run_own_system
from podeval.runs.run import RunRequest, run_system
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.systems import registry
from podeval.systems.adapters.outputs import OwnOutputs
from podeval.systems.python_file import open_python
from podeval.systems.servers.connection import ServerConnection
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask, OwnMaker, Reference, Speech
from podeval.texts import REASONS

REAL_POD = benchmarks.get("real_pod")
TIMED = {
    "turn_taking": {"human_distance", "gap_median", "overlap_share", "backchannels_per_minute"},
    "dialogue_naturalness": {"dialogue_naturalness", "gaps", "overlaps", "pauses"},
    "pace": {"speaking_rate", "pause_share"},
}


def plan(split: str = "demo", **changes: Any) -> RunPlan:
    fields: dict[str, Any] = {
        **{"benchmark": "real_pod", "split": split, "dataset": "podeval/real_pod@1", "track": "voice", "system": "s"},
        **{"system_title": "S", "system_kind": "model", "generation": {}, "seed": 0},
    }
    return RunPlan(**{**fields, **changes})


def output(**details: Any) -> Output:
    return Output(item="x", details=details)


@pytest.mark.parametrize(
    ("generation", "details", "strategy"),
    [
        ({}, {}, "whole"),
        ({"strategy": "chunked", "chunk": "turn"}, {}, "turns"),
        ({"strategy": "chunked", "chunk": "sentence, at most 300 characters"}, {}, "turns"),
        ({"reader": {"reader": {"strategy": "chunked", "chunk": "turn"}}}, {}, "turns"),
        ({"task": "podcast"}, {"strategy": "whole"}, "whole"),
        ({"task": "podcast"}, {"strategy": "chunked", "chunk": "turns, about 30 s"}, "chunks"),
        ({"task": "text-to-speech"}, {"strategy": "chunked", "chunk": "turn"}, "turns"),
    ],
)
def test_the_strategy_is_what_was_done(generation: Any, details: Any, strategy: str) -> None:
    conditions = list_conditions(plan(generation=generation), [output(**details)])
    assert conditions == {"strategy": strategy, "voices": "own", "capture": "file"}


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_built_in_system_reports_what_it_does(name: str) -> None:
    conditions = list_conditions(plan(generation=registry.get(name).generation))
    assert conditions["strategy"] == ("whole" if name == "silence" else "turns")
    assert conditions["voices"] == "own"


def test_supplied_outputs_are_what_their_owner_states_and_else_supplied() -> None:
    supplied = plan(provenance="outputs supplied")
    assert list_conditions(supplied, [output(supplied=True)]) == CONDITIONS | {
        "strategy": "supplied",
        "voices": "supplied",
    }
    owner = output(supplied=True, strategy="chunks", voices="given")
    assert list_conditions(supplied, [owner]) == CONDITIONS | {"strategy": "chunks", "voices": "given"}


def test_voices_are_given_only_if_a_speaker_had_one() -> None:
    given = output(voices={"Ann": "reference", "Ben": "own 1"})
    assert list_conditions(plan(), [output(voices={"Ann": "own"}), given])["voices"] == "given"
    assert list_conditions(plan(), [output(voices={"Ann": "alloy"})])["voices"] == "own"
    assert list_conditions(plan("topics"))["voices"] == "own", "the split offers them; nobody took them"


def test_a_run_of_several_ways_has_the_one_that_podeval_took_part_in() -> None:
    several = [output(strategy="whole"), output(strategy="chunked", chunk="turns, about 9 s")]
    assert list_conditions(plan(), several)["strategy"] == "chunks"


# What a protocol states, and what its id is made of.


def protocols(split: str, **conditions: str) -> Any:
    one = plan(split, dataset=f"podeval/real_pod@{REAL_POD.split(split).content}")
    return make_protocols(REAL_POD, one, "embedded", CONDITIONS | conditions)


def test_every_protocol_states_it_and_only_those_of_timing_are_other_ones() -> None:
    whole, turns = protocols("topics"), protocols("topics", strategy="turns")
    assert {one.to_json()["generation"]["strategy"] for one in turns.values()} == {"turns"}
    assert {one.to_json()["generation"]["strategy"] for one in whole.values()} == {"whole"}
    assert {name for name in whole if whole[name].id != turns[name].id} == TIMED.keys() & whole.keys()
    assert {"turn_taking", "pace"} <= whole.keys()


def test_ids_of_other_metrics_are_those_of_the_tasks_conditions_as_before() -> None:
    """Values of this version and of earlier ones share a column."""
    for split in ("demo", "topics"):
        task = list_task_conditions(REAL_POD.split(split))
        one = protocols(split, strategy="turns")["wer"]
        former = replace(one, generation={"track": "voice", **task}, task=None)
        assert one.id == former.id
    assert list_task_conditions(REAL_POD.split("topics"))["voices"] == "given"


def test_the_keys_of_timing_are_declared() -> None:
    flagged = {
        name: keys for name in catalogue.NAMES if (keys := {key.name for key in catalogue.get(name).keys if key.timing})
    }
    assert flagged == TIMED


def test_values_of_pauses_that_podeval_set_are_shown_and_not_ranked() -> None:
    score = Score({key.name: 0.5 for key in catalogue.get("pace").keys}, notes={"unranked": {"rate_cv": "repeated"}})
    results = {"pace": score, "turn_taking": Unscored("no", "system"), "wer": Score({"wer": 0.1})}
    joined = output(strategy="chunked", chunk="turn")
    marked = mark_joined_timing(plan(), joined, results)
    assert marked["pace"].unranked == {"rate_cv": "repeated", "speaking_rate": JOINED, "pause_share": JOINED}
    assert marked["pace"].values == score.values
    assert {name: marked[name] for name in ("turn_taking", "wer")} == {n: results[n] for n in ("turn_taking", "wer")}
    assert mark_joined_timing(plan(), output(strategy="whole"), results) == results
    supplied = plan(provenance="outputs supplied")
    assert mark_joined_timing(supplied, output(strategy="turns"), results) == results, "its owner set them"
    assert REASONS["not-ranked-joined"] == JOINED


# Runs, from what is made to what the board says.


class Speaker(OwnMaker[Speech]):
    """Makes a second of tone in a way that a test chooses for each item."""

    generation: ClassVar[dict[str, Any]] = {"system": "own"}

    def __init__(self, ways: Mapping[str, Mapping[str, Any]]) -> None:
        self.ways = ways

    def make_one(self, ask: Ask, seed: int) -> Speech:
        tone = 0.1 * np.sin(np.arange(16_000) / 9)
        return Speech(tone.astype(np.float32)[:, None], 16_000, (), 1.0, details=self.ways[ask.id])


@pytest.fixture
def timed(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tiny benchmark, whose metric `trouble` depends on timing."""
    former = catalogue.get("trouble")
    changed = replace(former, keys=(Key("trouble", "higher", timing=True),))
    monkeypatch.setitem(catalogue.REGISTERED, "trouble", changed)
    return tiny


Run = Callable[..., Any]


@pytest.fixture
def run(timed: Any, tmp_path: Path) -> Run:
    def start(maker: Any, name: str, **options: Any) -> Any:
        request = RunRequest(timed.BENCHMARK, "demo", "voice", tmp_path / "runs")
        summary = run_own_system(OwnSystem(maker, name, name.title(), **options), request)
        folder = RunFolder(tmp_path / "runs", "tiny", "demo", name)
        ids = {row.metric: row.protocol for row in summary.metrics if not row.slice}
        contents = folder.protocols("embedded")
        assert {id: contents[id] for id in ids.values()} == summary.protocols
        strategies = {metric: contents[id]["generation"]["strategy"] for metric, id in ids.items()}
        unranked = [
            item
            for item in timed.ITEMS
            if isinstance(one := folder.results("embedded")[item, ids["trouble"]], Score) and one.unranked
        ]
        return ids, strategies, unranked

    return start


WHOLE, CHUNKED = {"strategy": "whole"}, {"strategy": "chunked", "chunk": "turns, about 30 s"}


def test_a_run_whose_outputs_were_joined_says_so_and_its_timing_is_not_ranked(run: Run, timed: Any) -> None:
    whole, strategies, unranked = run(Speaker(dict.fromkeys(timed.ITEMS, WHOLE)), "whole")
    assert (set(strategies.values()), unranked) == ({"whole"}, [])
    joined, strategies, unranked = run(Speaker(dict.fromkeys(timed.ITEMS, CHUNKED)), "joined")
    assert (set(strategies.values()), unranked) == ({"chunks"}, list(timed.ITEMS))
    assert whole["loudness"] == joined["loudness"]
    assert whole["trouble"] != joined["trouble"]


def test_a_run_that_was_joined_in_part_has_one_protocol(run: Run, timed: Any) -> None:
    ways = {"one": WHOLE, "two": CHUNKED, "three": WHOLE}
    ids, strategies, unranked = run(Speaker(ways), "partly")
    assert (set(strategies.values()), unranked) == ({"chunks"}, ["two"])
    again = run(Speaker(ways), "partly")
    assert again == (ids, strategies, unranked)


def test_the_board_shows_joined_timing_without_a_rank_and_says_why(
    run: Run, timed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        run(Speaker(dict.fromkeys(timed.ITEMS, CHUNKED)), name)
    monkeypatch.setattr(building, "locate_hub_source", lambda name: Path(os.devnull))
    building.build(tmp_path / "runs")
    rows = read_table(tmp_path / "runs" / BOARD).query("benchmark == 'tiny' and slice == ''")
    timing, loudness = (rows[rows["metric"] == metric] for metric in ("trouble", "loudness"))
    assert list(timing["value"].round(3)) == [pytest.approx(0.064, abs=0.002)] * 2
    assert not timing["rankable"].any()
    assert all(f"not ranked: {JOINED} (3 of 3)" in json.loads(reasons) for reasons in timing["reasons"])
    assert loudness[loudness["key"] == "integrated"]["rankable"].all()


def test_a_folder_of_outputs_has_what_its_manifest_states(run: Run, timed: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    lines = []
    for item in timed.ITEMS:
        soundfile.write(tmp_path / "mine" / f"{item}.wav", 0.1 * np.sin(np.arange(16_000) / 9), 16_000)
        lines.append(json.dumps({"item": item, "audio": f"{item}.wav", "strategy": "whole", "voices": "own"}))
    _, strategies, _ = run(OwnOutputs(tmp_path / "mine"), "silent", supplied=True)
    assert set(strategies.values()) == {"supplied"}
    (tmp_path / "mine" / "manifest.jsonl").write_text("\n".join(lines))
    _, strategies, _ = run(OwnOutputs(tmp_path / "mine"), "stated", supplied=True)
    assert set(strategies.values()) == {"whole"}


def test_a_function_is_given_whole_scripts_and_the_voices_that_there_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef speak(turns, voices, language): return 0.1 * np.sin(np.arange(16000) / 9), 16000\n"
    )
    maker = open_python(f"{tmp_path / 'mine.py'}:speak")
    _, strategies, _ = run(maker, "mine")
    assert set(strategies.values()) == {"whole"}
    script = ({"speaker": "Ann", "text": "Hi."}, {"speaker": "Ben", "text": "Ho."})
    ask = Ask.model_validate({"id": "x", "script": script, "voices": {"Ann": Reference(audio="ann.wav")}})
    for one, voices in ((ask, "given"), (ask.model_copy(update={"voices": {}}), "own")):
        (speech,) = maker.make([one], 0)
        assert list_conditions(plan(), [output(**speech.details)])["voices"] == voices


def test_the_places_at_which_a_server_was_sent_less_than_the_whole_are_counted_and_change_no_id() -> None:
    of_server = plan(generation={"strategy": "whole", "extra": {"top_p": 0.95}})
    cut = list_conditions(of_server, [output(strategy="whole", cuts=0), output(strategy="chunks", cuts=3)])
    assert (cut["strategy"], cut["cuts"]) == ("chunks", 3)
    more = list_conditions(of_server, [output(strategy="chunks", cuts=5)])
    for metric in ("wer", "loudness"):
        ids = {
            make_protocols(REAL_POD, one, "embedded", conditions)[metric].id
            for one in (of_server, plan(generation={"strategy": "whole"}))
            for conditions in (cut, more)
        }
        assert len(ids) == 1
    content = make_protocols(REAL_POD, of_server, "embedded", cut)["loudness"].to_json()["generation"]
    assert (content["cuts"], content["fields"]) == (3, {"top_p": 0.95})
    timed = {
        make_protocols(REAL_POD, plan("topics", generation=of_server.generation), "embedded", one)["turn_taking"].id
        for one in (cut, more)
    }
    assert len(timed) == 1, "nor that of a metric whose id has the strategy"


def test_a_server_speaks_turns_in_voices_of_its_own(tmp_path: Path) -> None:
    endpoint = SpeechEndpoint(ServerConnection("http://127.0.0.1:9/v1"), "tts", ("a", "b"))
    assert list_conditions(plan("topics", generation=endpoint.generation)) == CONDITIONS | {"strategy": "turns"}


def test_a_built_in_run_states_turns(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = property(lambda singer: {"strategy": "chunked", "chunk": "turn"})
    monkeypatch.setattr(tiny.Singer, "generation", reads)
    run_system(tiny.Singer(), "Singer", RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path))
    contents = RunFolder(tmp_path, "tiny", "demo", "singer").protocols("embedded").values()
    assert {content["generation"]["strategy"] for content in contents} == {"turns"}
