"""MMS's forced aligner through the real loading, on random weights of torchaudio's own, much smaller network.

torchaudio cannot load in this environment: what needs it runs in another process that sees its pure Python.
"""

import json
from collections.abc import Callable
from itertools import groupby, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from podeval.metrics import catalogue
from podeval.metrics.catalogue import describe_protocol
from podeval.models import mms_aligner, registry
from podeval.models.interfaces import Samples, Transcript, Word
from podeval.models.mms_aligner import align_tokens, count_frames
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.spoken_script import align_recording
from podeval.text.script import Script

PROGRAM = """
import dataclasses, hashlib, json, os, sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

packages, folder = {packages!r}, Path({folder!r})
sys.path.insert(0, packages)
import numpy as np, torch
from torchaudio.functional import merge_tokens
from torchaudio.pipelines import MMS_FA
from torchaudio.pipelines._wav2vec2 import utils

# The published network, with smaller sizes and random weights that tell frames apart.
MMS_FA._params.update(extractor_conv_layer_config=[(16, 10, 5), (16, 8, 8), (16, 8, 8)], encoder_embed_dim=32,
    encoder_num_layers=2, encoder_num_heads=4, encoder_ff_interm_features=48, encoder_pos_conv_kernel=8,
    encoder_pos_conv_groups=4)
torch.manual_seed(0)
network = utils._get_model("Wav2Vec2", {{**MMS_FA._params, "aux_num_out": 31}}).eval()
with torch.no_grad():
    for weight in network.parameters():
        weight.copy_(2 * weight + 0.1 * torch.randn_like(weight))
    network.aux.weight.mul_(8)
where = folder / "models" / "mms-fa"
where.mkdir(parents=True)
torch.save(network.state_dict(), where / "mms_fa.pt")
os.environ["PODEVAL_MODELS"] = str(folder / "models")

uroman = ModuleType("uroman")
uroman.__spec__ = ModuleSpec("uroman", None)
class Uroman:
    def romanize_string(self, text, lcode):
        assert lcode == "zho", lcode
        return {{"你": "ni", "好": "ha\\u0304o"}}[text]
uroman.Uroman = Uroman
sys.modules["uroman"] = uroman

from podeval.models import registry, weights
from podeval.models.mms_aligner import align_tokens
from podeval.models.interfaces import Word

pinned = weights.lock()["mms-fa"]
def lock(path):
    content = path.read_bytes()
    file = dataclasses.replace(pinned.files[0], size=len(content), sha256=hashlib.sha256(content).hexdigest())
    return {{**weights.lock(), "mms-fa": dataclasses.replace(pinned, files=(file,))}}
own = lock(where / "mms_fa.pt")
weights.lock = lambda: own
model = registry.load("aligner", "reference")

samples = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)
words = [Word("Hello,", 0.1, 0.4), Word("2", 0.5, 0.6), Word("…", 0.7, 0.8), Word("café", 1.0, 2.0)]
ours = model.align(samples, words, "en")
chinese = model.align(samples, [Word("你", 0.1, 0.4), Word("好", 0.5, 0.9)], "zh")
crowded = model.align(samples[:2_000], [Word("a" * 20, 0.01, 0.1)], "en")

# As torchaudio's documentation has it, with merge_tokens of its own on the path that our alignment stands for.
spelt = ["hello", "two", "*", "cafe"]
with torch.inference_mode():
    emission, _ = MMS_FA.get_model(dl_kwargs={{"model_dir": str(where), "file_name": "mms_fa.pt"}})(
        torch.from_numpy(samples)[None])
tokens = MMS_FA.get_tokenizer()(spelt)
flat = [token for word in tokens for token in word]
path = torch.zeros(emission.shape[1], dtype=torch.int64)
for token, (first, past) in zip(flat, align_tokens(emission[0].numpy(), flat), strict=True):
    path[first:past] = token
spans = merge_tokens(path, torch.ones(len(path)))
ratio = 40_000 / emission.shape[1] / MMS_FA.sample_rate
expected, done = [], 0
for word in tokens:
    expected.append([spans[done].start * ratio, spans[done + len(word) - 1].end * ratio])
    done += len(word)

times = lambda words: [[word.text, word.start, word.end] for word in words]
print(json.dumps({{"ours": times(ours), "expected": expected, "tokens": len(flat), "merged": len(spans),
    "chinese": times(chinese), "crowded": times(crowded)}}))
"""


@pytest.fixture(scope="module")
def answers(run_with_torch: Callable[..., str], reference_packages: Path, tmp_path_factory: Any) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("mms")
    program = PROGRAM.format(packages=str(reference_packages), folder=str(folder))
    answers: dict[str, Any] = json.loads(run_with_torch(program).splitlines()[-1])
    return answers


def test_words_have_the_times_that_torchaudio_s_pipeline_gives(answers: dict[str, Any]) -> None:
    """Reference: torchaudio 2.11.0's network, tokenizer and merging of tokens."""
    assert [text for text, *_ in answers["ours"]] == ["Hello,", "2", "…", "café"]
    np.testing.assert_allclose([times for _, *times in answers["ours"]], answers["expected"], atol=1e-9)
    assert answers["merged"] == answers["tokens"]
    starts = [start for _, start, _ in answers["ours"]]
    assert starts == sorted(starts)
    assert starts != [0.1, 0.5, 0.7, 1.0]


def test_chinese_is_spelt_by_uroman(answers: dict[str, Any]) -> None:
    (_, start, end), (_, later, last) = answers["chinese"]
    assert 0 <= start < end <= later < last <= 2.5


def test_words_that_are_too_many_for_their_time_keep_it(answers: dict[str, Any]) -> None:
    assert answers["crowded"] == [["a" * 20, 0.01, 0.1]]


def test_what_has_no_letter_is_laid_on_any_sound() -> None:
    assert mms_aligner.spell("Naïve,", "en") == "naive"
    assert mms_aligner.spell("25", "en") == "twentyfive"
    assert mms_aligner.spell("—", "en") == "*"


@pytest.mark.parametrize("name", ["content_errors", "speaker_attribution", "integrity"])
def test_the_protocol_tells_the_aligner_where_there_is_one(name: str) -> None:
    metric = catalogue.get(name)
    models = {profile: describe_protocol(metric, {}, ("recording", "script"), profile) for profile in
              ("embedded", "reference")}  # fmt: skip
    assert "mms-fa" in json.dumps(models["reference"])
    assert "aligner" not in json.dumps(models["embedded"])


class Later:
    """An aligner that finds every word a second later than the transcriber."""

    def align(self, samples: Samples, words: Any, language: str) -> tuple[Word, ...]:
        assert language == "en"
        return tuple(Word(word.text, word.start + 1, word.end + 1) for word in words)


def test_a_script_is_timed_by_the_profile_s_aligner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = Transcript("Good morning", "en", (Word("Good", 0.2, 0.5), Word("morning.", 0.5, 1.0)))
    models = {"transcriber": SimpleNamespace(transcribe=lambda samples, language: heard), "aligner": Later()}
    monkeypatch.setattr(registry, "load", lambda job, profile: models[job])
    noise = np.random.default_rng(0).normal(0, 0.1, 48_000).astype(np.float32)
    starts = {}
    for profile in ("embedded", "reference"):
        recording = Recording.from_samples(noise, 16_000, profile=profile, cache=Cache(tmp_path))
        alignment, _ = align_recording(recording, Script.parse("Good morning."))
        starts[profile] = [word.start for word in alignment.heard]
    assert starts == {"embedded": [0.2, 0.5], "reference": [1.2, 1.5]}


def try_every_path(log_probabilities: np.ndarray, tokens: list[int]) -> tuple[float, list[tuple[int, int]]]:
    """The best path of all that spell the tokens: its score and the frames of each token."""
    frames, labels = log_probabilities.shape
    best: tuple[float, list[tuple[int, int]]] = (-np.inf, [])
    for path in product(range(labels), repeat=frames):
        runs = [(label, [frame for frame, _ in run]) for label, run in groupby(enumerate(path), lambda each: each[1])]
        if [label for label, _ in runs if label] == tokens:
            score = float(sum(log_probabilities[frame, label] for frame, label in enumerate(path)))
            best = max(best, (score, [(run[0], run[-1] + 1) for label, run in runs if label]))
    return best


@pytest.mark.parametrize("frames", [1, 3, 5])
def test_the_alignment_is_the_best_of_all_paths(frames: int) -> None:
    random = np.random.default_rng(frames)
    tried = 0
    for _ in range(30):
        log_probabilities = np.log(random.dirichlet(np.full(3, 0.5), size=frames))
        tokens = random.integers(1, 3, size=random.integers(1, 4)).tolist()
        if count_frames(tokens) > frames:
            assert align_tokens(log_probabilities, tokens) == []
            continue
        tried += 1
        score, spans = try_every_path(log_probabilities, tokens)
        assert align_tokens(log_probabilities, tokens) == spans
        assert np.isfinite(score)
    assert tried > 2


def test_no_tokens_take_no_frames() -> None:
    assert align_tokens(np.zeros((2, 3)), []) == []
