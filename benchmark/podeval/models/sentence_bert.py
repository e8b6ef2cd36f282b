"""Sentence embeddings from a BERT model in transformers: the vector of the first token, or the mean over tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from podeval.errors import CannotScore
from podeval.models.device import choose_device
from podeval.models.interfaces import SentenceEncoder
from podeval.models.pretrained import load_from_folder, load_pretrained

_GPU_BATCH, _CPU_BATCH = 128, 16


class SentenceBert(SentenceEncoder):
    """A sentence encoder with one model per language, each loaded on first use.

    Args:
        files: folders of models, or the files of a single model, by name.
        models: the model's name in `files`, by language.
        pooling: `first` takes the vector of the first token, as PodEval does; `mean` takes the mean over all tokens.
        longest: maximum number of tokens; longer texts are truncated.
    """

    def __init__(
        self,
        files: dict[str, Path],
        *,
        models: Mapping[str, str],
        pooling: Literal["first", "mean"],
        longest: int,
    ) -> None:
        self.languages = tuple(models)
        self._folders = {language: _find_folder(files[name]) for language, name in models.items()}
        self._pooling = pooling
        self._longest = longest
        self._loaded: dict[str, tuple[Any, Any]] = {}
        self._loading = Lock()

    def encode(self, texts: Sequence[str], language: str) -> NDArray[np.float32]:
        """Return one embedding per text, shape (texts, dimensions), not normalised.

        Raises:
            CannotScore: there is no model for the language.
        """
        tokenizer, model = self._load(language)
        size = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH
        embeddings = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
        # Texts of similar length share a batch, so little of it is padding.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        with torch.inference_mode():
            for start in range(0, len(texts), size):
                batch = order[start : start + size]
                tokens = tokenizer(
                    [texts[number] for number in batch],
                    padding=True,
                    truncation=True,
                    max_length=self._longest,
                    return_tensors="pt",
                ).to(model.device)
                states = model(**tokens).last_hidden_state
                embeddings[batch] = self._pool(states, tokens.attention_mask).cpu().numpy()
        return embeddings

    def _pool(self, states: Any, mask: Any) -> Any:
        if self._pooling == "first":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    def _load(self, language: str) -> tuple[Any, Any]:
        if language not in self._folders:
            raise CannotScore(f"this sentence encoder supports {', '.join(self.languages)}, not {language}")
        with self._loading:
            if language not in self._loaded:
                folder = self._folders[language]
                tokenizer = load_from_folder("AutoTokenizer", folder)
                model = load_pretrained("BertModel", folder, dtype=torch.float32, add_pooling_layer=False)
                self._loaded[language] = tokenizer, model
            return self._loaded[language]


def _find_folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent
