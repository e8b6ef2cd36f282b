"""Semantic diversity (Sem-Div): how far the parts of a text differ in meaning.

The text is cut into consecutive windows of 100 tokens, and a sentence encoder turns each into a vector; the score is
the mean of 1 − cosine over all pairs of windows. Range 0 to 2, higher is more diverse. Texts on one topic score about
0.1 with BERT and more with encoders trained to tell texts apart, so values from different encoders are not comparable.
The tokens of a window are joined by spaces, except in Chinese. Tokens after the last whole window are ignored.

Source: PodEval section 4, whose encoders the reference profile uses: BERT base (English, Chinese), with the vector of
the first token.

Differs from the public code, which drops the last whole window if the text ends with it, scores a text of fewer than
two windows as 0 instead of leaving it unscored (`variant="podeval"` does both; reproducing published values also
requires the reference profile's BERT), and tokenises Chinese as English. Other languages are unscored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import CannotScore, ModelMissing
from podeval.metrics import Key, Reach, Score, Timeline, facts, metric
from podeval.models import registry
from podeval.models.interfaces import SentenceEncoder
from podeval.text.language import read_tokens

WINDOW = 100
"""Length of a window in tokens."""

_NAMES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class EmbeddedText:
    """A text to be embedded by the models of a profile."""

    text: str
    profile: str = "embedded"

    def embeddings(self, parts: Sequence[str], language: str) -> NDArray[np.float32]:
        """Return sentence embeddings of parts of the text, shape (parts, dimensions), not normalised.

        Raises:
            ModelMissing: the profile has no sentence encoder for the language, or it is not installed.
        """
        encoder: SentenceEncoder = registry.load("sentence_encoder", self.profile)
        if language in encoder.languages:
            return encoder.encode(parts, language)
        able = [
            card
            for card in registry.CARDS
            if card.job == "sentence_encoder" and card.profiles and language in card.options["models"]
        ]
        hint = f"; use --profile {able[0].profiles[0]}, which has {able[0].title}" if able else ""
        raise ModelMissing(
            f"{registry.get_card('sentence_encoder', self.profile).title}, the sentence encoder of the profile "
            f"{self.profile}, does not support {_NAMES.get(language, language)}{hint}"
        )


@metric(
    name="semantic_div",
    title="Semantic diversity",
    version="1.2",
    dimension="script.semantic_diversity",
    keys=(
        Key(
            "semantic_div",
            "higher",
            "",
            (0, 2),
            about="mean distance in meaning between parts of 100 words",
            reach=Reach(facts.PODEVAL_TEXTS, people=(0.17, 0.17), systems=(0.13, 0.14), profile="reference"),
        ),
    ),
    needs=("sentence_encoder",),
    paper="PodEval",
    only_for="a text of two hundred words or more",
    intended_use="Comparing how widely scripts on the same topic range.",
    limitations=(
        "A text that wanders off its topic scores higher than one that stays on it. The encoder was trained on written"
        " English and represents meaning only as it appears in that data; languages other than English and Chinese are "
        "unscored."
    ),
)
def semantic_div(
    passage: EmbeddedText,
    *,
    variant: Literal["default", "podeval"] = "default",
    language: Literal["auto", "en", "zh"] = "auto",
) -> Score:
    """Score one script or text.

    Args:
        passage: the words of a script, or plain text, at least 200 tokens.
        variant: `default` uses every whole window; `podeval` drops the last one if the text ends with it, and scores a
            text of fewer than two windows as 0.
        language: language of the text; `auto` detects it; see `podeval.text.language`.
    """
    tokens, spoken = read_tokens(passage.text, language)
    if spoken == "other":
        raise CannotScore("the text is in neither English nor Chinese, and no sentence encoder here reads others")
    starts = range(0, len(tokens) - WINDOW + (variant == "default"), WINDOW)
    if len(starts) < 2:
        if variant == "podeval" and tokens:
            return Score(
                values={"semantic_div": 0.0},
                notes={"tokens": len(tokens), "windows": len(starts), "language": spoken, "short": True},
            )
        raise CannotScore(
            f"the text has {len(tokens)} tokens; parts of {WINDOW} are compared, so at least two of them are needed"
        )
    separator = "" if spoken == "zh" else " "
    windows = [separator.join(tokens[start : start + WINDOW]) for start in starts]
    distances = _distances(passage.embeddings(windows, spoken))
    return Score(
        values={"semantic_div": float(distances.mean())},
        notes={"tokens": len(tokens), "windows": len(windows), "language": spoken},
        timeline=Timeline(
            starts=list(starts),
            window=WINDOW,
            values={"semantic_div": [round(float(distance), 4) for distance in distances]},
            unit="tokens",
        ),
    )


def _distances(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each vector's mean of 1 − cosine with all others; the mean of these is the mean over distinct pairs."""
    units = embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return np.asarray(1.0 - (units @ units.sum(axis=0) - 1.0) / (len(units) - 1))
