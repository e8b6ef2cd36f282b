"""Distinct-n: how rarely a text repeats its word pairs.

The number of distinct n-grams divided by the number of all n-grams in a window of 100 tokens, averaged over windows
that slide by one token; 0 to 1, higher is more diverse. Tokens are lower-cased; punctuation marks count as tokens. A
text shorter than the window is treated as one window, flagged `short` and not ranked; a text with hardly any function
words (`function_words` in the notes) is not ranked either. Texts in languages other than English and Chinese are
tokenised like English, by spaces and punctuation, and flagged (`language` is `other`); those without spaces between
words, such as Japanese, are unscored.

Source: PodEval section 4 and PodAgent (n = 2).

Differs from the public code, which scores a text of fewer than 100 tokens as 0 (`variant="podeval"`) and tokenises
Chinese as English.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from podeval.metrics import UNRANKED, Constraint, Key, Reach, Score, Timeline, facts, metric
from podeval.text import lexical_diversity
from podeval.text.language import read_tokens
from podeval.text.tokens import stop_words

MOST_POINTS = 300
"""Maximum number of points in a timeline over tokens."""

FEWEST_FUNCTION_WORDS = {"en": 0.15, "zh": 0.08}
"""Minimum share of function words in a text that reads like speech, by language."""

SHORT = "the text is shorter than a window, of 100 tokens by default"
SENSELESS = "hardly any of its words are function words, unlike in any text that a person would say"


@metric(
    name="distinct_n",
    title="Distinct-n",
    version="1.2",
    dimension="script.lexical_diversity",
    keys=(
        Key(
            "distinct_2",
            "higher",
            "",
            (0, 1),
            about="distinct word pairs divided by all word pairs (`distinct_3` for n = 3)",
            reach=Reach(facts.PODEVAL_TEXTS, people=(0.92, 0.92), systems=(0.91, 0.97)),
        ),
    ),
    paper="PodEval",
    caution=(
        "Nonsense wins: random letters score 1.0, above every real script, and so do three words. Texts of fewer than "
        "100 tokens, or with hardly any function words, are therefore not ranked; a text that is ranked may still be "
        "nonsense."
    ),
    intended_use=(
        "Comparing scripts of similar length, or versions of one script; not for judging whether a script is good."
    ),
    limitations=(
        "Repetition may be intended: a refrain, a running joke, the names of speakers. A text shorter than a window is"
        " scored as one window. English and Chinese are tokenised differently, so values of the two languages are not "
        "comparable."
    ),
)
def distinct_n(
    text: str,
    *,
    n: Annotated[int, Constraint(least=1)] = 2,
    window: Annotated[int, Constraint(least=1)] = 100,
    language: Literal["auto", "en", "zh"] = "auto",
    variant: Literal["default", "podeval"] = "default",
) -> Score:
    """Score one script or text.

    Args:
        text: the words of a script, or plain text.
        n: length of the n-grams; the key is named after it.
        window: number of tokens per window.
        language: language of the text; `auto` detects it; see `podeval.text.language`.
        variant: `podeval` gives a text shorter than the window a score of 0.
    """
    tokens, written = read_tokens(text, language)
    richness = lexical_diversity.compute_distinct_n(tokens, n, window, short_is_zero=variant == "podeval")
    return Score(
        values={f"distinct_{n}": richness.value},
        notes=write_token_notes(tokens, written, (f"distinct_{n}",), richness.short),
        timeline=make_token_timeline(f"distinct_{n}", richness),
    )


def write_token_notes(tokens: Sequence[str], language: str, keys: Sequence[str], short: bool) -> dict[str, object]:
    """Return notes on the tokens of a text: their number, whether there are too few, and whether they are words at all.

    The notes name the language if it is neither English nor Chinese. Values of short texts, and of texts with hardly
    any function words, are not ranked.

    Args:
        tokens: the text's tokens.
        language: language that the text was tokenised as: `en`, `zh` or `other`.
        keys: the metric's keys.
        short: whether the text is too short for its value to be compared.
    """
    notes: dict[str, object] = {"tokens": len(tokens), **({"short": True} if short else {})}
    reason = SHORT if short else ""
    if language == "other":
        notes["language"] = language
    else:
        words = [token for token in tokens if any(map(str.isalnum, token))]
        share = sum(word in stop_words(language) for word in words) / len(words) if words else 0.0
        notes["function_words"] = round(share, 3)
        if share < FEWEST_FUNCTION_WORDS[language]:
            reason = reason or SENSELESS
    return notes | ({UNRANKED: dict.fromkeys(keys, reason)} if reason else {})


def make_token_timeline(key: str, richness: lexical_diversity.WindowedRichness) -> Timeline:
    """Return the timeline of windows over a text, thinned to at most `MOST_POINTS`; starts and window are in tokens."""
    step = max(1, math.ceil(len(richness.windows) / MOST_POINTS))
    return Timeline(
        starts=list(range(0, len(richness.windows), step)),
        window=richness.window,
        values={key: [round(float(value), 4) for value in richness.windows[::step]]},
        unit="tokens",
    )
