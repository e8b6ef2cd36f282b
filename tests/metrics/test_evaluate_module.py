import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile
from typer.testing import CliRunner

from podeval.cli import app
from podeval.errors import BadInput
from podeval.metrics import catalogue
from tests.conftest import WITHOUT_TRANSFORMERS

evaluate = pytest.importorskip("evaluate")
datasets = pytest.importorskip("datasets")

from podeval.measuring.evaluate_module import module  # noqa: E402

RATE = 44_100
ALWAYS = ["ci95", "scored", "unscored", "items", "protocol"]
LOUDNESS_KEYS = ["integrated", "true_peak", "range", "integrated_score", "true_peak_score", "range_score"]

Samples = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(autouse=True)
def another_file_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate` waits 1 s for the file that a refused call has locked, before it takes another."""
    monkeypatch.setattr(evaluate.EvaluationModule._create_cache_file, "__defaults__", (0.01,))


@pytest.fixture
def loudness(tmp_path: Path) -> Any:
    return module("loudness")(cache_dir=str(tmp_path / "evaluate"))


@pytest.fixture
def mattr(tmp_path: Path) -> Any:
    return module("mattr")(cache_dir=str(tmp_path / "evaluate"))


@pytest.fixture(scope="module")
def beyond_full_scale() -> Samples:
    """4 s of stereo, shape (frames, 2), with peaks of about ±1.5 on the left and ±0.5 on the right."""
    time = np.arange(4 * RATE) / RATE
    left = 1.5 * np.sin(2 * np.pi * 440 * time) * np.linspace(0.2, 1, time.size)
    return np.stack([left, np.sin(2 * np.pi * 330 * time) / 2], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def wav(beyond_full_scale: Samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audio") / "loud one 🎧.wav"
    soundfile.write(path, beyond_full_scale, RATE, subtype="FLOAT")
    return path


class Decoded:
    """What torchcodec's `AudioDecoder.get_all_samples` gives: channels first."""

    def __init__(self, samples: Samples) -> None:
        self.data = samples.T
        self.sample_rate = RATE


class Decoder:
    """A decoder object as `datasets` yields it."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def get_all_samples(self) -> Decoded:
        return Decoded(self._samples)


class Accessible:
    """An object that gives array and rate by key and is no mapping."""

    def __init__(self, samples: Samples) -> None:
        self._found = {"array": samples, "sampling_rate": RATE}

    def __getitem__(self, key: str) -> object:
        return self._found[key]


def ways(samples: Samples, wav: Path) -> Iterator[tuple[str, Any]]:
    """The same recording in every form that is taken."""
    data = wav.read_bytes()
    column = datasets.Dataset.from_list([{"audio": {"bytes": data, "path": wav.name}}])
    column = column.cast_column("audio", datasets.Audio(decode=False))["audio"]
    by_path = datasets.Dataset.from_dict({"audio": [str(wav)]}).cast_column("audio", datasets.Audio(decode=False))
    yield "path", str(wav)
    yield "Path", wav
    yield "bytes", data
    yield "bytearray", bytearray(data)
    yield "bytes and path", {"bytes": data, "path": "gone.wav"}
    yield "path in a dict", {"bytes": None, "path": str(wav)}
    yield "array, frames first", {"array": samples, "sampling_rate": RATE}
    yield "array, channels first", {"array": samples.T, "sampling_rate": float(RATE)}
    yield "array of float64", {"array": samples.astype(np.float64), "sampling_rate": RATE}
    yield "decoder", Decoder(samples)
    yield "object with keys", Accessible(samples)
    yield "datasets column with bytes", column[0]
    yield "datasets column with paths", by_path[0]["audio"]


def test_audio_is_the_same_by_every_route_beyond_full_scale_too(
    loudness: Any, beyond_full_scale: Samples, wav: Path
) -> None:
    names, forms = zip(*ways(beyond_full_scale, wav), strict=True)
    result = loudness.compute(predictions=list(forms))
    assert result["scored"] == len(forms)
    first = result["items"][0]
    assert first["true_peak"] == pytest.approx(20 * np.log10(1.5), abs=0.01)
    for name, item in zip(names, result["items"], strict=True):
        for key in LOUDNESS_KEYS:
            assert item[key] == pytest.approx(first[key], abs=1e-6), (name, key)
        assert item["notes"]["channels"] == 2, name


def test_the_result_holds_the_keys_first_and_then_what_every_module_gives(loudness: Any, wav: Path) -> None:
    result = loudness.compute(predictions=[str(wav), str(wav)], variant="podeval")
    assert list(result) == LOUDNESS_KEYS + ALWAYS
    assert list(result["ci95"]) == LOUDNESS_KEYS
    assert result["ci95"]["integrated"] == pytest.approx([result["integrated"]] * 2, abs=1e-3)
    assert result["ci95"]["integrated"][0] < result["integrated"] < result["ci95"]["integrated"][1]
    assert (result["scored"], result["unscored"]) == (2, 0)
    assert {*LOUDNESS_KEYS, "notes", "drift"} == set(result["items"][0])
    assert result["protocol"]["id"].startswith("loudness@")
    assert result["protocol"]["parameters"] == {"variant": "podeval"}
    assert result["protocol"]["provenance"]["profile"] == "embedded"
    json.dumps(result, allow_nan=False)


def test_a_result_has_values_over_time_where_they_are_asked_for(loudness: Any, wav: Path) -> None:
    short, long = (loudness.compute(predictions=[str(wav)], timelines=asked) for asked in (False, True))
    assert set(long["items"][0]) - set(short["items"][0]) == {"timeline"}
    assert short["items"][0]["integrated"] == long["items"][0]["integrated"]


def test_items_may_be_added_one_by_one_and_in_batches(loudness: Any, wav: Path, beyond_full_scale: Samples) -> None:
    loudness.add(prediction=str(wav))
    loudness.add_batch(predictions=[wav.read_bytes(), {"array": beyond_full_scale, "sampling_rate": RATE}])
    added = loudness.compute()
    assert added["scored"] == 3
    assert added["true_peak"] == pytest.approx(loudness.compute(predictions=[str(wav)])["true_peak"], abs=1e-6)


def test_what_was_spooled_is_deleted_after_compute(
    loudness: Any, wav: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "tmp"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    loudness.add(prediction=wav.read_bytes())
    assert len(list(spool.rglob("*.wav"))) == 1
    assert loudness.compute()["scored"] == 1
    assert not list(spool.rglob("*.wav"))


def test_what_cannot_be_read_is_an_unscored_item_with_its_reason(loudness: Any, wav: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.wav"
    text.write_text("no audio")
    silence = {"array": np.zeros(RATE), "sampling_rate": RATE}
    nothing = {"array": np.zeros(0, np.float32), "sampling_rate": RATE}
    missing = tmp_path / "absent.wav"
    result = loudness.compute(predictions=[str(wav), str(missing), str(text), b"", silence, nothing])
    assert (result["scored"], result["unscored"]) == (1, 5)
    reasons = [item["unscored"] for item in result["items"][1:]]
    assert str(missing) in reasons[0]
    assert "silence" in reasons[3]
    assert {item["cause"] for item in result["items"][1:]} == {"system"}
    assert result["true_peak"] == result["items"][0]["true_peak"]


def test_an_unscored_item_is_the_same_data_from_python_and_from_the_command_line(loudness: Any, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silence.wav", np.zeros(16_000), 16_000)
    (item,) = loudness.compute(predictions=[str(tmp_path / "silence.wav")])["items"]
    said = CliRunner().invoke(app, ["measure", "loudness", str(tmp_path / "silence.wav"), "--json"])
    line = json.loads(said.stdout)
    assert said.exit_code == 1
    assert item == {key: line[key] for key in ("unscored", "cause")}
    assert item["cause"] == "system"


def test_a_text_without_words_is_an_unscored_item(mattr: Any) -> None:
    result = mattr.compute(predictions=["a b", [], '[{"speaker": "Ann"'])
    assert (result["scored"], result["unscored"]) == (1, 2)
    assert "no words" in result["items"][1]["unscored"]
    assert {item["cause"] for item in result["items"][1:]} == {"system"}


@pytest.mark.parametrize("predictions", ["episode.wav", b"RIFF", {"array": [0.0]}, Path("a.wav")])
def test_one_item_where_a_list_belongs_is_refused(loudness: Any, predictions: Any) -> None:
    with pytest.raises(BadInput, match=r"predictions must be a list with one entry per item.*put it in brackets"):
        loudness.compute(predictions=predictions)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variant": "loud"}, "variant must be one of standard, podeval"),
        ({"normalize": True}, "loudness has no parameter 'normalize'"),
        ({"profile": "paper"}, "no profile 'paper' that can be run"),
        ({"groups": ["x", "y"]}, "1 items and 2 groups"),
        ({"scripts": ["a"]}, "loudness does not use scripts"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(
    loudness: Any, wav: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        loudness.compute(predictions=[str(wav)], **options)
    # The module can be used again after that.
    assert loudness.compute(predictions=[str(wav)])["scored"] == 1


def test_scripts_travel_in_every_form_a_script_has(mattr: Any) -> None:
    turns = [{"speaker": "Ann", "text": "a b"}, {"speaker": "Ben", "text": "a c"}]
    result = mattr.compute(predictions=["a b a c", turns, json.dumps(turns), {"turns": turns}])
    assert [item["mattr"] for item in result["items"]] == [0.75] * 4


def test_another_n_gives_its_key_and_no_other(tmp_path: Path) -> None:
    result = module("distinct_n")(cache_dir=str(tmp_path)).compute(predictions=["a b a b"], n=3)
    assert list(result) == ["distinct_3", *ALWAYS]
    assert list(result["ci95"]) == ["distinct_3"]


def test_wer_needs_references_and_takes_no_other_number_of_them(tmp_path: Path, wav: Path) -> None:
    wer = module("wer")(cache_dir=str(tmp_path))
    with pytest.raises(BadInput, match="wer needs references"):
        wer.compute(predictions=[str(wav)])
    with pytest.raises(BadInput, match="references must be a list"):
        wer.compute(predictions=[str(wav)], references="hello")
    with pytest.raises(ValueError, match="Mismatch in the number"):
        wer.compute(predictions=[str(wav)], references=["hello", "there"])


def test_references_are_texts_or_scripts_and_count_as_given(tmp_path: Path) -> None:
    silence = {"array": np.zeros(16_000), "sampling_rate": 16_000}
    turns = [{"speaker": "Ann", "text": "hello"}]
    result = module("wer")(cache_dir=str(tmp_path)).compute(predictions=[silence] * 2, references=["hello", turns])
    assert result["unscored"] == 2
    assert result["wer"] is None
    assert result["protocol"]["inputs"] == ["recording", "reference_text"]


def test_the_name_of_a_file_is_not_scored_as_a_text(tmp_path: Path, wav: Path, mattr: Any) -> None:
    (tmp_path / "script.json").write_text('[{"speaker": "Ann", "text": "hello there"}]')
    (tmp_path / "words").write_text("hello there")
    wer = module("wer")(cache_dir=str(tmp_path))
    for name in ("script.json", "elsewhere/plan.TXT", "notes.md", str(tmp_path / "words")):
        with pytest.raises(BadInput, match=r"not a text; open the file first, or give a pathlib\.Path"):
            wer.compute(predictions=[str(wav)], references=[name])
        with pytest.raises(BadInput, match="is the name of a file"):
            mattr.compute(predictions=[name])
        with pytest.raises(BadInput, match="is the name of a file"):
            module("sptd")(cache_dir=str(tmp_path)).compute(predictions=[str(wav)], scripts=[name])
    with pytest.raises(BadInput, match="does not exist"):
        mattr.compute(predictions=[tmp_path / "absent.json"])
    said = "open script.json or"
    assert mattr.compute(predictions=[said])["mattr"] == 1


def test_a_path_is_opened_where_a_text_is_expected(tmp_path: Path, mattr: Any) -> None:
    turns = [{"speaker": "Ann", "text": "one two one two one two"}]
    (tmp_path / "script.json").write_text(json.dumps(turns))
    assert mattr.compute(predictions=[tmp_path / "script.json"]) == mattr.compute(predictions=[turns])


def test_scripts_make_another_protocol(tmp_path: Path) -> None:
    sptd = module("sptd")(cache_dir=str(tmp_path))
    silence = {"array": np.zeros(16_000), "sampling_rate": 16_000}
    turns = [{"speaker": "Ann", "text": "hello"}, {"speaker": "Ben", "text": "good evening"}]
    bare = sptd.compute(predictions=[silence])
    scripted = sptd.compute(predictions=[silence], scripts=[turns])
    assert bare["protocol"]["inputs"] == ["recording"]
    assert scripted["protocol"]["inputs"] == ["recording", "script"]
    assert bare["protocol"]["id"] != scripted["protocol"]["id"]
    with pytest.raises(BadInput, match="1 predictions and 2 scripts; give one for each, or none"):
        sptd.compute(predictions=[silence], scripts=[turns, turns])


def test_metrics_can_be_combined(tmp_path: Path, wav: Path) -> None:
    parts = [module(name)(cache_dir=str(tmp_path)) for name in ("loudness", "timbre_consistency")]
    both = evaluate.combine(parts)
    short = wav.parent / "short.wav"
    soundfile.write(short, np.full(RATE, 0.1), RATE)
    result = both.compute(predictions=[str(short)])
    assert result["integrated"] is not None
    assert result["timbre_consistency"] is None
    assert (result["loudness_scored"], result["timbre_consistency_unscored"]) == (1, 1)
    both.add(prediction=short.read_bytes())
    both.add_batch(predictions=[str(short)])
    assert both.compute()["loudness_scored"] == 2


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_module_describes_itself_from_the_declaration(name: str, tmp_path: Path) -> None:
    made = module(name)(cache_dir=str(tmp_path))
    metric = catalogue.get(name)
    assert made.name == name
    assert made.description == metric.documentation
    assert all(parameter.name in made.inputs_description for parameter in metric.parameters)
    assert list(made.features) == ["predictions", *(["references"] if metric.reference else [])]
    assert {str(feature.dtype) for feature in made.features.values()} == {"string"}


def test_a_generation_log_is_data_or_json(tmp_path: Path) -> None:
    rtf = module("rtf")(cache_dir=str(tmp_path / "evaluate"))
    log = {"wall_seconds": 5, "audio_seconds": 10, "hardware": "2 cores"}
    result = rtf.compute(predictions=[log, [log, log], json.dumps(log)], hardware="2 cores")
    assert [item["rtf"] for item in result["items"]] == [0.5, 0.5, 0.5]
    assert result["protocol"]["parameters"] == {"hardware": "2 cores"}


def test_a_reference_voice_that_cannot_be_read_is_not_the_system_s_fault(tmp_path: Path, wav: Path) -> None:
    sim = module("sim")(cache_dir=str(tmp_path / "evaluate"))
    item = sim.compute(predictions=[str(wav)], references=[str(tmp_path / "gone.wav")])["items"][0]
    assert "gone.wav' does not exist" in item["unscored"]
    assert item["cause"] == "ours"


MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", " ", "null", "nan", "None"]
"""What columns of pandas, `datasets` and CSV files have in an empty cell."""

MEASURED: dict[str, Any] = {
    "generation_log": {"wall_seconds": 1.0, "audio_seconds": 2.0},
    "dialogue": {"turns": [{"user": "Why?", "answer": "So."}]},
    "system": "aria",
}


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_an_item_without_its_measured_input_is_unscored_by_no_fault_of_the_system(name: str, tmp_path: Path) -> None:
    metric = catalogue.get(name)
    result = module(name)(cache_dir=str(tmp_path)).compute(
        predictions=MISSING, references=["a reference"] * len(MISSING) if metric.reference else None
    )
    assert (result["scored"], result["unscored"]) == (0, len(MISSING))
    assert all(result[key] is None for key in result["ci95"])
    assert {item["cause"] for item in result["items"]} == {"ours"}
    kind = metric.inputs[0].replace("_", " ")
    assert metric.asks or {item["unscored"] for item in result["items"]} == {f"has no {kind}"}


@pytest.mark.parametrize("name", [name for name in catalogue.NAMES if catalogue.get(name).reference])
def test_an_item_without_its_reference_is_one_unscored_item(name: str, tmp_path: Path, wav: Path) -> None:
    metric = catalogue.get(name)
    prediction = wav if metric.inputs[0] == "recording" else MEASURED.get(metric.inputs[0], "Some words.")
    result = module(name)(cache_dir=str(tmp_path)).compute(predictions=[prediction] * len(MISSING), references=MISSING)
    assert (result["scored"], result["unscored"]) == (0, len(MISSING))
    assert {item["cause"] for item in result["items"]} == {"ours"}
    assert metric.asks or {item["unscored"] for item in result["items"]} == {"has no reference"}


def test_missing_cells_neither_end_a_batch_nor_enter_its_mean(mattr: Any, tmp_path: Path) -> None:
    texts = pd.Series(["a b", None, "a a", np.nan, "", pd.NA])
    for add in (
        lambda: mattr.compute(predictions=texts),
        lambda: mattr.add_batch(predictions=texts) or mattr.compute(),
        lambda: [mattr.add(prediction=text) for text in texts] and mattr.compute(),
        lambda: mattr.compute(predictions=datasets.Dataset.from_pandas(pd.DataFrame({"text": texts}))["text"]),
        lambda: evaluate.combine([mattr]).compute(predictions=list(texts)),
    ):
        result = add()
        assert (result["mattr"], result["scored"], result["unscored"]) == (0.75, 2, 4)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "null.json").write_text("null\n")
    files = mattr.compute(predictions=[tmp_path / "empty.txt", tmp_path / "null.json", [None], "a b"])
    assert (files["mattr"], [item.get("cause") for item in files["items"]]) == (1.0, ["ours"] * 3 + [None])


def test_a_reference_may_be_missing_by_every_way_to_add_one(tmp_path: Path, wav: Path) -> None:
    loudness, wer = (module(name)(cache_dir=str(tmp_path)) for name in ("loudness", "wer"))
    wer.add(prediction=wav, reference=None)
    wer.add_batch(predictions=[wav], references=[float("nan")])
    assert [item["unscored"] for item in wer.compute()["items"]] == ["has no reference"] * 2
    both = evaluate.combine([loudness, wer])
    result = both.compute(predictions=[str(wav)], references=[None])
    assert (result["loudness_scored"], result["wer_unscored"]) == (1, 1)
    both.add(prediction=str(wav), reference=None)
    both.add_batch(predictions=[str(wav)], references=[None])
    result = both.compute()
    assert (result["loudness_scored"], result["wer_unscored"]) == (2, 2)


def test_a_script_is_missing_for_its_item_alone(tmp_path: Path, wav: Path) -> None:
    turns = [{"speaker": "Ann", "text": "hello"}, {"speaker": "Ben", "text": "good evening"}]
    sptd = module("sptd")(cache_dir=str(tmp_path))
    silence = {"array": np.zeros(16_000), "sampling_rate": 16_000}
    result = sptd.compute(predictions=[silence] * 4, scripts=pd.Series([turns, None, np.nan, ""]))
    assert [item["unscored"] for item in result["items"]][1:] == ["has no script"] * 3
    assert [item["cause"] for item in result["items"]] == ["system", "ours", "ours", "ours"]
    readings = [{"text": "hello", "readings": []}]
    wer = module("wer")(cache_dir=str(tmp_path))
    result = wer.compute(predictions=[silence] * 2, references=["hello"] * 2, readings=[None, readings])
    assert result["items"][0]["unscored"] == "has no readings"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("sptd", {"references": [[{"speaker": "Ann", "text": "hello"}]]}, "sptd does not use references"),
        ("loudness", {"references": [None]}, "loudness does not use references"),
        ("loudness", {"scripts": [None]}, "loudness does not use scripts"),
        ("loudness", {"readings": [None]}, "loudness does not use readings"),
        ("loudness", {"text": ["words"]}, "loudness has no parameter 'text'"),
        ("loudness", {"judge": "m@https://h/v1"}, "loudness does not use a judge"),
    ],
)
def test_a_keyword_that_a_metric_has_no_use_for_is_refused_by_name(
    name: str, given: dict[str, Any], sentence: str, tmp_path: Path, wav: Path
) -> None:
    made = module(name)(cache_dir=str(tmp_path))
    with pytest.raises(BadInput, match=sentence):
        made.compute(predictions=[wav], **given)
    if "references" in given:
        with pytest.raises(BadInput, match=sentence):
            made.add_batch(predictions=[wav], **given)
        with pytest.raises(BadInput, match=sentence):
            made.add(prediction=wav, reference="words")


def test_a_file_whose_name_is_no_text_is_scored(loudness: Any, wav: Path, tmp_path: Path) -> None:
    name = tmp_path / "caf\udce9.wav"
    name.write_bytes(wav.read_bytes())
    assert loudness.compute(predictions=[name, str(name), {"path": str(name), "bytes": None}])["scored"] == 3


DISTRIBUTED = (
    WITHOUT_TRANSFORMERS
    + """
import numpy as np
from podeval.measuring.evaluate_module import module

del sys.modules["transformers"]
cache, process, form, file = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
rate = 16_000
sound = (0.1 + 0.1 * process) * np.sin(np.arange(2 * rate) / 8).astype("float32")
item = {"array": {"array": sound, "sampling_rate": rate}, "bytes": open(file, "rb").read(), "path": file}[form]
loudness = module("loudness")(cache_dir=cache, num_process=2, process_id=process, experiment_id="e", timeout=60)
loudness.add_batch(predictions=[item, None] if process else [item])
result = loudness.compute()
if result:
    print(result["scored"], result["unscored"], [item.get("true_peak") for item in result["items"]])
"""
)


@pytest.mark.every(3)
@pytest.mark.parametrize("form", ["array", "bytes", "path"])
def test_what_every_process_added_is_scored_and_nothing_is_left_behind(form: str, wav: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PODEVAL_CACHE": str(tmp_path / "podeval")}
    (tmp_path / "tmp").mkdir()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DISTRIBUTED, str(tmp_path / "evaluate"), str(process), form, str(wav)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for process in range(2)
    ]  # fmt: skip
    (first, first_error), (second, second_error) = (process.communicate(timeout=120) for process in processes)
    assert [process.returncode for process in processes] == [0, 0], first_error + second_error
    assert second == ""
    assert first.startswith("2 1 [")
    peaks = json.loads(first[4:].replace("None", "null"))
    assert len(peaks) == 3
    if form == "array":
        assert peaks[:2] == pytest.approx([-20.0, -13.98], abs=0.05)
    left = {path.suffix for path in (*(tmp_path / "tmp").rglob("*"), *(tmp_path / "evaluate").rglob("*"))}
    assert left == {"", ".lock"}
