"""Sentence encoders equal a plain forward pass of their BERT, text by text (within 1e-5), through the real loading."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from podeval.errors import CannotScore, ModelMissing
from podeval.models import registry

TEXTS = ["the sea is salty", "rivers carry salt and keep it", "what", "does a human hear the sea " * 150]
CHINESE = ["海是咸的", "河带来盐"]


def states(folder: Path, text: str, longest: int) -> Any:
    """The last hidden states of a text alone, by transformers' own call."""
    from transformers import AutoTokenizer, BertModel

    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=longest, return_tensors="pt")
    model = BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokens).last_hidden_state[0].numpy()


def test_bert_s_first_token_in_both_languages(
    load_reference: Callable[..., Any], tiny_models: Any, tmp_path: Path
) -> None:
    english = tiny_models.bert(tmp_path / "english")
    chinese = tiny_models.bert(tmp_path / "chinese", words=" ".join("".join(CHINESE)), seed=1)
    encoder = load_reference(
        "sentence_encoder",
        {"google-bert/bert-base-uncased": english, "google-bert/bert-base-chinese": chinese},
    )
    assert encoder.languages == ("en", "zh")
    for language, folder, texts in (("en", english, TEXTS), ("zh", chinese, CHINESE)):
        found = encoder.encode(texts, language)
        expected = np.stack([states(folder, text, 512)[0] for text in texts])
        assert found.shape == (len(texts), 32)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not np.allclose(np.linalg.norm(found, axis=1), 1, atol=0.01)


def test_minilm_chosen_by_name_is_the_mean_over_tokens(
    load_reference: Callable[..., Any], tiny_models: Any, tmp_path: Path
) -> None:
    folder = tiny_models.bert(tmp_path / "minilm")
    name = "sentence-transformers/all-MiniLM-L6-v2"
    encoder = load_reference("sentence_encoder", {name: folder}, f"reference,sentence_encoder={name}")
    expected = np.stack([states(folder, text, 256).mean(axis=0) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS, "en"), expected, atol=1e-5)
    with pytest.raises(CannotScore, match="supports en, not zh"):
        encoder.encode(CHINESE, "zh")


def test_without_weights_the_command_is_named(hub_client: Any) -> None:
    registry.build_model.cache_clear()
    with pytest.raises(ModelMissing, match=r"BERT base .* run `podeval models install --profile reference`"):
        registry.load("sentence_encoder", "reference")


@pytest.mark.models
def test_the_embedded_encoder_hears_what_texts_are_about(weights_folder: Callable[[str], Path]) -> None:
    folder = weights_folder("all-minilm-l6-v2")
    texts = ["The ocean is salty.", "Sea water contains a lot of salt.", "My bicycle has a flat tyre."]
    found = registry.load("sentence_encoder", "embedded").encode(texts, "en")
    expected = np.stack([states(folder, text, 256).mean(axis=0) for text in texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert units[0] @ units[1] > 0.7
    assert units[0] @ units[2] < 0.2
