"""Readers of text that strangers write, beyond those that `targets.py` has: each is given the whole text."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from podeval.arena.voting import clean_comment
from podeval.datasets.feeds import EpisodeLink
from podeval.datasets.http import is_loopback, strip_secrets
from podeval.errors import PodevalError, find_address
from podeval.judges.prompt import break_control_words, mark_for
from podeval.listening.listener_pages import clean_words as kept
from podeval.listening.webmushra import read_configuration
from podeval.metrics.checklists import Requirement, list_missing
from podeval.metrics.human_records import read_webmushra
from podeval.metrics.judge_use import note
from podeval.metrics.judged.content_density import describe_difference
from podeval.metrics.judged.script_quality import Item
from podeval.metrics.speech.pace import count_syllables
from podeval.metrics.spoken_dialogue import parse_criteria
from podeval.systems.dialogue_reader import estimate_seconds, make_speakable, split_into_short_lines, split_sentences
from podeval.text.characters import clean_text, fold_letters, keep_letters
from podeval.text.comparison.alignment import split_words
from podeval.text.comparison.content_differences import compare_entities
from podeval.text.comparison.matched_readings import write_as_in_script
from podeval.text.comparison.normalise import (
    compute_bracketed_share,
    convert_to_mainland,
    drop_bracketed,
    keep_spoken,
    normalise,
    simplify,
)
from podeval.text.dialogue_segments import join_utterances
from podeval.text.labelled_turns import read_labels
from podeval.text.language import identify_language, read_as
from podeval.text.markup import strip_surroundings, strip_tags, strip_times
from podeval.text.reasoning import strip_reasoning, strip_thoughts
from podeval.text.redaction import redact, redact_line
from podeval.text.script import Script, Turn, read_source
from podeval.text.script_format import count_length, rate_of
from podeval.text.subtitles import read_cues
from podeval.text.table_files import mark_formulas, unmark_formulas
from podeval.text.terminal_safe import make_printable
from podeval.text.tokens import detect_language, is_foreign, is_japanese, is_unspaced


def words(text: str) -> None:
    """Words by their number, and languages by their letters."""
    strip_reasoning(text)
    for read in (count_length, detect_language, is_foreign, is_unspaced, mark_formulas, unmark_formulas):
        read(text)


def compared_words(text: str) -> None:
    """Words as they are compared with what was heard, with their numbers said; half of them in Chinese."""
    split_words(text[: len(text) // 2])
    split_words(text[len(text) // 2 :], "zh")


def read_figures(text: str) -> None:
    """Figures, signs and names, read in every way on both sides of a comparison."""
    half = len(text) // 2
    write_as_in_script(text[:half], text[half:])
    with contextlib.suppress(PodevalError):
        script = Script.parse([{"speaker": "A", "text": text[:half]}])
        for language in ("en", "zh"):
            compare_entities(script, text[half:], language)


def compared(text: str) -> None:
    """A text in the other forms that transcripts are compared in."""
    for language, normaliser in (("en", "basic"), ("en", "lfs"), ("en", "none"), ("zh", "whisper"), ("zh", "lfs")):
        with contextlib.suppress(PodevalError):
            normalise(text, language, normaliser)
    compute_bracketed_share(text)
    convert_to_mainland(simplify(text))


def turns(text: str) -> None:
    """A script with labels, tags or the times of subtitles, as it enters and as its words are compared."""
    fold_letters(drop_bracketed(text))
    keep_spoken(text)
    for strip in (strip_tags, strip_surroundings, strip_times, strip_thoughts):
        strip(text)
    read_cues(clean_text(text))
    read_source(text)
    read_labels(clean_text(text))


def languages(text: str) -> None:
    """The language that a text is in, and how it is read."""
    identify_language(text)
    read_as(text)
    is_japanese(text)
    rate_of(text)


def heard(text: str) -> None:
    """Words with times, as a transcriber hears them."""
    join_utterances([(word, float(at), at + 0.5) for at, word in enumerate(text.split(" "))])


def speech(text: str) -> None:
    """Lines that engines are given to say, of a text as it stands."""
    split_sentences(text)
    split_into_short_lines(text, 200)
    estimate_seconds(text)


def said_plainly(text: str) -> None:
    """What of a text engines can say."""
    assert "\x00" not in make_speakable(text)


def judged(text: str) -> None:
    """Material for a judge."""
    whole = break_control_words(text)
    # No input of the fuzzer is longer; a megabyte is not read twice.
    assert break_control_words(whole[:20_000]) == whole[:20_000]
    mark_for({"script": whole})


def quoted(text: str) -> None:
    """What a judge quotes of it."""
    keep_letters(text)
    list_missing([text[:500], text], Script((Turn("1", text),)))


def injected(text: str) -> None:
    """Material that may speak to its judge."""
    assert note({text: "script"}).keys() <= {"spoke_to_the_judge"}


def divided(text: str) -> None:
    """An answer and the clauses that a judge divides it into, and criteria as prompts list them."""
    describe_difference(text, f"x {text[::-1]}")
    parse_criteria(text)
    # Pydantic calls these with what a judge wrote.
    Requirement._kind_from_tag({"requirement": text})  # type: ignore[operator]
    # As above.
    Item._as_the_paper_writes({"reason": text, "score": text})  # type: ignore[operator]


def shown(text: str) -> None:
    """Reasons, lines of logs and names as they are shown, to everybody and on a terminal."""
    assert len(redact(text)) < 10_000
    assert len(redact_line(text)) < 10_000
    assert "\x1b" not in make_printable(text)


def syllables(text: str) -> None:
    """Words whose syllables are counted."""
    for language in ("en", "zh"):
        assert count_syllables(text[:20_000], language) >= 0


def comment(text: str) -> None:
    """What voters and listeners write."""
    clean_comment(text)
    kept(text)


def listening_test(text: str) -> None:
    """Configurations of webMUSHRA."""
    _read_from_file(text, read_configuration)


def listening_marks(text: str) -> None:
    """Results of webMUSHRA."""
    _read_from_file("session_uuid,trial_id,rating_stimulus,rating_score\n" + text, read_webmushra)


def _read_from_file(text: str, read: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.yaml"
        path.write_text(text, encoding="utf-8", errors="replace")
        with contextlib.suppress(PodevalError):
            read(path)


def link(text: str) -> None:
    """Links to episodes, addresses, and what is refused of them."""
    for address in (text, f"https://podcasts.apple.com/us/podcast/{text}/id1?i=1", f"https://{text}"):
        with contextlib.suppress(PodevalError):
            EpisodeLink.parse(address)
        with contextlib.suppress(ValueError):
            is_loopback(address)
        strip_secrets(address)
        find_address(address)
