"""Information density: the average number of bits per content word.

The Shannon entropy, in bits, of the unigram distribution of all tokens that are not stop words. It ranges from 0 to
log2 of the number of these tokens, so it grows with the length of the text. `info_dens_norm` divides it by that bound
and ranges from 0 to 1; it falls slightly with length (one text, cut off at 100, 200, 400 and 726 tokens, scores 0.89,
0.87, 0.86 and 0.86). Texts of fewer than 100 tokens, or with hardly any function words, are not ranked. Higher is
denser. Tokens are lower-cased, and punctuation marks count as tokens. The stop words are a fixed list in the package.
Texts in languages other than English and Chinese are tokenised like English, without stop words, and flagged
(`language` is `other`); those without spaces between words, such as Japanese, are unscored.

Source: PodEval section 4.

Differs from the public code, which tokenises Chinese as English and depends on the version of NLTK's word list.
"""

from typing import Literal

from podeval.metrics import Key, Score, facts, metric
from podeval.metrics.text.distinct_n import write_token_notes
from podeval.text.language import read_tokens
from podeval.text.lexical_diversity import WINDOW, compute_information_density
from podeval.text.tokens import stop_words


@metric(
    name="info_dens",
    title="Information density",
    version="1.3",
    dimension="script.information_density",
    keys=(
        Key(
            "info_dens",
            "higher",
            "bits",
            (0, None),
            unreached=facts.LENGTH,
            about="entropy of the content words; grows with length",
        ),
        Key(
            "info_dens_norm",
            "higher",
            "",
            (0, 1),
            unreached=facts.LENGTH,
            about="entropy divided by its upper bound, log2 of the number of content words",
        ),
    ),
    paper="PodEval",
    caution=(
        "Nonsense wins: random letters have 9.5 bits where real scripts have 6.2. Both values depend on length, so "
        "compare texts of similar length; short texts and those with hardly any function words are not ranked."
    ),
    intended_use=(
        "Comparing how varied the content words of scripts are; in addition to judged quality, never instead of it."
    ),
    limitations=(
        "Frequencies come from the text itself: a short text repeats little and has few bits simply because it is "
        "short. Errors, noise and jargon raise the value. The stop words are a fixed list for English and Chinese."
    ),
)
def info_dens(text: str, *, language: Literal["auto", "en", "zh"] = "auto") -> Score:
    """Score one script or text.

    Args:
        text: the words of a script, or plain text.
        language: language of the text; `auto` detects it; see `podeval.text.language`.
    """
    tokens, written = read_tokens(text, language)
    keys = ("info_dens", "info_dens_norm")
    density = compute_information_density(tokens, frozenset() if written == "other" else stop_words(written))
    return Score(
        values={"info_dens": density.bits, "info_dens_norm": density.normalised},
        notes=write_token_notes(tokens, written, keys, len(tokens) < WINDOW) | {"tokens": density.tokens},
    )
