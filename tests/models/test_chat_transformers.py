import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
import soundfile
import torch

from podeval.cli import app
from podeval.errors import BadInput, ModelMissing
from podeval.judges.client import JudgeClient, JudgeRequest, Unanswered
from podeval.judges.judge import find_judge
from podeval.judges.prompt import AudioClip, AudioLimits, Prompt
from podeval.models import chat_transformers
from podeval.models.chat import ChatBusy, ChatRefused, Sampling
from podeval.models.chat_transformers import TransformersChat, install, load_transformers_chat

pytestmark = pytest.mark.cpu

COMMIT = "c" * 40
ASKED = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge this."}]
SHORT = Sampling(max_tokens=24)

Load = Callable[..., TransformersChat]


@pytest.fixture
def from_hub(hub_client: Any) -> Load:
    """Publish a folder on the loopback Hub, install it as users do, load it."""
    chat_transformers.load_model.cache_clear()

    def load(repo: str, folder: Path, *, hears: bool = False) -> TransformersChat:
        hub_client.publish(repo, COMMIT, folder)
        install(repo, COMMIT, lambda line: None)
        return load_transformers_chat(repo, COMMIT, hears=hears)

    return load


@pytest.mark.parametrize("shards", [False, True])
def test_a_pinned_model_answers(from_hub: Load, tiny_models: Any, tmp_path: Path, shards: bool) -> None:
    chat = from_hub("own/tiny", tiny_models.qwen2(tmp_path / "model", shards))
    answer = chat.chat(ASKED, SHORT, None, 60)
    assert answer.form == "text"
    assert answer.finish in ("stop", "length")
    assert answer.prompt_tokens == len("<|im_start|>system\nYou judge.\nuser\nJudge this.\nassistant\n") - 12 + 5
    assert 1 <= int(answer.answer_tokens or 0) <= 24
    assert chat.chat(ASKED, SHORT, None, 60).text == answer.text


def test_the_answer_is_that_of_the_library_itself(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    """Greedy decoding by transformers' own pipeline of calls, written out here."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_models.qwen2(tmp_path / "model")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    inputs = tokenizer.apply_chat_template(ASKED, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    found = model.generate(**inputs, do_sample=False, max_new_tokens=24)[0, inputs["input_ids"].shape[1] :]
    answer = from_hub("own/tiny", folder).chat(ASKED, SHORT, None, 60)
    assert answer.text == tokenizer.decode(found, skip_special_tokens=True)


def test_a_draw_is_repeated_by_its_seed(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    chat = from_hub("own/tiny", tiny_models.qwen2(tmp_path / "model"))
    drawn = [chat.chat(ASKED, Sampling(1.0, None, seed, 24), None, 60).raw["text"] for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_what_is_too_long_is_refused(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    chat = from_hub("own/tiny", tiny_models.qwen2(tmp_path / "model"))
    with pytest.raises(ChatRefused, match="accepts at most 4096"):
        chat.chat([{"role": "user", "content": "y" * 5000}], SHORT, None, 60)


def test_a_call_ends_by_the_wall_clock(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    chat = from_hub("own/tiny", tiny_models.qwen2(tmp_path / "model"))
    chat._list_end_tokens = lambda: [-1]  # type: ignore[method-assign]
    # No machine has an answer after a millisecond; after 0.2 s a fast one may have drawn the token that ends it.
    with pytest.raises(ChatBusy, match=r"did not answer within 0\.001 s"):
        chat.chat(ASKED, Sampling(1.0, None, 0, 3000), None, 0.001)


def clip(seconds: float, level: float = 0.1) -> AudioClip:
    noise = np.random.default_rng(0).normal(0, level, int(16_000 * seconds)).astype(np.float32)
    return AudioClip(noise, 16_000)


def heard(*clips: AudioClip) -> list[dict[str, Any]]:
    parts = [sound.part(AudioLimits()) for sound in clips]
    return [ASKED[0], {"role": "user", "content": [{"type": "text", "text": "Listen."}, *parts]}]


@pytest.mark.parametrize("whole", [True, False])
def test_an_omni_model_hears(from_hub: Load, tiny_models: Any, tmp_path: Path, whole: bool) -> None:
    chat = from_hub("own/omni", tiny_models.qwen_omni(tmp_path / "model", whole), hears=True)
    one = chat.chat(heard(clip(2.0)), SHORT, None, 60)
    silent = chat.chat([ASKED[0], {"role": "user", "content": "Listen."}], SHORT, None, 60)
    # 200 frames of 10 ms become 50 tokens, one a 40 ms, between their two marks.
    assert int(one.prompt_tokens or 0) - int(silent.prompt_tokens or 0) == 50 + 2
    two = chat.chat(heard(clip(2.0), clip(1.0)), SHORT, None, 60)
    assert int(two.prompt_tokens or 0) - int(one.prompt_tokens or 0) == 25 + 2
    assert one.raw != chat.chat(heard(clip(2.0, 0.5)), SHORT, None, 60).raw or one.raw != two.raw


def test_what_is_heard_is_the_librarys_own_reading_of_the_file(
    from_hub: Load, tiny_models: Any, tmp_path: Path
) -> None:
    """Logits for the same tokens and features, put together here without our code."""
    from transformers import AutoTokenizer, Qwen2_5OmniThinkerForConditionalGeneration, WhisperFeatureExtractor

    folder = tiny_models.qwen_omni(tmp_path / "model", whole=False)
    sound = clip(1.0)
    chat = from_hub("own/omni", folder, hears=True)
    inputs = chat._prepare_inputs(heard(sound))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = (
        "<|im_start|>system\nYou judge.<|im_end|>\n<|im_start|>user\nListen.<|audio_bos|>"
        + "<|AUDIO|>" * 25
        + "<|audio_eos|><|im_end|>\n<|im_start|>assistant\n"
    )
    assert inputs["input_ids"][0].tolist() == tokenizer(text)["input_ids"]
    samples, _ = soundfile.read(io.BytesIO(sound.encoded("wav")), dtype="float32")
    features = WhisperFeatureExtractor.from_pretrained(folder)(
        samples, sampling_rate=16_000, padding="max_length", return_attention_mask=True, return_tensors="pt"
    )
    model = Qwen2_5OmniThinkerForConditionalGeneration.from_pretrained(folder)
    with torch.inference_mode():
        expected = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            input_features=features["input_features"],
            feature_attention_mask=features["attention_mask"],
        ).logits
        found = chat._model(**inputs).logits
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


def test_a_model_that_does_not_hear_says_so(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    folder = tiny_models.qwen2(tmp_path / "model")
    with pytest.raises(ChatRefused, match="does not accept audio"):
        from_hub("own/tiny", folder).chat(heard(clip(1.0)), SHORT, None, 60)
    chat_transformers.load_model.cache_clear()
    with pytest.raises(ModelMissing, match="can send audio only to"):
        from_hub("own/tiny", folder, hears=True)


def test_what_is_not_installed_names_the_command(hub_client: Any) -> None:
    with pytest.raises(ModelMissing, match=f"podeval judge install transformers:own/none@{COMMIT}"):
        load_transformers_chat("own/none", COMMIT, hears=False)


def test_weights_that_are_no_safetensors_are_refused(hub_client: Any, tiny_models: Any, tmp_path: Path) -> None:
    folder = tiny_models.qwen2(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    hub_client.publish("own/pickled", COMMIT, folder)
    with pytest.raises(BadInput, match="no weights in safetensors"):
        install("own/pickled", COMMIT, lambda line: None)


def test_code_of_the_repo_is_not_run(from_hub: Load, tiny_models: Any, tmp_path: Path) -> None:
    folder = tiny_models.qwen2(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('code of the repo was run')")
    with pytest.raises(ModelMissing, match="cannot be loaded"):
        from_hub("own/coded", folder)


def test_an_index_that_reaches_elsewhere_is_refused(hub_client: Any, tiny_models: Any, tmp_path: Path) -> None:
    folder = tiny_models.qwen2(tmp_path / "model", shards=True)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../../secret.safetensors"}}))
    hub_client.publish("own/reaching", COMMIT, folder)
    with pytest.raises(BadInput, match="files next to it that are not safetensors files"):
        install("own/reaching", COMMIT, lambda line: None)


class Score(pydantic.BaseModel):
    score: int


def test_a_model_that_talks_nonsense_is_unanswered_and_never_zero(
    from_hub: Load, tiny_models: Any, tmp_path: Path
) -> None:
    from_hub("own/tiny", tiny_models.qwen2(tmp_path / "model"))
    prompt = Prompt("tiny", "1", "You judge.", "{text}", Score, "none")
    config = tmp_path / "judge.yaml"
    config.write_text(
        f"backend: transformers\nmodel: own/tiny\nrevision: {COMMIT}\nsampling: {{max_tokens: 16}}\ntrial: true\n"
    )
    (outcome,) = JudgeClient(find_judge(str(config)), tmp_path / "records").ask([JudgeRequest(prompt, {"text": "x"})])
    assert isinstance(outcome, Unanswered)
    assert "no usable answer in 3 tries" in outcome.reason


def test_the_command_fetches_a_model_and_prints_where_it_lies(
    hub_client: Any, tiny_models: Any, tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    hub_client.publish("own/tiny", COMMIT, tiny_models.qwen2(tmp_path / "model"))
    found = CliRunner().invoke(app, ["judge", "install", f"transformers:own/tiny@{COMMIT}"])
    assert found.exit_code == 0, found.output
    folder = Path(found.stdout.strip().splitlines()[-1])
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    refused = CliRunner().invoke(app, ["judge", "install", "m@http://127.0.0.1:9/v1"])
    assert isinstance(refused.exception, BadInput)
    assert "needs nothing from the Hub" in str(refused.exception)
