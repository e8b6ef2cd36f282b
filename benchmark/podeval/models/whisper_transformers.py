"""Whisper with transformers: words with times, greedy and deterministic.

The recording is cut at its pauses into chunks that fit Whisper's window, as for the embedded Whisper; several are
decoded at once, independently, in one pass without timestamp tokens. The time of a word comes from the model's
attention to the audio (`podeval.models.word_times`). Runs in 32 bits everywhere: in 16, a word here and there and many
times differ from a CPU's, and from those of another batch.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import CannotScore
from podeval.models.chunking import RATE, cut_at_pauses
from podeval.models.interfaces import Samples, Transcriber, Transcript, Word
from podeval.models.pretrained import load_preprocessor, load_pretrained, silence_transformers
from podeval.models.word_times import STEP, TimedWord, time_words

_GPU_BATCH, _CPU_BATCH = 16, 2


class WhisperTransformers(Transcriber):
    """A transcriber with transformers.

    Args:
        files: the folder of the model, by its repo on the Hub.
        num_beams: beams of the decoding; 1 is greedy.
    """

    def __init__(self, files: dict[str, Path], *, num_beams: int) -> None:
        import torch

        (folder,) = files.values()
        self._beams = num_beams
        self._processor = load_preprocessor("WhisperProcessor", folder)
        # Only eager attention returns its weights, from which word times are computed.
        self._model = load_pretrained(
            "WhisperForConditionalGeneration",
            folder,
            dtype=torch.float32,
            attn_implementation="eager",
        )
        self._codes = {number: token[2:-2] for token, number in self._model.generation_config.lang_to_id.items()}

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Return words with times; with `language` None it is detected once, on the first chunk that has sound.

        Raises:
            CannotScore: the model does not support the language.
        """
        import torch

        if language is not None and language not in self._codes.values():
            raise CannotScore(f"Whisper does not support the language {language!r}; give its code, such as en or zh")
        sounding = [piece for piece in cut_at_pauses(samples) if np.any(samples[piece])]
        if not sounding:
            return Transcript("", language or "", ())
        # Decode some chunks at a time; the first one decides the language.
        size = _CPU_BATCH if self._model.device.type == "cpu" else _GPU_BATCH
        texts: list[str] = []
        words: list[Word] = []
        with torch.inference_mode(), silence_transformers():
            for start in range(0, len(sounding), size):
                batch = sounding[start : start + size]
                features = self._extract_features([samples[piece] for piece in batch])
                if language is None:
                    language = self._read_language(features)
                for piece, (text, timed) in zip(batch, self._decode_pieces(features, batch, language), strict=True):
                    texts.append(text)
                    words.extend(timed)
                    progress.report("transcribing", piece.stop / RATE, len(samples) / RATE)
        return Transcript(" ".join(text for text in texts if text), str(language), tuple(words))

    def detect_language(self, samples: Samples) -> str:
        """Return the code of the language of the first chunk that has sound; empty where none has."""
        import torch

        sounding = next((piece for piece in cut_at_pauses(samples) if np.any(samples[piece])), None)
        if sounding is None:
            return ""
        with torch.inference_mode(), silence_transformers():
            return self._read_language(self._extract_features([samples[sounding]]))

    def _read_language(self, features: Any) -> str:
        return str(self._codes[int(self._model.detect_language(features[:1])[0])])

    def _extract_features(self, clips: Sequence[Samples]) -> Any:
        """Compute mel spectrograms of 30 s each, shape (clips, bands, frames)."""
        arrays = [np.ascontiguousarray(clip, dtype=np.float32) for clip in clips]
        spectrograms = self._processor.feature_extractor(arrays, sampling_rate=RATE, return_tensors="pt")
        return spectrograms.input_features.to(self._model.device, self._model.dtype)

    def _decode_pieces(self, features: Any, batch: Sequence[slice], language: str) -> Iterator[tuple[str, list[Word]]]:
        """Yield the text and the words of every chunk."""
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        # Encode once, for the decoding and for the attention.
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
        for piece, hidden, sequence in zip(batch, encoded, sequences.tolist(), strict=True):
            # The words of each chunk, in the time of the recording.
            tokens = [token for token in sequence if token < tokenizer.eos_token_id]
            text = tokenizer.decode(tokens, clean_up_tokenization_spaces=False).strip()
            words: tuple[TimedWord, ...] = ()
            if tokens:
                attention = self._read_attention(hidden, tokens, language, piece.stop - piece.start)
                words = time_words(tokens, tokenizer, language, attention)
            begin = piece.start / RATE
            yield text, [Word(w.text, round(begin + w.start * STEP, 3), round(begin + w.end * STEP, 3)) for w in words]

    def _read_attention(self, hidden: Any, tokens: list[int], language: str, samples: int) -> NDArray[np.float32]:
        """Return the aligned heads' attention over the chunk while they predicted each token and the end."""
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        # Run the decoder over the finished text to see its attention.
        config = self._model.generation_config
        prompt = [
            config.decoder_start_token_id,
            config.lang_to_id[f"<|{language}|>"],
            config.task_to_id["transcribe"],
            config.no_timestamps_token_id,
        ]
        attentions = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=hidden[None]),
            decoder_input_ids=torch.tensor([prompt + tokens], device=self._model.device),
            output_attentions=True,
            use_cache=False,
        ).cross_attentions
        # Keep the heads that follow the audio, within the chunk's length.
        steps = max(1, round(samples / RATE / STEP))
        heads = [attentions[layer][0, head, len(prompt) - 1 :, :steps] for layer, head in config.alignment_heads]
        attention: NDArray[np.float32] = torch.stack(heads).float().cpu().numpy()
        return attention
