"""Podcast checks: whether a recording is a whole podcast, a condition for ranking systems that write their own words.

Without a script there is no error rate, so four facts about the recording are checked instead: at least half of it is
speech; at least three quarters of the words are in the requested language; at most a fifth of the words are
repetitions; and it lasts at least half a minute, or half of the requested length. `passed` is 1 if all four are true,
otherwise 0, and a benchmark ranks a system only if at least 95 % of its items pass. A word counts as a repetition if it
is part of a run of eight words that occurred anywhere earlier in the recording; the stretches are listed with their
times. A fifth is allowed because refrains, trailers and slogans are repeated too. None of these values means that a
podcast is good.

Differs from PodEval, which compares finished podcasts without any such check.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podeval.errors import CannotScore
from podeval.metrics import Key, Score, Unscored, facts, metric
from podeval.models.interfaces import Word
from podeval.recording import Recording, speech_track
from podeval.recording.defects import TimedDefect
from podeval.text.characters import keep_letters
from podeval.text.language import identify_language
from podeval.text.podcast_request import PodcastRequest

LEAST_SPEECH = 0.5
LEAST_LANGUAGE = 0.75
MOST_REPEATED = 0.2
LEAST_MINUTES = 0.5
LEAST_OF_ASKED = 0.5
"""Share of the shortest requested length that a podcast must reach."""

RUN = 8
"""Number of consecutive words that count as a repetition."""

SHOWN = 80
"""Number of characters of a stretch that are quoted in its note."""


@dataclass(frozen=True)
class Repetition:
    """Words `start` to `end` of a transcript, which repeat earlier words from the word `first` on."""

    start: int
    end: int
    first: int


@metric(
    name="podcast_checks",
    title="Podcast checks",
    version="1.0",
    dimension="podcast.checks",
    keys=(
        Key(
            "passed",
            "higher",
            "",
            (0, 1),
            about="whether all four checks are passed",
            ranked=False,
            percent=True,
            unreached=facts.NEW,
        ),
        Key(
            "speech_share",
            "informative",
            "",
            (0, 1),
            about="share of the time that is speech",
            percent=True,
            unreached=facts.NEW,
        ),
        Key(
            "language_share",
            "informative",
            "",
            (0, 1),
            about="share of the words in the requested language",
            percent=True,
            unreached=facts.NEW,
            only_for="a request for a language",
        ),
        Key(
            "repeated_share",
            "informative",
            "",
            (0, 1),
            about="share of the words that are repeated",
            percent=True,
            unreached=facts.NEW,
        ),
        Key("minutes", "informative", "min", (0, None), about="duration of the podcast", unreached=facts.NEW),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    paper="ours",
    intended_use="Keeping recordings that are not whole podcasts out of the ranking of finished podcasts.",
    limitations=(
        "It detects emptiness, a wrong language, repetition and brevity, and nothing else: nonsense of the right "
        "length passes. The words come from a transcriber, whose own loops and errors count, and a language that it "
        "does not support is not identified."
    ),
)
def podcast_checks(recording: Recording, request: PodcastRequest) -> Score:
    """Score one recording.

    Args:
        recording: a podcast, 16 kHz.
        request: the request for the podcast: its language, and its length if one was requested.
    """
    recording.require_sound()
    track = recording.speech_track()
    speech = sum(span.duration for span in track.speech())
    words = track.transcript().words if speech else ()
    if not words:
        raise CannotScore("no words are heard in the recording")
    minutes, share = recording.duration / 60, min(1.0, speech / recording.duration)
    repetitions = find_repetitions([word.text for word in words])
    repeated = sum(each.end - each.start for each in repetitions) / len(words)
    language = identify_language(track.transcript().text)
    in_language = language.shares.get(request.language, 0.0) if request.language and language.code else None
    least = max(LEAST_MINUTES, LEAST_OF_ASKED * request.minutes.least) if request.minutes else LEAST_MINUTES
    failed = {
        f"only {share:.0%} of it is speech, but at least {LEAST_SPEECH:.0%} should be": share < LEAST_SPEECH,
        f"its words are in {language.words}, not in the requested language": (
            in_language is not None and in_language < LEAST_LANGUAGE
        ),
        f"{repeated:.0%} of its words are repeated, but at most {MOST_REPEATED:.0%} may be": repeated > MOST_REPEATED,
        f"it lasts {minutes:.1f} minutes, but at least {least:g} are needed": minutes < least,
    }
    unknown = request.language and in_language is None
    return Score(
        values={
            "passed": float(not any(failed.values())),
            "speech_share": share,
            "language_share": in_language,
            "repeated_share": repeated,
            "minutes": minutes,
        },
        notes={
            "failed": [sentence for sentence, holds in failed.items() if holds],
            "defects": [_describe(each, words).to_json() for each in repetitions],
            **(
                {"language_share_unscored": Unscored("its language cannot be determined", "ours").to_json()}
                if unknown
                else {}
            ),
            **track.notes,
        },
    )


def find_repetitions(words: Sequence[str]) -> list[Repetition]:
    """Find the stretches of at least `RUN` words that were said before, in order; each word counts once.

    A stretch continues as long as the words follow each other in the same order as before. Each stretch is compared
    with the most recent earlier occurrence of its first words.
    """
    plain = [keep_letters(word) for word in words]
    seen: dict[tuple[str, ...], int] = {}
    repetitions: list[Repetition] = []
    covered = 0
    for at in range(len(plain) - RUN + 1):
        first = seen.get(tuple(plain[at : at + RUN]))
        # The index ends where the run begins, so that no run is compared with a part of itself.
        if (ready := at - RUN + 1) >= 0:
            seen[tuple(plain[ready : ready + RUN])] = ready
        if first is None or at < covered:
            continue
        end = at + RUN
        while end < len(plain) and plain[end] == plain[first + end - at]:
            end += 1
        repetitions.append(Repetition(at, end, first))
        covered = end
    return repetitions


def _describe(each: Repetition, words: Sequence[Word]) -> TimedDefect:
    quote = " ".join(word.text.strip() for word in words[each.start : each.end])
    quote = quote if len(quote) <= SHOWN else f"{quote[:SHOWN]}…"
    before = words[each.start].start - words[each.first].start
    return TimedDefect(
        "said_again",
        words[each.start].start,
        words[each.end - 1].end,
        heard=f"repeats what was said {before:.0f} s earlier: {quote}",
    )
