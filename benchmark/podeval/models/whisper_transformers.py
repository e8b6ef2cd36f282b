"""Whisper with transformers: words with times, greedy and deterministic.

The recording is cut at its pauses into chunks that fit Whisper's window, as for the embedded Whisper; several are
decoded at once, independently, in one pass without timestamp tokens. It runs at 32-bit precision everywhere: at 16-bit
precision, some words and the times of many words differ from those on a CPU or in another batch. A static cache is not
used, because only 96.8 % of the tokens were unchanged with the decoder that is compiled for it.

The time of a word comes from the model's attention to the audio while it generated the word. For the attention heads
that follow the audio, the weights of every token over time are standardised, smoothed (median of 7 steps) and averaged;
the monotonic path with the highest sum through them (dynamic time warping) gives the step at which each token begins.
Punctuation does not count towards a word's time. A word that begins a sentence and is more than twice as long as the
median gets a later start, because the excess is the pause before it. Source: openai-whisper, `timing.py`;
faster-whisper does the same.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.modeling_outputs import BaseModelOutput

from podeval import progress
from podeval.errors import CannotScore
from podeval.models.chunking import cut_sounding
from podeval.models.device import free_memory, is_out_of_memory
from podeval.models.interfaces import RATE, Samples, Transcriber, Transcript, Word
from podeval.models.pretrained import load_from_folder, load_pretrained, silence_transformers

_GPU_BATCH, _CPU_BATCH = 32, 2
"""Number of chunks that are decoded together. Large v3 needs half a gigabyte for each; a step takes a GPU the same time
for 16 chunks as for 64.
"""


class WhisperTransformers(Transcriber):
    """A transcriber that runs in transformers.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
        num_beams: number of beams in decoding; 1 means greedy decoding.
        dtype: torch's name for the precision. If a card sets another one as an option, it is part of the model's
            identity.
        device: the device of the model; by default, the one that all models use.
    """

    def __init__(
        self, files: dict[str, Path], *, num_beams: int, dtype: str = "float32", device: str | None = None
    ) -> None:
        (folder,) = files.values()
        self._beams = num_beams
        self._processor = load_from_folder("WhisperProcessor", folder)
        # Only eager attention returns its weights, from which word times are computed; the encoder's are not needed.
        self._model = load_pretrained(
            "WhisperForConditionalGeneration", folder, device, dtype=getattr(torch, dtype), attn_implementation="eager"
        )
        _fuse_attention(self._model.get_encoder())
        self._batch = _CPU_BATCH if self._model.device.type == "cpu" else _GPU_BATCH
        self._codes = {number: token[2:-2] for token, number in self._model.generation_config.lang_to_id.items()}

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Return words with times; if `language` is None, it is detected once, on the first chunk that has sound.

        Raises:
            CannotScore: the model does not support the language.
        """
        if language is not None and language not in self._codes.values():
            raise CannotScore(f"Whisper does not support the language {language!r}; give its code, such as en or zh")
        sounding = cut_sounding(samples)
        if not sounding:
            return Transcript("", language or "", ())
        texts: list[str] = []
        words: list[Word] = []
        with torch.inference_mode(), silence_transformers():
            if language is None:
                language = self._detect(samples[sounding[0]])
            while len(texts) < len(sounding):
                for piece, text, timed in self._decode_next(samples, sounding[len(texts) :], language):
                    texts.append(text)
                    words.extend(timed)
                    progress.report("transcribing", piece.stop / RATE, len(samples) / RATE)
        return Transcript(" ".join(text for text in texts if text), str(language), tuple(words))

    def detect_language(self, samples: Samples) -> str:
        """Return the code of the language spoken in the first chunk with sound; empty without sound."""
        sounding = cut_sounding(samples)
        with torch.inference_mode(), silence_transformers():
            return self._detect(samples[sounding[0]]) if sounding else ""

    def _detect(self, clip: Samples) -> str:
        return str(self._codes[int(self._model.detect_language(self._extract_features([clip]))[0])])

    def _extract_features(self, clips: Sequence[Samples]) -> Any:
        """Compute mel spectrograms of 30 s each, shape (clips, bands, frames)."""
        arrays = [np.ascontiguousarray(clip, dtype=np.float32) for clip in clips]
        spectrograms = self._processor.feature_extractor(arrays, sampling_rate=RATE, return_tensors="pt")
        return spectrograms.input_features.to(self._model.device, self._model.dtype)

    def _decode_next(
        self, samples: Samples, pieces: Sequence[slice], language: str
    ) -> list[tuple[slice, str, list[Word]]]:
        """Return as many of the first chunks as fit into the GPU's memory, with their texts and words."""
        while True:
            batch = pieces[: self._batch]
            try:
                return list(self._decode_pieces(samples, batch, language))
            except RuntimeError as error:
                if len(batch) == 1 or not is_out_of_memory(error):
                    raise
            # Release memory only here, because the error kept tensors alive. The words are the same in any batch.
            free_memory()
            self._batch = len(batch) // 2

    def _decode_pieces(
        self, samples: Samples, batch: Sequence[slice], language: str
    ) -> Iterator[tuple[slice, str, list[Word]]]:
        """Yield every chunk with its text and its words, with times in the recording."""
        # Encode once, for both decoding and attention.
        features = self._extract_features([samples[piece] for piece in batch])
        encoded = self._model.get_encoder()(features).last_hidden_state
        sequences = self._model.generate(
            features,
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
            attention_mask=torch.ones(features.shape[0], features.shape[-1], device=features.device),
            language=language,
            task="transcribe",
            return_timestamps=False,
            num_beams=self._beams,
            do_sample=False,
        )
        tokenizer = self._processor.tokenizer
        written = [[token for token in sequence if token < tokenizer.eos_token_id] for sequence in sequences.tolist()]
        steps = [max(1, round((piece.stop - piece.start) / RATE / STEP)) for piece in batch]
        attentions = (
            self._read_attentions(encoded, written, language, max(steps)) if any(written) else [None] * len(batch)
        )
        for piece, tokens, length, attention in zip(batch, written, steps, attentions, strict=True):
            text = tokenizer.decode(tokens, clean_up_tokenization_spaces=False).strip()
            words: tuple[Word, ...] = ()
            if tokens and attention is not None:
                words = time_words(tokens, tokenizer, language, attention[:, : len(tokens) + 1, :length])
            begin = piece.start / RATE
            timed = [Word(w.text, round(begin + w.start * STEP, 3), round(begin + w.end * STEP, 3)) for w in words]
            yield piece, text, timed

    def _read_attentions(
        self, encoded: Any, written: Sequence[list[int]], language: str, steps: int
    ) -> NDArray[np.float32]:
        """Return the alignment heads' attention over each chunk while each token, and then the end, was predicted.

        Shape (chunks, heads, tokens of the longest + 1, steps); values beyond the end of a shorter text are
        meaningless.
        """
        # Run the decoder over the finished texts. Its tokens do not see the padding after them.
        config = self._model.generation_config
        prompt = [
            config.decoder_start_token_id,
            config.lang_to_id[f"<|{language}|>"],
            config.task_to_id["transcribe"],
            config.no_timestamps_token_id,
        ]
        end, longest = self._processor.tokenizer.eos_token_id, max(map(len, written))
        rows = torch.tensor([prompt + tokens + [end] * (longest - len(tokens)) for tokens in written])
        # While each layer runs, keep only the weights of its heads that follow the audio.
        decoder, weights = self._model.get_decoder(), {}

        def watch(number: int, heads: list[int]) -> Any:
            def keep(module: Any, inputs: Any, output: Any) -> None:
                weights[number] = dict(
                    zip(heads, output[1][:, heads, len(prompt) - 1 :, :steps].unbind(1), strict=True)
                )

            return decoder.layers[number].encoder_attn.register_forward_hook(keep)

        with ExitStack() as hooks:
            for number in {layer for layer, _ in config.alignment_heads}:
                hooks.enter_context(watch(number, [head for layer, head in config.alignment_heads if layer == number]))
            decoder(rows.to(encoded.device), encoder_hidden_states=encoded, use_cache=False)
        attentions = torch.stack([weights[layer][head] for layer, head in config.alignment_heads], dim=1)
        return np.asarray(attentions.float().cpu().numpy())


def _fuse_attention(encoder: Any) -> None:
    """Make an encoder compute its attention in one step (SDPA), without changing the settings of the decoder."""
    config = copy.deepcopy(encoder.config)
    for module in encoder.modules():
        if getattr(module, "config", None) is not None:
            module.config = config
    encoder.set_attn_implementation("sdpa")


STEP = 0.02
"""Length of one step of Whisper's encoder, in seconds."""

_SMOOTHED = 7
UNSPACED = ("zh", "ja", "th", "lo", "my", "yue")
_SENTENCE_ENDS = ".。!！?？"
_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、"
_HIGHEST_MEDIAN = 35
_BROKEN = "\ufffd"


def time_words(
    tokens: Sequence[int], tokenizer: Any, language: str, attention: NDArray[np.float32]
) -> tuple[Word, ...]:
    """Join tokens into words with their times, in steps of `STEP`.

    Args:
        tokens: the tokens of the text, without any other tokens.
        tokenizer: the model's tokenizer, which must have `decode`.
        language: code of the language; in languages that are written without spaces, every character is a word.
        attention: probabilities over the audio's steps while each token and then the end was predicted, shape
            (heads, tokens + 1, steps).
    """
    starts = find_token_starts(attention)
    parts = [
        Word(text, float(starts[first]), float(starts[past]))
        for text, first, past in _split_parts(tokens, tokenizer, spaced=language not in UNSPACED)
    ]
    return tuple(_attach_punctuation(_cut_pauses(parts)))


def find_token_starts(attention: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the step at which each token begins; the last entry is the end. `attention` is as in `time_words`."""
    least = np.finfo(np.float32).tiny
    weights = attention / np.maximum(attention.sum(axis=-1, keepdims=True), least)
    spread = weights.std(axis=-2, keepdims=True)
    weights = (weights - weights.mean(axis=-2, keepdims=True)) / np.maximum(spread, least)
    return _find_first_steps(_smooth(weights).mean(axis=0))


def _smooth(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute a running median over time, with values mirrored at both ends."""
    reach = min(_SMOOTHED // 2, weights.shape[-1] - 1)
    padded = np.pad(weights, [(0, 0), (0, 0), (reach, reach)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=-1)
    # The number of values is odd, so the median is one of them. Partitioning takes a third as long as `np.median`.
    return np.asarray(np.partition(windows, reach, axis=-1)[..., reach])


def _find_first_steps(gains: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the step at which the best forward path enters each row, by dynamic time warping over (tokens, steps).

    The table is filled one diagonal at a time, because the cells of a diagonal do not depend on each other.
    """
    rows, columns = gains.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((rows + 1, columns + 1), dtype=np.int8)
    for diagonal in range(2, rows + columns + 1):
        row = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        column = diagonal - row
        both, down, along = best[row - 1, column - 1], best[row - 1, column], best[row, column - 1]
        # Ties are resolved as in the original.
        choice = np.where((both < down) & (both < along), 0, np.where((down < both) & (down < along), 1, 2))
        best[row, column] = np.choose(choice, [both, down, along]) - gains[row - 1, column - 1]
        came[row, column] = choice
    starts = np.zeros(rows, dtype=np.int64)
    at, step = rows, columns
    while at > 0:
        starts[at - 1] = max(step - 1, 0)
        move = came[at, step] if step > 0 else 1
        at, step = at - (move != 2), step - (move != 1)
    return starts


def _split_parts(tokens: Sequence[int], tokenizer: Any, *, spaced: bool) -> list[tuple[str, int, int]]:
    """Return words and the punctuation between them, each with its first token and the token after its last."""
    parts: list[tuple[str, int, int]] = []
    first = 0
    for past in range(1, len(tokens) + 1):
        text = tokenizer.decode(tokens[first:past], clean_up_tokenization_spaces=False)
        if text.endswith(_BROKEN) and past < len(tokens):
            continue
        if parts and spaced and not text[:1].isspace() and not _consists_of(text, _OPENING + _CLOSING):
            before, start, _ = parts.pop()
            parts.append((before + text, start, past))
        else:
            parts.append((text, first, past))
        first = past
    return [(text.strip(), start, past) for text, start, past in parts if text.strip()]


def _cut_pauses(parts: list[Word]) -> list[Word]:
    """Return the parts; parts that begin a sentence are shortened to at most twice the median length."""
    lengths = [part.end - part.start for part in parts if part.end > part.start]
    longest = 2 * min(_HIGHEST_MEDIAN, float(np.median(lengths))) if lengths else 0.0
    shortened = []
    for number, part in enumerate(parts):
        begins = number == 0 or _consists_of(parts[number - 1].text, _SENTENCE_ENDS)
        cut = begins and part.end - part.start > longest and not _consists_of(part.text, _OPENING + _CLOSING)
        shortened.append(replace(part, start=part.end - longest) if cut else part)
    return shortened


def _attach_punctuation(parts: Sequence[Word]) -> Iterator[Word]:
    """Yield words with their punctuation; the times are those of the word alone."""
    opening = ""
    word: Word | None = None
    for part in parts:
        if word and _consists_of(part.text, _CLOSING):
            word = replace(word, text=word.text + part.text)
        elif _consists_of(part.text, _OPENING):
            opening += part.text
        else:
            if word:
                yield word
            word = replace(part, text=opening + part.text)
            opening = ""
    if word:
        yield replace(word, text=word.text + opening)


def _consists_of(text: str, signs: str) -> bool:
    return all(sign in signs for sign in text.strip())
