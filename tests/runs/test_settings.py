"""Parameters of a run: typed and refused by name, a protocol each, several in one folder."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval import benchmarks
from podeval.benchmarks.presets import PRESETS
from podeval.board.build import build
from podeval.board.report import report_runs
from podeval.board.runs_folder import Index
from podeval.board.view import BoardView, resolve_view
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.models import registry
from podeval.runs.board_tables import BOARD, read_table
from podeval.runs.composite_scores import make_composite_protocol
from podeval.runs.measure import make_protocols
from podeval.runs.run import RunRequest, run_system
from podeval.runs.run_folder import RunFolder, RunPlan, RunSummary
from podeval.runs.settings import apply_choices, apply_settings, describe_settings, list_missing_models

Counted = Callable[[str], int]
REAL_POD = benchmarks.get("real_pod")


@pytest.fixture
def run(tiny: ModuleType, tmp_path: Path) -> Callable[..., RunSummary]:
    def once(*settings: str, profile: str = "embedded", **fields: Any) -> RunSummary:
        benchmark = apply_settings(tiny.BENCHMARK, "voice", settings)
        request = RunRequest(benchmark, "demo", "voice", tmp_path / "runs", profile, **fields)
        return run_system(tiny.Singer(), "The Singer", request)

    return once


def stored(tmp_path: Path) -> RunSummary:
    (summary,) = RunFolder(tmp_path / "runs", "tiny", "demo", "singer").summaries()
    return summary


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("wer", "takes METRIC.PARAMETER=VALUE, such as wer.variant=podeval, not 'wer'"),
        ("variant=podeval", "takes METRIC.PARAMETER=VALUE"),
        ("distinct_n.n=2", "does not measure 'distinct_n' on the track voice; --set changes parameters of wer, dnsmos"),
        ("wer.foo=1", "wer has no parameter 'foo'; it has source, variant, normaliser, language"),
        ("wer.variant=mine", "variant must be one of default, podeval, lfs, not 'mine'"),
        ("timbre_consistency.window=long", "window must be a number, not 'long'"),
        ("timbre_consistency.window=nan", "window must be a finite number"),
        ("timbre_consistency.stride=0", r"stride must be 0\.1 or more"),
        ("sptd.speakers=2.5", "speakers must be a whole number"),
    ],
)
def test_what_cannot_be_set_is_refused_with_what_can(setting: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        apply_settings(REAL_POD, "voice", [setting])


def test_a_parameter_is_set_once() -> None:
    with pytest.raises(BadInput, match=r"gives wer\.variant twice"):
        apply_settings(REAL_POD, "voice", ["wer.variant=lfs", "wer.variant=podeval"])


def test_what_is_set_as_it_is_anyway_changes_nothing() -> None:
    same = apply_settings(REAL_POD, "voice", ["wer.variant=default", "timbre_consistency.window=3"])
    assert describe_settings(same, "voice", "embedded") == ""
    plan = RunPlan.model_construct(track="voice", split="demo", provenance="run by us", dataset="d", generation={})
    ids = [
        {name: one.id for name, one in make_protocols(benchmark, plan, "embedded", {}).items()}
        for benchmark in (REAL_POD, same)
    ]
    assert ids[0] == ids[1]


def test_two_settings_lie_in_one_folder_and_share_what_they_have_in_common(
    run: Callable[..., RunSummary], counted: Counted, tmp_path: Path
) -> None:
    usual, other = run(), run("loudness.variant=podeval")
    assert (counted("spoken"), counted("measured")) == (3, 3), "nothing is spoken or measured twice"
    assert set(usual.protocols) & set(other.protocols) == {one for one in usual.protocols if one.startswith("trouble")}
    both = stored(tmp_path)
    assert list(both.settings) == ["", "loudness.variant=podeval"]
    assert set(both.protocols) == {*usual.protocols, *other.protocols}
    values = {row.protocol: row.keys["integrated"] for row in both.metrics if row.metric == "loudness"}
    assert len(set(map(str, values.values()))) == 2
    # The usual setting is chosen, whichever was measured last, and either resumes without work.
    assert both.choose_protocols()["loudness"] in usual.protocols
    run()
    assert stored(tmp_path).choose_protocols()["loudness"] in usual.protocols
    run("loudness.variant=podeval")
    assert (counted("spoken"), counted("measured")) == (3, 3)
    lines = (tmp_path / "runs/tiny/demo/singer/embedded/results.jsonl").read_text().splitlines()
    assert len(lines) == 9


def test_the_board_shows_the_usual_protocol_and_the_other_by_its_id(
    run: Callable[..., RunSummary], tmp_path: Path
) -> None:
    run("loudness.variant=podeval")
    usual = run()
    build(tmp_path / "runs")
    index = Index.of(read_table(tmp_path / "runs" / BOARD), runs=tmp_path / "runs")
    shown = resolve_view(BoardView(board="tiny/demo"), index)
    assert shown.protocols["loudness"] in usual.protocols
    labels = dict(shown.choices.protocols)
    (label,) = [one for one in labels if "variant=podeval" in one]
    assert "preset podeval" in label
    chosen = resolve_view(BoardView(board="tiny/demo", protocols=(labels[label],)), index)
    assert chosen.protocols["loudness"] == labels[label] not in usual.protocols
    assert resolve_view(BoardView(board="tiny/demo", protocols=("podeval",)), index).protocols == chosen.protocols
    folder = tmp_path / "runs/tiny/demo/singer"
    for wishes, protocol in (((), shown.protocols["loudness"]), (("podeval",), labels[label])):
        (report,) = report_runs([folder], wishes=wishes)
        assert report.chapters[0].contents["loudness"]["id"] == protocol


def test_what_is_spoken_again_leaves_no_aggregates_of_other_settings(
    run: Callable[..., RunSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TINY_FAIL", "two")
        run()
        run("loudness.variant=podeval")
    run(retry=True)
    assert list(stored(tmp_path).settings) == [""]


def test_models_by_name_are_a_setting_of_their_profile(run: Callable[..., RunSummary], tmp_path: Path) -> None:
    run()
    run(profile="embedded,transcriber=openai/whisper-base-int8")
    assert list(stored(tmp_path).settings) == ["", "transcriber=openai/whisper-base-int8"]
    assert not list((tmp_path / "runs/tiny/demo/singer").glob("embedded,*"))


def test_a_summary_of_before_there_were_settings_is_of_the_benchmark_as_it_is(
    run: Callable[..., RunSummary], tmp_path: Path
) -> None:
    usual = run()
    path = tmp_path / "runs/tiny/demo/singer/embedded/summary.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in document.items() if name != "settings"}))
    run("loudness.variant=podeval")
    assert set(stored(tmp_path).settings[""]) == set(usual.protocols)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_preset_sets_parameters_and_models_that_there_are(preset: Any) -> None:
    for metric, parameters in preset.parameters.items():
        assert catalogue.get(metric).read_parameters(parameters).items() >= parameters.items()
    for metric in preset.deviations:
        assert metric in (
            *catalogue.NAMES,
            *(c.name for n in benchmarks.list_benchmarks() for c in benchmarks.get(n).composites),
        )
    if preset.profile:
        registry.require_profile(preset.profile)
    if preset.benchmark:
        record = benchmarks.get(preset.benchmark)
        for track, splits in preset.material.items():
            assert all(track in record.split(split).tracks for split in splits)


def test_a_preset_sets_what_its_paper_fixes_and_its_models() -> None:
    benchmark, profile = apply_choices(REAL_POD, "voice", "", ["wer.variant=lfs"], "podeval")
    parameters = {use.name: use.parameters for use in benchmark.metrics("voice")}
    assert parameters["sptd"] == {"embeddings": "segments"}
    assert parameters["wer"] == {"variant": "lfs"}, "what is set by hand counts"
    assert registry.get_card("transcriber", profile).id == "openai/whisper-base"
    assert registry.get_card("speaker_encoder", profile).id == "pyannote/embedding"
    assert registry.get_card("diarizer", profile).id == "pyannote/speaker-diarization-3.0"
    assert apply_choices(REAL_POD, "voice", "", (), "podeval", "embedded")[1] == "embedded"


def test_the_open_tts_leaderboard_s_recogniser_and_encoder_are_a_preset_in_either_spelling() -> None:
    for name in ("open-tts", "open_tts"):
        benchmark, profile = apply_choices(benchmarks.get("real_pod"), "voice", "", (), name)
        assert "transcriber=Qwen/Qwen3-ASR-1.7B-hf" in profile
        chosen = {use.name: use.parameters for use in benchmark.metrics("voice")}
        assert (chosen["wer"]["source"], chosen["sim"]["embeddings"]) == ("mix", "segments")


def test_a_preset_adds_what_no_benchmark_measures_and_says_where_it_has_nothing_to_do() -> None:
    benchmark, _ = apply_choices(REAL_POD, "voice", "pam", (), "pam")
    assert [(use.name, use.parameters) for use in benchmark.metrics("voice")] == [("pam", {"variant": "repro"})]
    with pytest.raises(BadInput, match="the preset pam does not affect any metric of PodBench on the track write"):
        apply_choices(benchmarks.get("podbench"), "write", "", (), "pam")


def test_a_figure_made_of_others_has_a_protocol_for_each_setting() -> None:
    podbench = benchmarks.get("podbench")
    (composite,) = podbench.composites
    plan = RunPlan.model_construct(track="write", split="sample", provenance="run by us", dataset="d", generation={})
    ids = set()
    for preset in ("", "podbench"):
        benchmark, profile = apply_choices(podbench, "write", "", (), preset)
        parts = make_protocols(benchmark, plan, profile, {})
        assert parts["podbench_final"].id == make_composite_protocol(composite, parts).id
        ids.add(parts["podbench_final"].id)
    assert len(ids) == 2


def test_missing_models_are_listed_with_the_metrics_that_need_them() -> None:
    benchmark, profile = apply_choices(REAL_POD, "voice", "wer,loudness,sptd", (), "podeval")
    sentences = list_missing_models(benchmark, "voice", "demo", profile)
    assert any(one.startswith("wer, sptd: ") and "Whisper base" in one for one in sentences)
    assert any("speaker-diarization-3.0" in one or "pyannote" in one for one in sentences)
    assert not any("loudness" in one for one in sentences)
