"""Chat models from the Hub, run locally with transformers: text models, and Qwen-Omni models, which accept audio.

Models are pinned to a commit; weights must be safetensors, and no code from the repo is run. A call never downloads
anything: `podeval judge install` fetches the files. Models run at 16-bit precision on a GPU and at 32-bit precision on
a CPU, one call at a time; the judge specifies the precision (`podeval.judges.judge`), because it is part of the judge's
id.

Audio is prepared as the models' own processors prepare it (16 kHz, Whisper's log-mel features, one token per 40 ms),
but without these processors, which need libraries for images and videos.
"""

import base64
import contextlib
import functools
import io
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podeval.errors import BadInput, ModelMissing
from podeval.models.card import HubRepo, NotInRepo, is_importable
from podeval.models.chat import ChatAnswer, ChatBusy, ChatRefused, Message, Sampling
from podeval.models.pretrained import load_from_folder, load_pretrained, silence_transformers

RATE = 16_000

_CONFIGURATION = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
    "preprocessor_config.json",
)
_INDEX, _WHOLE = "model.safetensors.index.json", "model.safetensors"

_HEARING = {
    "qwen2_audio": "Qwen2AudioForConditionalGeneration",
    "qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen2_5_omni_thinker": "Qwen2_5OmniThinkerForConditionalGeneration",
}
"""Classes by model type in the config, for models that accept audio; for Omni models, this is the class of the part
that generates text.
"""
_AUDIO_TOKEN = "<|AUDIO|>"  # noqa: S105


class TransformersChat:
    """A chat model from its folder; see `podeval.models.chat.ChatModel`.

    Args:
        folder: the folder that contains the model's files.
        name: its name in messages to users.
        hears: whether audio will be sent to it.
        dtype: torch's name for the precision.

    Raises:
        ModelMissing: the model cannot be loaded, or does not accept audio.
    """

    at_once: int | None = 1

    def __init__(self, folder: Path, name: str, *, hears: bool, dtype: str = "float32") -> None:
        import torch

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = _HEARING.get(config.get("model_type", ""))
        if hears and kind is None:
            raise ModelMissing(
                f"podeval can send audio only to models of the types {', '.join(_HEARING)}; {name} is of the type "
                f"{config.get('model_type')!r}. To use it for text only, write hears: false into the judge's YAML file"
            )
        self._name = name
        self._lock = threading.Lock()
        options = {"use_safetensors": True, "dtype": getattr(torch, dtype)}
        if kind:
            # A complete Omni model also has a part that speaks, in addition to the part that generates text.
            options["key_mapping"] = {"^thinker\\.": ""}
        try:
            self._tokenizer = load_from_folder("AutoTokenizer", folder)
            self._features = load_from_folder("WhisperFeatureExtractor", folder) if kind else None
            self._model = load_pretrained(kind or "AutoModelForCausalLM", folder, **options)
        except (OSError, ValueError, KeyError) as error:
            first = str(error).strip().partition("\n")[0]
            raise ModelMissing(
                f"{name} cannot be loaded ({first}); choose a model that transformers supports"
            ) from None
        if self._tokenizer.chat_template is None:
            raise ModelMissing(f"{name} has no chat template; choose an instruction-tuned model")

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer; the schema is requested in words only."""
        if not self._lock.acquire(timeout=timeout):
            raise ChatBusy(f"{self._name} was busy and did not start on this request within {timeout:g} s")
        try:
            return self._ask(messages, sampling, timeout)
        finally:
            self._lock.release()

    def _ask(self, messages: Sequence[Message], sampling: Sampling, timeout: float) -> ChatAnswer:
        import torch

        # The question must leave room for an answer.
        inputs = self._prepare_inputs(messages)
        prompt_length = int(inputs["input_ids"].shape[1])
        room = self._read_context_length() - prompt_length
        if room < 1:
            raise ChatRefused(
                f"the question has {prompt_length} tokens, but {self._name} accepts at most "
                f"{self._read_context_length()}",
                for_all=False,
            )
        # Generate the answer, greedily at temperature 0.
        options: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if sampling.temperature is None or sampling.temperature > 0:
            options = {"do_sample": True, "temperature": sampling.temperature or 1.0, "top_p": sampling.top_p or 1.0}
        began = time.monotonic()
        with torch.inference_mode(), silence_transformers(), _seed_draws(sampling.seed):
            sequences = self._model.generate(
                **inputs,
                **options,
                max_new_tokens=min(sampling.max_tokens or room, room),
                max_time=timeout,
                pad_token_id=self._tokenizer.pad_token_id or self._list_end_tokens()[0],
            )
        # The answer follows the question; if it has no end token, it was cut off.
        answer = sequences[0, prompt_length:].tolist()
        whole = bool(answer) and answer[-1] in self._list_end_tokens()
        if not whole and time.monotonic() - began >= timeout:
            raise ChatBusy(f"{self._name} did not answer within {timeout:g} s", crowded=False)
        text = self._tokenizer.decode(answer, skip_special_tokens=True)
        return ChatAnswer(
            text=text or None,
            finish="stop" if whole else "length",
            prompt_tokens=prompt_length,
            answer_tokens=len(answer),
            model=self._name,
            form="text",
            raw={"text": self._tokenizer.decode(answer, skip_special_tokens=False)},
        )

    def _prepare_inputs(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the model's inputs: tokens, and features of the audio, each of which has a placeholder token."""
        conversation, clips = _read_conversation(messages)
        text = self._tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        audio: dict[str, Any] = {}
        # Compute the features of the clips, and put a token into the text for each of their frames.
        if clips:
            if self._features is None:
                raise ChatRefused(f"{self._name} does not accept audio", for_all=False)
            features = self._features(
                clips,
                sampling_rate=RATE,
                padding="longest",
                truncation=False,
                return_attention_mask=True,
                return_tensors="pt",
            )
            mask = features["attention_mask"]
            audio = {"input_features": features["input_features"].to(self._model.dtype), "feature_attention_mask": mask}
            text = _insert_audio_tokens(text, [_count_audio_tokens(int(length)) for length in mask.sum(-1)], self._name)
        tokens = self._tokenizer(text, add_special_tokens=False, return_tensors="pt")
        inputs = {"input_ids": tokens["input_ids"], "attention_mask": tokens["attention_mask"], **audio}
        return {name: value.to(self._model.device) for name, value in inputs.items()}

    def _read_context_length(self) -> int:
        config = self._model.config.get_text_config()
        return int(getattr(config, "max_position_embeddings", 0) or 32_768)

    def _list_end_tokens(self) -> list[int]:
        """Return the tokens that end an answer."""
        declared = self._model.generation_config.eos_token_id
        ends = declared if isinstance(declared, list) else [declared]
        return [end for end in (*ends, self._tokenizer.eos_token_id) if end is not None]


def _read_conversation(messages: Sequence[Message]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the messages in the form of chat templates, and the clips in order, mono at `RATE`."""
    import soundfile

    from podeval.audio.samples import resample

    clips = []
    conversation = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            parts: list[dict[str, Any]] = []
            for part in content:
                if part["type"] == "input_audio":
                    file = io.BytesIO(base64.b64decode(part["input_audio"]["data"]))
                    samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
                    clips.append(resample(np.ascontiguousarray(samples.mean(axis=1)), rate, RATE))
                    parts.append({"type": "audio", "audio": "", "audio_url": ""})
                else:
                    parts.append(dict(part))
            content = parts
        conversation.append({"role": message["role"], "content": content})
    return conversation, clips


def _count_audio_tokens(frames: int) -> int:
    """Return the number of tokens for this many feature frames.

    Each of two convolutions halves the number, as in Qwen2-Audio and Qwen2.5-Omni.
    """
    return int(((frames - 1) // 2 + 1 - 2) // 2 + 1)


def _insert_audio_tokens(text: str, counts: Sequence[int], name: str) -> str:
    """Repeat each audio token in the template to match the number of its clip's tokens."""
    pieces = text.split(_AUDIO_TOKEN)
    if len(pieces) != len(counts) + 1:
        raise ChatRefused(
            f"the chat template of {name} has no placeholder for audio; choose another judge", for_all=True
        )
    joined = pieces[0]
    for count, piece in zip(counts, pieces[1:], strict=True):
        joined += _AUDIO_TOKEN * count + piece
    return joined


@contextlib.contextmanager
def _seed_draws(seed: int | None) -> Any:
    """Make random draws inside the block depend on the seed; draws outside are unaffected."""
    import torch

    if seed is None:
        yield
        return
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def install(repo: str, commit: str, progress: Callable[[str], None]) -> Path:
    """Download a model's configuration, tokenizer and safetensors weights, except for existing files.

    Raises:
        BadInput: the Hub does not provide the model, or it has no weights in safetensors; the message gives the remedy.
    """
    HubRepo(repo, commit, ("config.json",)).install(progress)
    for file in _CONFIGURATION:
        _fetch_optional(repo, commit, file, progress)
    folder = _find_folder(repo, commit)
    if _fetch_optional(repo, commit, _INDEX, progress):
        HubRepo(repo, commit, _read_shards(folder)).install(progress)
    elif not _fetch_optional(repo, commit, _WHOLE, progress):
        raise BadInput(f"{repo} has no weights in safetensors at {commit[:12]}; choose a model that has them")
    return folder


def _fetch_optional(repo: str, commit: str, file: str, progress: Callable[[str], None]) -> bool:
    """Download a file if the repo has it."""
    file_of_repo = HubRepo(repo, commit, (file,))
    if file_of_repo.missing():
        try:
            file_of_repo.install(lambda line: None)
        except NotInRepo:
            return False
        progress(f"{repo}: downloaded {file}")
    return True


def _read_shards(folder: Path) -> tuple[str, ...]:
    """Return the files that an index of weights lists."""
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    names = sorted(set(index["weight_map"].values()))
    if not names or any(Path(name).name != name or not name.endswith(".safetensors") for name in names):
        raise BadInput(f"{folder / _INDEX} lists files next to it that are not safetensors files; choose another model")
    return tuple(names)


def _find_folder(repo: str, commit: str) -> Path:
    return HubRepo(repo, commit, ("config.json",)).folder(f"podeval judge install transformers:{repo}@{commit}")


def load_transformers_chat(repo: str, commit: str, *, hears: bool, dtype: str = "float32") -> TransformersChat:
    """Load the model from a repo at a commit, once per process.

    Raises:
        ModelMissing: transformers or the files are not installed; the message gives the remedy. See also
            `TransformersChat`.
    """
    if absent := [name for name in ("torch", "transformers") if not is_importable(name)]:
        raise ModelMissing(f"a local judge needs {' and '.join(absent)}; run `pip install 'podeval[judges]'`")
    folder = _find_folder(repo, commit)
    shards = _read_shards(folder) if (folder / _INDEX).is_file() else (_WHOLE,)
    HubRepo(repo, commit, shards).folder(f"podeval judge install transformers:{repo}@{commit}")
    return load_model(folder, f"{repo}@{commit[:12]}", hears, dtype)


@functools.lru_cache(maxsize=1)
def load_model(folder: Path, name: str, hears: bool, dtype: str) -> TransformersChat:
    """Load a model from a folder; only the last model is kept in memory, because few machines have room for two."""
    return TransformersChat(folder, name, hears=hears, dtype=dtype)
