"""Moving-average type-token ratio (MATTR): how rich a text's vocabulary is, regardless of its length.

The share of distinct tokens in a window of 100 tokens, averaged over windows that advance by one token; 0 to 1, higher
is richer. Tokens are lower-cased; punctuation marks count as tokens. A text shorter than the window is treated as one
window, flagged `short` and not ranked; a text with hardly any function words (`function_words` in the notes) is not
ranked either. Texts in languages other than English and Chinese are tokenised like English, by spaces and punctuation,
and flagged (`language` is `other`); those without spaces between words, such as Japanese, are unscored.

Source: Covington and McFall 2010, as used by PodEval section 4.

Differs from the public code, which tokenises Chinese as English.
"""

from typing import Annotated, Literal

from podeval.metrics import Constraint, Key, Reach, Score, facts, metric
from podeval.metrics.text.distinct_n import make_token_timeline, write_token_notes
from podeval.text import lexical_diversity
from podeval.text.language import read_tokens


@metric(
    name="mattr",
    title="MATTR",
    version="1.2",
    dimension="script.vocabulary",
    keys=(
        Key(
            "mattr",
            "higher",
            "",
            (0, 1),
            about="distinct words divided by all words, in windows of 100",
            reach=Reach(facts.PODEVAL_TEXTS, people=(0.63, 0.63), systems=(0.63, 0.72)),
        ),
    ),
    paper="PodEval",
    caution=(
        "Nonsense wins: random letters score 1.0, and counting to 499 at the end raises a script from 0.64 to 0.76. "
        "Texts of fewer than 100 tokens, or with hardly any function words, are not ranked."
    ),
    intended_use="Comparing the vocabulary of scripts of any length; not a measure of quality.",
    limitations=(
        "Rare words raise it, whether used correctly or not. Inflected forms count as different words, so values of "
        "different languages or tokenisers are not comparable."
    ),
)
def mattr(
    text: str, *, window: Annotated[int, Constraint(least=1)] = 100, language: Literal["auto", "en", "zh"] = "auto"
) -> Score:
    """Score one script or text.

    Args:
        text: the words of a script, or plain text.
        window: number of tokens per window.
        language: language of the text; `auto` detects it; see `podeval.text.language`.
    """
    tokens, written = read_tokens(text, language)
    richness = lexical_diversity.compute_mattr(tokens, window)
    return Score(
        values={"mattr": richness.value},
        notes=write_token_notes(tokens, written, ("mattr",), richness.short),
        timeline=make_token_timeline("mattr", richness),
    )
