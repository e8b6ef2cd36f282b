"""Semantic diversity: the plain double loop over windows, windows as the papers cut them, both languages, refusals."""

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.measuring.compute import compute
from podeval.metrics import catalogue
from podeval.metrics.text.semantic_div import EmbeddedText
from podeval.models import registry

WORDS = ("sea", "salt", "river", "rock", "rain", "wind", "sun", "moon", "star", "tree", "leaf", "root", "bird", "fish")


class Encoder:
    """A vector a text from the counts of its words, so that every value can be worked out by hand."""

    languages = ("en", "zh")

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str]] = []

    def encode(self, texts: Sequence[str], language: str) -> Any:
        self.asked.append((list(texts), language))
        counted = [[text.count(word) for word in (*WORDS, "海", "盐", "河")] for text in texts]
        return np.asarray(counted, dtype=np.float32) + 1


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    made = Encoder()
    monkeypatch.setattr(registry, "load", lambda job, profile: made)
    return made


def text(tokens: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, size=tokens))


def score(words: str, **parameters: Any) -> Any:
    return catalogue.get("semantic_div")({"passage": EmbeddedText(words)}, parameters)


@pytest.mark.parametrize("tokens", [200, 299, 300, 1_040])
def test_the_mean_over_pairs_of_windows(encoder: Encoder, tokens: int) -> None:
    words = text(tokens)
    found = score(words)
    windows = [" ".join(words.split()[start : start + 100]) for start in range(0, tokens - 99, 100)]
    assert encoder.asked == [(windows, "en")]
    vectors = Encoder().encode(windows, "en").astype(float)

    def distance(a: Any, b: Any) -> float:
        return 1 - float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))

    expected = np.mean([distance(a, b) for a, b in combinations(vectors, 2)])
    assert found.values["semantic_div"] == pytest.approx(expected, abs=1e-9)
    assert found.notes == {"tokens": tokens, "windows": len(windows), "language": "en"}
    timeline = found.timeline
    assert (timeline.unit, timeline.window, timeline.starts) == ("tokens", 100, [100 * n for n in range(len(windows))])
    first = np.mean([distance(vectors[0], other) for other in vectors[1:]])
    assert timeline.values["semantic_div"][0] == pytest.approx(first, abs=1e-4)


@pytest.mark.parametrize(("tokens", "windows"), [(300, 2), (301, 3), (399, 3), (400, 3)])
def test_the_public_code_drops_a_last_window_that_ends_with_the_text(
    encoder: Encoder, tokens: int, windows: int
) -> None:
    """`range(0, N - 100, 100)`, as PodEval's code has it."""
    assert score(text(tokens), variant="podeval").notes["windows"] == windows == len(range(0, tokens - 100, 100))


def test_texts_that_repeat_themselves_have_none(encoder: Encoder) -> None:
    assert score(" ".join(WORDS[:10] * 30)).values["semantic_div"] == pytest.approx(0, abs=1e-9)


def test_chinese_tokens_are_joined_by_nothing(encoder: Encoder) -> None:
    found = score("海水是咸的，因为河水带来盐。" * 40)
    (asked, language) = encoder.asked[0]
    assert language == found.notes["language"] == "zh"
    assert len(asked) == found.notes["windows"] > 2
    assert all(" " not in window for window in asked)
    assert score(text(200), language="zh").notes["language"] == "zh"


@pytest.mark.parametrize(("tokens", "variant"), [(199, "default"), (0, "default"), (0, "podeval")])
def test_fewer_than_two_windows_are_refused(encoder: Encoder, tokens: int, variant: str) -> None:
    found = score(text(tokens), variant=variant)
    assert found.cause == "system"
    assert found.reason.startswith(f"the text has {tokens} tokens; parts of 100 are compared")


@pytest.mark.parametrize(("tokens", "windows"), [(1, 0), (199, 1), (200, 1)])
def test_the_podeval_variant_gives_fewer_than_two_windows_0(encoder: Encoder, tokens: int, windows: int) -> None:
    found = score(text(tokens), variant="podeval")
    assert found.values == {"semantic_div": 0.0}
    assert found.notes == {"tokens": tokens, "windows": windows, "language": "en", "short": True}
    assert encoder.asked == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Море солёное. " * 200, "neither English nor Chinese"),
        ("海は塩辛い。" * 200, "does not separate words by spaces"),
    ],
)
def test_a_language_that_no_encoder_reads_is_unscored(encoder: Encoder, words: str, reason: str) -> None:
    found = score(words)
    assert reason in found.reason
    assert encoder.asked == []


def test_chinese_without_an_encoder_says_who_has_one() -> None:
    found = score("海水是咸的，因为河水带来盐。" * 40)
    assert found.cause == "ours"
    if "not installed" not in found.reason:
        assert found.reason.endswith(
            "does not support Chinese; use --profile reference, which has BERT base (uncased English, Chinese)"
        )


@pytest.mark.models
def test_the_embedded_encoder_tells_one_topic_from_three() -> None:
    if reason := registry.get_card("sentence_encoder", "embedded").missing():
        pytest.skip(reason)
    sea = "Rivers carry dissolved salt into the ocean, and evaporation leaves the salt behind in the water. "
    bike = "My bicycle chain broke on the way to work, so I repaired the wheel and pumped up the tyres. "
    soup = "Chop the onions finely, fry them in butter, add carrots and stock, and let the soup simmer. "
    one, three = score(sea * 36), score(sea * 12 + bike * 12 + soup * 12)
    assert one.values["semantic_div"] < 0.1
    assert three.values["semantic_div"] > 0.4


def test_bert_of_the_reference_profile(load_reference: Callable[..., Any], tiny_models: Any, tmp_path: Path) -> None:
    """The formula on a plain forward pass of the same weights, within 1e-5; their commits are in the protocol."""
    import torch
    from transformers import AutoTokenizer, BertModel

    english = tiny_models.bert(tmp_path / "english", words=" ".join(WORDS))
    chinese = tiny_models.bert(tmp_path / "chinese", words="海 水 是 咸 的", seed=1)
    repos = {"google-bert/bert-base-uncased": english, "google-bert/bert-base-chinese": chinese}
    load_reference("sentence_encoder", repos)
    words = text(350)
    metric = catalogue.get("semantic_div")
    passage = EmbeddedText(words, "reference")
    found = compute(metric, [{"passage": passage}], input_names=("passage",), profile="reference")

    tokenizer, model = AutoTokenizer.from_pretrained(english), BertModel.from_pretrained(english).eval()
    windows = [" ".join(words.split()[start : start + 100]) for start in (0, 100, 200)]
    with torch.no_grad():
        vectors = [model(**tokenizer(w, return_tensors="pt")).last_hidden_state[0, 0].numpy() for w in windows]
    units = [vector / np.linalg.norm(vector) for vector in vectors]
    expected = np.mean([1 - a @ b for a, b in combinations(units, 2)])
    assert found["semantic_div"] == pytest.approx(expected, abs=1e-5)
    assert found["protocol"]["models"]["sentence_encoder"]["revision"] == {
        "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
        "google-bert/bert-base-chinese": "8f23c25b06e129b6c986331a13d8d025a92cf0ea",
    }
    other = metric({"passage": EmbeddedText("海水是咸的" * 60, "reference")})
    assert other.notes["language"] == "zh"
