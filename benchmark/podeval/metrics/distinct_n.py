"""Distinct-n: how little a text repeats its word pairs.

Distinct n-grams by all n-grams of a window of 100 tokens, averaged over windows sliding by one token; 0 to 1, higher is
more diverse. Tokens are lower-cased, punctuation counts. A text shorter than the window is one window and
flagged `short`.

Source: PodEval section 4 and PodAgent (n = 2).

Differs from the public code, which gives 0 to a text of fewer than 100 tokens (`variant="podeval"`), and which
tokenises Chinese as English.
"""

from typing import Literal

from podeval.metrics.declaration import Key, metric
from podeval.metrics.score import Score, Timeline
from podeval.text import richness
from podeval.text.tokens import detect_language, require_words, tokenise


@metric(
    name="distinct_n",
    title="Distinct-n",
    version="1.1",
    dimension="script.lexical_diversity",
    keys=(
        Key(
            "distinct_2",
            "higher",
            "",
            (0, 1),
            about="distinct by all word pairs (`distinct_3` for n = 3)",
        ),
    ),
    paper="PodEval",
)
def distinct_n(
    text: str,
    *,
    n: int = 2,
    window: int = 100,
    language: Literal["auto", "en", "zh"] = "auto",
    variant: Literal["default", "podeval"] = "default",
) -> Score:
    """Score one script or text.

    Args:
        text: the words of a script, or plain text.
        n: length of the n-grams; the key is named after it.
        window: tokens per window.
        language: of the text; `auto` tells Chinese from English by its characters.
        variant: `podeval` scores a text shorter than the window 0.
    """
    tokens = tokenise(text, detect_language(text) if language == "auto" else language)
    require_words(tokens)
    found = richness.distinct_n(tokens, n, window, short_is_zero=variant == "podeval")
    return Score(
        values={f"distinct_{n}": found.value},
        notes={"tokens": len(tokens), **({"short": True} if found.short else {})},
        timeline=token_timeline(f"distinct_{n}", found),
    )


def token_timeline(key: str, found: richness.WindowedRichness) -> Timeline:
    """Windows over a text: starts and window are in tokens, thinned to at most 300 points."""
    step = max(1, len(found.windows) // 300)
    return Timeline(
        starts=list(range(0, len(found.windows), step)),
        window=found.window,
        values={key: [round(float(value), 4) for value in found.windows[::step]]},
        unit="tokens",
    )
