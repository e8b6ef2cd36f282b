"""A missing cell is one unscored item of no fault of the system, in every column and by every way into Python."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile

import podeval
from podeval import benchmarks
from podeval.errors import BadInput
from podeval.recording.cache import open_default_cache

datasets = pytest.importorskip("datasets")

VOICE = Path(benchmarks.__file__).parent / "data" / "voices" / "libritts_r_8176.flac"
WORDS = "These are words that nobody says in it."
EMPTY = [None, float("nan"), pd.NA, pd.NaT, "", "null", np.float32("nan")]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests of this file, which give the same recordings in many forms."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PODEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        open_default_cache.cache_clear()
        yield
    open_default_cache.cache_clear()


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3 s of a person reading."""
    samples, rate = soundfile.read(VOICE, frames=3 * 24_000)
    path = tmp_path_factory.mktemp("spoken") / "spoken.wav"
    soundfile.write(path, samples, rate)
    return path


def score_wer(sources: Any, text: Any) -> Any:
    return podeval.score(sources, text=text, metrics="wer")


def measure_wer(sources: Any, text: Any) -> Any:
    return podeval.measure("wer", sources, text=text)


COLUMNS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    pd.Series,
    lambda values: np.array(values, dtype=object),
    lambda values: datasets.Dataset.from_dict({"text": values})["text"],
    lambda values: pd.DataFrame({"text": values})["text"],
]


@pytest.mark.every(4)
@pytest.mark.parametrize("scored_by", [score_wer, measure_wer])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_recording_without_its_words_is_unscored_and_the_others_keep_their_mean(
    scored_by: Any, column: Any, spoken: Path
) -> None:
    table = scored_by([spoken, spoken, spoken], column([None, WORDS, WORDS]))
    assert table.errors == {}
    assert table[0].unscored == {"wer": {"unscored": "has no reference", "cause": "ours"}}
    assert table["wer.wer"].mean == table[1]["wer.wer"] == table[2]["wer.wer"]
    assert table["wer.wer"].n == 2


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_every_form_of_an_empty_cell_is_missing(empty: Any, spoken: Path) -> None:
    table = podeval.score([spoken, empty], text=["" if empty is None else empty, WORDS], metrics="wer,content_errors")
    for scores, reason in zip(table, ("has no reference", "has no recording"), strict=True):
        assert set(scores.unscored) == {"wer", "content_errors"}
        assert {one["unscored"] for one in scores.unscored.values()} == {reason}
        assert {one["cause"] for one in scores.unscored.values()} == {"ours"}
    assert table.intervals == {}
    alone = podeval.measure("mattr", empty)
    assert alone.unscored == {"mattr": {"unscored": "has no text", "cause": "ours"}}


@pytest.mark.parametrize("column", [list, pd.Series, lambda values: np.array(values, dtype=object)])
def test_a_missing_recording_is_one_unscored_item(column: Any, voice: Path) -> None:
    table = podeval.score(column([str(voice), None, float("nan"), ""]), metrics="loudness")
    assert [list(scores.unscored) for scores in table] == [[], *[["loudness"]] * 3]
    assert table["loudness.integrated"].n == 1
    assert "Not scored in 3 of 4: loudness: has no recording" in str(table)
    assert table.report(voice.parent / "report.html").stat().st_size > 0
    assert len(table.to_pandas()["file"].unique()) == 1


def test_rows_without_audio_are_missing_and_a_column_without_any_is_no_array_of_samples(voice: Path) -> None:
    rows = [{"audio": {"path": str(voice), "bytes": None}}, {"audio": None}, {"audio": {"path": None, "bytes": None}}]
    table = podeval.score([*rows, {"array": None, "sampling_rate": None}], metrics="loudness")
    assert [bool(scores.unscored) for scores in table] == [False, True, True, True]
    for nothing in ([None], [float("nan")] * 2, pd.Series([np.nan, np.nan])):
        assert len(podeval.score(nothing, metrics="loudness")) == len(nothing)
    assert podeval.score(None, metrics="loudness").unscored["loudness"]["cause"] == "ours"


def test_metrics_of_words_alone_are_unscored_where_only_they_need_words(voice: Path, silence: Path) -> None:
    scores = podeval.score(voice, text=float("nan"), metrics="loudness,timbre_consistency,speaker_attribution,mattr")
    assert "loudness.integrated" in scores.values
    assert {name: one["unscored"] for name, one in scores.unscored.items()} == {
        "timbre_consistency": "has no script",
        "speaker_attribution": "has no reference",
        "mattr": "has no text",
    }
    # Nobody gave words, so those metrics are not tried; of silence, none needs its model.
    assert "wer" in podeval.score(silence, metrics=None).left_out


@pytest.mark.parametrize("scalar", [5, True, 1.5, b"words", np.int64(5), pd.Timestamp(0)])
def test_a_scalar_is_no_text(scalar: Any, voice: Path) -> None:
    for refused in (
        lambda: podeval.score(voice, text=scalar, metrics="wer"),
        lambda: podeval.score([voice, voice], text=[WORDS, scalar], metrics="wer"),
        lambda: podeval.measure("mattr", scalar),
    ):
        with pytest.raises(BadInput, match="a text must be a string, a path, or a script as data"):
            refused()


def test_one_script_for_all_is_no_list_of_texts(voice: Path) -> None:
    for keys in (("speaker", "text"), ("role", "content")):
        turns = [dict(zip(keys, turn, strict=True)) for turn in (("Ann", "Hello."), ("Ben", "Good day."))]
        table = podeval.score([voice, voice], text=turns, metrics="loudness")
        assert [scores.script.speakers for scores in table] == [("Ann", "Ben")] * 2
    with pytest.raises(BadInput, match="2 recordings and 3 texts"):
        podeval.measure("wer", [voice, voice], text=[WORDS] * 3)


@pytest.mark.parametrize(
    ("metric", "given", "sentence"),
    [
        ("loudness", {"text": WORDS}, "loudness does not use text"),
        ("loudness", {"references": "voice.wav"}, "loudness does not use references"),
        ("loudness", {"speakers": 2}, "loudness does not use speakers"),
        ("mattr", {"text": WORDS}, "mattr does not use text"),
        ("wer", {"references": "voice.wav"}, "wer does not use references"),
        ("loudness", {"scripts": [None]}, "loudness has no parameter 'scripts'"),
        ("loudness", {"readings": []}, "loudness has no parameter 'readings'"),
    ],
)
def test_a_keyword_that_a_metric_has_no_use_for_is_refused_by_name(
    metric: str, given: dict[str, Any], sentence: str, voice: Path
) -> None:
    with pytest.raises(BadInput, match=sentence):
        podeval.measure(metric, voice if metric != "mattr" else WORDS, **given)


def forms(samples: Any, rate: int) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(samples)
    return {
        **{kind.__name__: (samples, kind(rate)) for kind in (np.int64, np.int32, np.float32, np.uint16)},
        "0-d tensor": (samples, torch.tensor(rate)),
        "0-d array": (samples, np.array(rate)),
        "list": [samples, rate],
        "bfloat16": (tensor.to(torch.bfloat16), rate),
        "gradients": {"array": tensor.clone().requires_grad_(), "sampling_rate": rate},
        "pipeline": {"audio": samples, "sampling_rate": rate},
        "pipeline, (1, n)": {"audio": samples[None], "sampling_rate": rate},
        "pipeline, tensor": {"audio": tensor[None], "sampling_rate": torch.tensor(rate)},
        "memoryview": memoryview(samples_as_wav(samples, rate)),
        "the rate first": (rate, samples),
        "the rate as an array of one": (samples, np.array([rate])),
        "pyannote": {"waveform": tensor[None], "sample_rate": rate},
        "a file in memory that was just written": just_written(samples, rate),
        "a sound file": soundfile.SoundFile(io.BytesIO(samples_as_wav(samples, rate))),
    }


def just_written(samples: Any, rate: int) -> Any:
    file = io.BytesIO(samples_as_wav(samples, rate))
    file.seek(0, io.SEEK_END)
    return file


def samples_as_wav(samples: Any, rate: int) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, samples, rate, format="WAV", subtype="FLOAT")
    return content.getvalue()


def test_samples_of_every_library_have_the_values_of_the_file(voice: Path, speech_like: Any) -> None:
    expected = podeval.score(voice, metrics="loudness")["loudness.integrated"]
    data, in_row = voice.read_bytes(), {"audio": {"path": str(voice)}}
    given = {**forms(speech_like, 16_000), "name": str(voice), "bytes": data, "path in a row": in_row}
    for name, form in given.items():
        assert podeval.score(form, metrics="loudness")["loudness.integrated"] == pytest.approx(expected, abs=0.01), name
    table = podeval.score(list(given.values()), metrics="loudness")
    assert (len(table), table.errors) == (len(given), {})


def test_an_empty_text_is_no_folder_and_a_data_frame_is_its_rows(
    voice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(voice.parent)
    (nothing,) = podeval.score("", metrics="loudness").unscored.values()
    assert (nothing["unscored"], nothing["cause"]) == ("has no recording", "ours")
    pandas = pytest.importorskip("pandas")
    rows = [{"audio": {"bytes": voice.read_bytes(), "path": None}, "id": n} for n in range(2)]
    assert len(podeval.score(pandas.DataFrame(rows), metrics="loudness").scores) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda samples: (samples, 24.0), "needs its `sampling_rate` in Hz, not 24.0; 1000 to 768000 Hz are supported"),
        (lambda samples: (samples, 10**9), "not 1000000000; 1000 to 768000 Hz are supported"),
        (lambda samples: {"wav": samples, "sampling_rate": 16_000}, "it has wav, sampling_rate"),
    ],
)
def test_rates_of_no_sound_and_keys_of_no_library_are_refused(given: Any, sentence: str, speech_like: Any) -> None:
    with pytest.raises(BadInput, match=sentence):
        podeval.score(given(speech_like), metrics="loudness")


@pytest.mark.parametrize("scale", [127, 32_767, 2**31])
def test_integers_that_were_stored_as_floats_are_no_loud_sound(scale: int, speech_like: Any) -> None:
    samples = np.float32(scale) * speech_like / np.abs(speech_like).max()
    (found,) = podeval.score((samples, 16_000), metrics="loudness").unscored.values()
    assert "like integers stored as floats; full scale is ±1" in found["unscored"]


@pytest.mark.long
def test_what_a_pipeline_of_transformers_returns_is_scored(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    (tmp_path / "vocab.json").write_text(json.dumps({sign: n for n, sign in enumerate("_abcdefghijklmnopqrstuvwxyz ")}))
    tokenizer = transformers.VitsTokenizer(
        str(tmp_path / "vocab.json"), pad_token="_", unk_token="_", phonemize=False, is_uroman=False
    )
    layers = ("num_hidden", "prior_encoder_num_wavenet", "posterior_encoder_num_wavenet", "depth_separable_num")
    ones = (*(f"{name}_layers" for name in layers), "prior_encoder_num_flows", "duration_predictor_num_flows")
    config = transformers.VitsConfig(
        **dict.fromkeys(ones, 1), vocab_size=28, hidden_size=16, num_attention_heads=2, ffn_dim=16, flow_size=16,
        spectrogram_bins=17, upsample_initial_channel=32, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1]], duration_predictor_flow_bins=4, wavenet_kernel_size=3,
    )  # fmt: skip
    torch.manual_seed(0)
    speak = transformers.pipeline("text-to-speech", model=transformers.VitsModel(config).eval(), tokenizer=tokenizer)
    one, many = speak("hello there my friend of the sea" * 8), speak(["salt of the sea" * 9, "hello there" * 9])
    expected = podeval.score((one["audio"], one["sampling_rate"]), metrics="loudness").values
    assert podeval.score(one, metrics="loudness").values == expected
    table = podeval.score([one, *many], metrics="loudness")
    assert (len(table), table.errors, table[0].values) == (3, {}, expected)
    with pytest.raises(BadInput, match="`audio` has 2 arrays; give each as a separate recording"):
        podeval.score({"audio": [one["audio"]] * 2, "sampling_rate": 16_000}, metrics="loudness")


def test_sixteen_bits_in_a_wider_type_are_no_silence(speech_like: Any) -> None:
    for kind in (np.int32, np.int64):
        with pytest.raises(BadInput, match=r"reach only \d+, so they are almost silent; .*\.astype\('int16'\)"):
            podeval.score(((speech_like * 2**15).astype(kind), 16_000), metrics="loudness")
    whole = podeval.score(((speech_like * 2.0**31).astype(np.int32), 16_000), metrics="loudness")
    assert whole["loudness.integrated"] > -40


def test_a_dataset_is_scored_whole_or_by_column_without_the_decoder_of_datasets(voice: Path) -> None:
    rows = datasets.Dataset.from_dict({"audio": [str(voice), None], "text": ["a", "b"]})
    rows = rows.cast_column("audio", datasets.Audio())
    streaming = rows.to_iterable_dataset()
    for source in (rows, rows["audio"], streaming, streaming["audio"], rows.rename_column("audio", "speech")):
        table = podeval.score(source, metrics="loudness")
        assert [bool(scores.values) for scores in table] == [True, False]
        assert table.errors == {}
        assert podeval.measure("loudness", source)[0].values == table[0].values


def test_a_dataset_of_several_splits_is_refused_by_their_names(voice: Path) -> None:
    datasets = pytest.importorskip("datasets")
    split = datasets.Dataset.from_dict({"audio": [str(voice)]})
    with pytest.raises(BadInput, match="pass one of dev, test as"):
        podeval.score(datasets.DatasetDict({"dev": split, "test": split}), metrics="loudness")


def test_a_text_that_is_too_long_for_a_name_is_no_recording() -> None:
    with pytest.raises(BadInput, match="cannot be opened"):
        podeval.score("UklGRg" * 1000, metrics="loudness")


def test_reference_voices_have_every_form_of_audio(voice: Path, speech_like: Any) -> None:
    from podeval.measuring.inputs import read_voices

    for source in (voice, [voice], (speech_like, 16_000), {"array": speech_like, "sampling_rate": np.int64(16_000)}):
        assert list(read_voices(source, {})["reference_voices"]) == [""]
    for source in ({"ANN": voice, "BEN": (speech_like, 16_000)}, [f"ANN={voice}", f"BEN={voice}"]):
        assert list(read_voices(source, {})["reference_voices"]) == ["ANN", "BEN"]
    with pytest.raises(BadInput, match="the reference voice of BEN is missing"):
        read_voices({"ANN": voice, "BEN": None}, {})
    with pytest.raises(BadInput, match="several reference voices need the names of their speakers"):
        read_voices([voice, voice], {})


def test_words_are_read_once_however_many_metrics_take_them(voice: Path) -> None:
    """Labels inside a turn are words; a second reading of the words would take them for speakers."""
    turns = [{"speaker": "Ann", "text": "Hello.\nHost 1: she said, and sat down."}, {"speaker": "Ben", "text": "Good."}]
    scores = podeval.score(voice, text=turns, metrics="mattr,distinct_n,info_dens,semantic_div,loudness")
    assert scores.unscored.keys() <= {"semantic_div"}
    assert scores.values["mattr.mattr"] == podeval.measure("mattr", turns)["mattr"]
