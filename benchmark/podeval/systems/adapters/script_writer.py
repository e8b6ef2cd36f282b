"""Script writers: causal language models, used through their own chat templates, and LoRA adapters for them.

The script is the text after the model's thoughts. A request that does not fit into the model's window fails and is
never truncated; the preset and the window limit the length of the answer.

transformers samples the tokens of a whole batch from one generator, so an item's answer would change with its
neighbours and with the batch size that memory allows. Here, every row has its own generator: adding Gumbel noise to the
log-probabilities and taking the largest sum is equivalent to sampling.
"""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.models.pretrained import silence_transformers
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Adapter, Job, ModelClass
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import check_files, read_config
from podeval.systems.speech import Ask, SpeechFailed, WrittenScript
from podeval.text.reasoning import strip_reasoning

GPU_BATCH, CPU_BATCH = 8, 2
NEW_TOKENS = 4_096
"""Maximum length of an answer in tokens if neither the preset nor the model's repo sets one."""

_THINKING = "<think>"
_THOUGHT = "</think>"
Message = Mapping[str, str]


class LanguageModel:
    """A causal language model with its tokenizer.

    Args:
        folder: the folder of the model, or of a LoRA adapter.
        base: the folder of the model that the adapter adapts.
        device: device on which the model runs, such as `cpu`.
        preset: the generation preset.
        longest: maximum number of tokens in an answer, if neither the preset nor the model's repo sets one.
    """

    def __init__(
        self, folder: Path, base: Path | None, device: str, preset: Preset, *, longest: int = NEW_TOKENS
    ) -> None:
        self.tokenizer = _tokenizer(folder, base)
        self.network = _weights(folder, base, device)
        self._preset = preset
        self.config = _generation(self.network, self.tokenizer, preset, longest)
        self.window: int | None = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)

    def answers(self, chats: Sequence[Sequence[Message]], seeds: Sequence[int]) -> list[dict[str, Any]]:
        """Answer each chat with `text` (without thoughts), `tokens`, `prompt_tokens`, and `whole` (whether it is
        complete).

        Raises:
            BadInput: a chat does not fit into the window.
            SpeechFailed: the result is empty or contains only reasoning.
        """
        import torch

        texts = [self.render_chat(chat) for chat in chats]
        # The template has already added the special tokens.
        batch = self.tokenizer(
            texts, return_tensors="pt", padding=True, add_special_tokens=not self.tokenizer.chat_template
        )
        longest = int(batch["input_ids"].shape[1])
        if len(chats) > 1 and self._room(longest) < self.config.max_new_tokens:
            # Near the end of the window, a longer request in the same batch would cause an answer to be truncated.
            return [self.answers([chat], [seed])[0] for chat, seed in zip(chats, seeds, strict=True)]
        config, processors = draw_row_by_row(self.config, seeds)
        config.max_new_tokens = self._room(longest)
        with torch.inference_mode(), silence_transformers():
            sequences = self.network.generate(
                input_ids=batch["input_ids"].to(self.network.device),
                attention_mask=batch["attention_mask"].to(self.network.device),
                generation_config=config,
                logits_processor=processors,
            )
        prompt_lengths = batch["attention_mask"].sum(dim=1).tolist()
        return [
            self.read_answer(row[longest:].tolist(), int(count))
            for row, count in zip(sequences, prompt_lengths, strict=True)
        ]

    def render_chat(self, chat: Sequence[Message]) -> str:
        """Render the chat with the model's template; for a base model without a template, return only the words."""
        if not self.tokenizer.chat_template:
            return "\n\n".join(message["content"] for message in chat)
        options = {} if self._preset.thinking is None else {"enable_thinking": self._preset.thinking}
        try:
            return str(
                self.tokenizer.apply_chat_template(list(chat), tokenize=False, add_generation_prompt=True, **options)
            )
        except Exception as error:  # a template is the repo's program, so its errors are the system's fault
            raise SpeechFailed(f"the model's chat template failed ({type(error).__name__}: {error})") from error

    def _room(self, prompt: int) -> int:
        most = int(self.config.max_new_tokens)
        if self.window is None:
            return most
        if prompt >= self.window:
            raise BadInput(
                f"the request is {prompt} tokens long, but the model's window is {self.window}; "
                "podeval never shortens a text"
            )
        return min(most, self.window - prompt)

    def read_answer(self, tokens: list[int], prompt: int) -> dict[str, Any]:
        """Read an answer from its tokens, up to the first end token; `prompt` is the number of tokens in the request.

        Raises:
            SpeechFailed: the result is empty or contains only reasoning.
        """
        ends = self.config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        stop = next((index for index, token in enumerate(tokens) if token in ends), None)
        answer = tokens[:stop]
        raw = self.tokenizer.decode(answer, skip_special_tokens=False)
        if _THINKING in raw and _THOUGHT not in raw:
            raise SpeechFailed(f"the model was still thinking after {len(answer)} tokens and wrote no script")
        text = strip_reasoning(self._clean(raw, answer))
        if not text:
            raise SpeechFailed(f"the model's answer of {len(answer)} tokens contains no words")
        return {"text": text, "tokens": len(answer), "prompt_tokens": prompt, "whole": stop is not None}

    def _clean(self, raw: str, tokens: list[int]) -> str:
        """Remove special tokens, but keep reasoning marks, which some tokenizers treat as special."""
        head, mark, tail = raw.rpartition(_THOUGHT)
        if not mark:
            return str(self.tokenizer.decode(tokens, skip_special_tokens=True))
        special = sorted(self.tokenizer.all_special_tokens, key=len, reverse=True)
        for token in special:
            tail = tail.replace(token, "")
        return head + mark + tail


def draw_row_by_row(config: Any, seeds: Sequence[int]) -> tuple[Any, Any]:
    """Return a config that takes the most probable token, and processors that make this a random draw per row.

    Args:
        config: the generation config; if it samples, its temperature, top_k, top_p and min_p apply.
        seeds: one seed per row.

    Returns:
        The config and a `LogitsProcessorList`, both for `generate`.
    """
    from transformers import LogitsProcessorList
    from transformers.generation.logits_process import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    chosen = deepcopy(config)
    chosen.do_sample = False
    processors = LogitsProcessorList()
    if config.do_sample:
        if config.temperature not in (None, 1.0):
            processors.append(TemperatureLogitsWarper(float(config.temperature)))
        if config.top_k:
            processors.append(TopKLogitsWarper(int(config.top_k)))
        if config.top_p is not None and config.top_p < 1.0:
            processors.append(TopPLogitsWarper(float(config.top_p)))
        if config.min_p is not None:
            processors.append(MinPLogitsWarper(float(config.min_p)))
        processors.append(_GumbelByRow(seeds))
    for name in ("temperature", "top_k", "top_p", "min_p"):
        setattr(chosen, name, None)
    return chosen, processors


class _GumbelByRow:
    """Adds noise from each row's own generator to that row's log-probabilities; noise is always drawn on the CPU."""

    def __init__(self, seeds: Sequence[int]) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        chances = torch.log_softmax(scores.float(), dim=-1)
        uniform = torch.stack([torch.rand(scores.shape[-1], generator=generator) for generator in self._generators])
        # 0 would become -inf twice and result in NaN; the smallest float is just as rare.
        noise = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(torch.float32).tiny)))
        return chances + noise.to(scores.device)


@dataclass
class ScriptWriter:
    """An `OutputMaker` for scripts.

    Attributes:
        model: the model that writes.
        at_once: maximum number of items in a call.
    """

    model: LanguageModel
    at_once: int

    def make(self, asks: Sequence[Ask], seed: int) -> list[WrittenScript]:
        """Write a script for each prompt."""
        for ask in asks:
            if ask.prompt is None:
                raise BadInput(
                    f"item {ask.id} has no prompt for a script; its benchmark's track asks for other outputs"
                )
        begin = time.perf_counter()
        chats = [[{"role": "user", "content": str(ask.prompt)}] for ask in asks]
        answers = self.model.answers(chats, [loading.derive_seed(seed, ask.id) for ask in asks])
        share = (time.perf_counter() - begin) / len(asks)
        return [
            WrittenScript(
                answer["text"],
                None,
                wall_seconds=share,
                details={key: value for key, value in answer.items() if key != "text"},
            )
            for answer in answers
        ]


def check(folder: Path, base: Path | None = None) -> None:
    """See `Adapter`."""
    check_files(folder)
    if not is_lora(folder):
        require_causal(folder)
        return
    kind = str(read_config(folder, "adapter_config.json").get("peft_type", "")).upper()
    if kind != "LORA":
        raise BadInput(f"adapter_config.json is of type {kind or 'none'}; only LORA adapters are supported")
    if not (folder / "adapter_model.safetensors").is_file():
        raise BadInput("the adapter has no adapter_model.safetensors; save it with peft's save_pretrained")
    if base is None:
        raise BadInput("the repo contains a LoRA adapter; specify the model that it adapts under base, with its commit")
    if is_lora(base):
        raise BadInput("the base of an adapter must be a whole model, not another adapter")
    check(base)


def open_writer(job: Job, preset: Preset) -> ScriptWriter:
    """See `Adapter`."""
    check(job.model_folder, job.base_folder)
    device = loading.choose_device(job.device)
    model = LanguageModel(job.model_folder, job.base_folder, device, preset)
    return ScriptWriter(model, job.batch or (CPU_BATCH if device == "cpu" else GPU_BATCH))


def is_lora(folder: Path) -> bool:
    """Return whether a folder contains a PEFT adapter and no complete model."""
    return (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file()


def require_causal(folder: Path) -> None:
    """Refuse a model whose class is not a causal language model.

    Raises:
        BadInput: the class is not supported; the message names it.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind = read_config(folder).get("model_type")
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise BadInput(
            f"a model of type {kind!r} is not a causal language model in transformers, so it cannot write scripts"
        )
    if not any(folder.glob("*.safetensors")):
        raise BadInput("the model has no .safetensors file; convert its weights with save_pretrained")


def _tokenizer(folder: Path, base: Path | None) -> Any:
    has_tokenizer = (folder / "tokenizer_config.json").is_file()
    tokenizer = loading.load_reader("AutoTokenizer", folder if has_tokenizer or base is None else base)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _weights(folder: Path, base: Path | None, device: str) -> Any:
    if base is None or not is_lora(folder):
        return loading.load_model("AutoModelForCausalLM", folder, device)
    model = loading.load_model("AutoModelForCausalLM", base, device)
    from peft import PeftModel

    with loading.translate_errors(folder):
        adapted = PeftModel.from_pretrained(model, str(folder), is_trainable=False, use_safetensors=True)
        return adapted.merge_and_unload().eval()


def _generation(model: Any, tokenizer: Any, preset: Preset, longest: int) -> Any:
    """Return the repo's own settings, overridden by the preset's."""
    config = deepcopy(model.generation_config)
    for name, value in preset.sampling("temperature", "top_p").items():
        setattr(config, name, value)
    config.max_length = None
    config.max_new_tokens = preset.max_new_tokens or config.max_new_tokens or longest
    config.num_beams = 1
    config.pad_token_id = tokenizer.pad_token_id
    config.eos_token_id = config.eos_token_id if config.eos_token_id is not None else tokenizer.eos_token_id
    return config


ADAPTER = Adapter(
    task="script-writer",
    models=(
        ModelClass("*", "Causal language models", "any class that AutoModelForCausalLM in transformers supports"),
        ModelClass("lora", "LoRA adapters", "adapter_config.json on a base model that is pinned too"),
    ),
    check=check,
    open=open_writer,
    packages=("torch", "transformers", "accelerate", "peft"),
)
