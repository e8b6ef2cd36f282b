"""Qwen3-ASR with transformers: the recogniser of the Open TTS Leaderboard.

The recording is cut at its pauses into chunks, as for Whisper; each chunk is decoded greedily and separately, at 32-bit
precision, so its words do not depend on the batch. The model does not return times: the words in a chunk share its
length in proportion to their letters until the profile's aligner determines their times. The published code shortens
words that are repeated more than 20 times; here the repetitions are kept, because they are a fault that podeval should
detect.
Source: Qwen3-ASR; transformers, `qwen3_asr`.
"""

from pathlib import Path

import numpy as np
import torch
from transformers.models.qwen3_asr.processing_qwen3_asr import LANGUAGE_CODE_TO_NAME

from podeval import progress
from podeval.errors import CannotScore
from podeval.models.chunking import cut_sounding
from podeval.models.interfaces import RATE, Samples, Transcriber, Transcript, Word
from podeval.models.pretrained import load_from_folder, load_pretrained, silence_transformers
from podeval.models.whisper_transformers import UNSPACED

_TEXT = "<asr_text>"
_TOKENS_PER_SECOND = 16
"""Maximum number of tokens per second of audio; more tokens mean that the decoder is in a loop."""


class QwenAsr(Transcriber):
    """A transcriber that runs in transformers.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
        device: the device of the model; by default, the one that all models use.
    """

    def __init__(self, files: dict[str, Path], *, device: str | None = None) -> None:
        (folder,) = files.values()
        self._processor = load_from_folder("Qwen3ASRProcessor", folder)
        self._model = load_pretrained("Qwen3ASRForConditionalGeneration", folder, device, dtype=torch.float32)

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Return words with times; if `language` is None, it is detected once, on the first chunk that has sound.

        Raises:
            CannotScore: the model does not support the language.
        """
        if language is not None and language not in LANGUAGE_CODE_TO_NAME:
            raise CannotScore(f"Qwen3-ASR does not support the language {language!r}; give its code, such as en or zh")
        sounding = cut_sounding(samples)
        if sounding and language is None:
            language = self._decode(samples[sounding[0]], None)[0]
        texts: list[str] = []
        words: list[Word] = []
        for piece in sounding:
            _, text = self._decode(samples[piece], language or None)
            texts.append(text)
            words.extend(_spread(text, language or "", piece.start / RATE, piece.stop / RATE))
            progress.report("transcribing", piece.stop / RATE, len(samples) / RATE)
        return Transcript(" ".join(filter(None, texts)), language or "", tuple(words))

    def detect_language(self, samples: Samples) -> str:
        """Return the code of the language spoken in the first chunk with sound; empty without sound."""
        sounding = cut_sounding(samples)
        return self._decode(samples[sounding[0]], None)[0] if sounding else ""

    def _decode(self, clip: Samples, language: str | None) -> tuple[str, str]:
        """Return the code of the language (empty if the model names none) and the text in a chunk."""
        with torch.inference_mode(), silence_transformers():
            clip = np.ascontiguousarray(clip, dtype=np.float32)
            inputs = self._processor.apply_transcription_request(clip, language=language)
            inputs = inputs.to(self._model.device, self._model.dtype)
            longest = 32 + int(len(clip) / RATE * _TOKENS_PER_SECOND)
            tokens = self._model.generate(**inputs, max_new_tokens=longest, do_sample=False, num_beams=1)
        written = self._processor.tokenizer.decode(
            tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        prefix, _, text = written.rpartition(_TEXT)
        names = {name: code for code, name in LANGUAGE_CODE_TO_NAME.items()}
        return language or names.get(prefix.strip().removeprefix("language").strip(), ""), text.strip()


def _spread(text: str, language: str, start: float, end: float) -> list[Word]:
    """Return the words in a chunk, each with a share of its time in proportion to the number of letters."""
    parts = [sign for sign in text if not sign.isspace()] if language in UNSPACED else text.split()
    edges = start + (end - start) * np.cumsum([0, *map(len, parts)]) / max(1, sum(map(len, parts)))
    return [
        Word(part, round(float(a), 3), round(float(b), 3)) for part, a, b in zip(parts, edges, edges[1:], strict=False)
    ]
