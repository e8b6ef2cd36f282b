"""PodEval's turn-taking clips: its published examples come out exactly, its rules one by one, its crash not at all."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.errors import BadInput
from podeval.text.dialogue_segments import (
    DialogueClip,
    Segment,
    Selection,
    attribute_to_speakers,
    cut_dialogue_clips,
    explain_no_clips,
    join_utterances,
    parse_diarised,
    select_clips,
)

TRANSCRIPT = """\
[Speaker Ann] [0.00-4.00]:  One.
[Speaker Ann] [4.00-6.00]:  Two.
[Speaker Ann] [6.00-8.00]:  Three.
[Speaker Ann] [8.00-9.50]:  Four.
[Speaker Ben] [10.00-12.00]:  Five.
[Speaker Ben] [12.00-13.00]:
[Speaker Ben] [13.00-14.00]:  Seven.
[Speaker Cleo] [14.00-24.50]:  Eight, and long.
[Speaker Cleo] [24.50-25.00]:  Nine.
[Speaker Ann] [26.00-27.00]:  Ten.
"""


def shown(clip: DialogueClip) -> tuple[float, float, str, str, str]:
    return clip.start, clip.end, clip.first_speaker, clip.second_speaker, clip.text


@pytest.mark.parametrize("episode", ["Arts_19", "Arts_20", "Arts_21"])
def test_the_published_clips_come_out_exactly(shared_data: Path, episode: str) -> None:
    folder = shared_data / "podeval/real_pod/example_processed" / episode
    published = json.loads((folder / "clips_info.json").read_text("utf-8"))["clips"]
    clips = cut_dialogue_clips(parse_diarised((folder / "diarized_transcription.txt").read_text("utf-8")))
    keys = ("time_range", "first_speaker", "second_speaker", "text")
    assert [clip.to_json() for clip in clips] == [{key: clip[key] for key in keys} for clip in published]
    assert [(clip.number, clip.file_name) for clip in clips] == [(c["dialog_id"], c["audio_file"]) for c in published]


def test_a_clip_takes_three_segments_back_and_two_forward() -> None:
    first, *_ = cut_dialogue_clips(parse_diarised(TRANSCRIPT))
    assert shown(first) == (4.0, 13.0, "Ann", "Ben", "Two. Three. Four. Five.")


def test_a_side_ends_with_the_segment_that_passes_ten_seconds() -> None:
    _, second, third = cut_dialogue_clips(parse_diarised(TRANSCRIPT))
    assert shown(second) == (10.0, 24.5, "Ben", "Cleo", "Five. Seven. Eight, and long.")
    # Nine alone is short, so Eight is added; together they pass ten seconds.
    assert shown(third) == (14.0, 27.0, "Cleo", "Ann", "Eight, and long. Nine. Ten.")
    segments = [Segment("Ann", start, start + 6.0, f"{start}") for start in (0.0, 6.0, 12.0)]
    (clip,) = cut_dialogue_clips([*segments, Segment("Ben", 18.0, 19.0, "yes")])
    assert (clip.start, clip.text) == (6.0, "6.0 12.0 yes")


def test_exactly_ten_seconds_are_not_more_than_ten() -> None:
    segments = [Segment("Ann", 0.0, 5.0, "a"), Segment("Ann", 5.0, 15.0, "b"), Segment("Ben", 15.0, 16.0, "c")]
    assert cut_dialogue_clips(segments)[0].start == 0.0
    assert cut_dialogue_clips(segments, most_seconds=9.99)[0].start == 5.0


def test_the_limits_are_the_caller_s() -> None:
    clip = cut_dialogue_clips(parse_diarised(TRANSCRIPT), back=1, forward=3)[0]
    assert shown(clip) == (8.0, 14.0, "Ann", "Ben", "Four. Five. Seven.")
    with pytest.raises(BadInput, match="at least one segment per side"):
        cut_dialogue_clips([], back=0)


def test_a_transcript_survives_line_ends_marks_and_what_stands_in_names_and_texts() -> None:
    text = (
        "\ufeff\r\n[Speaker Dr. A [host]] [0-1.5]: he said: [Speaker X] [3.00-4.00]: no\r\n\r\n"
        "  [Speaker Łu 二] [1.50 - 3.]:a\u2028b\r[Speaker 0] [3.00-3.00]:"
    )
    assert parse_diarised(text) == [
        Segment("Dr. A [host]", 0.0, 1.5, "he said: [Speaker X] [3.00-4.00]: no"),
        Segment("Łu 二", 1.5, 3.0, "a\u2028b"),
        Segment("0", 3.0, 3.0, ""),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[Speaker ] [1.00-2.00]: a", r"line 3 is not of the form \[Speaker NAME\] \[start-end\]: text"),
        ("Speaker A [1.00-2.00]: a", "line 3 is not of the form"),
        ("[Speaker A] [00:01-00:02]: a", "line 3 is not of the form .*times in seconds"),
        ("[Speaker A] [nan-inf]: a", "line 3 is not of the form"),
        ("[Speaker A] [2.00-1.00]: a", "line 3 ends .1.00 s. before it starts .2.00 s.; correct its times"),
        (f"[Speaker A] [1-{'9' * 400}]: a", "line 3 ends"),
        ("[Speaker A] [0.50-2.00]: a", "line 3 begins at 0.50 s, before the line above it at 1.00 s; put the lines"),
    ],
)
def test_a_bad_line_is_named(line: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_diarised(f"[Speaker A] [1.00-2.00]: fine\n\n{line}\n")


def test_a_transcript_without_lines_is_refused() -> None:
    with pytest.raises(BadInput, match="the transcript is empty"):
        parse_diarised("\ufeff \n\r\n")


TIMES = st.integers(0, 400).map(lambda centiseconds: centiseconds / 100)
NAMES = st.text("ab ]:[-", min_size=1, max_size=4).map(str.strip).filter(bool)
SEGMENTS = st.lists(st.tuples(NAMES, TIMES, TIMES, st.text(max_size=8)), min_size=1, max_size=12).map(
    lambda rows: [
        Segment(speaker, start := 3.0 * number + first, start + length, " ".join(text.split()))
        for number, (speaker, first, length, text) in enumerate(rows)
    ]
)


@given(SEGMENTS)
def test_what_is_written_is_read_back(segments: list[Segment]) -> None:
    segments = [
        Segment(s.speaker, round(s.start, 2), round(s.end, 2), s.text)
        for s in sorted(segments, key=lambda segment: segment.start)
    ]
    assert parse_diarised("\n".join(segment.to_line() for segment in segments)) == segments


@given(SEGMENTS)
def test_there_is_a_clip_for_every_change_of_speaker(segments: list[Segment]) -> None:
    clips = cut_dialogue_clips(segments)
    changes = [(a.speaker, b.speaker) for a, b in pairwise(segments) if a.speaker != b.speaker]
    assert [(clip.first_speaker, clip.second_speaker) for clip in clips] == changes
    assert bool(clips) == (explain_no_clips(segments) is None)


def clips_lasting(*seconds: float) -> list[DialogueClip]:
    return [DialogueClip(n, 100.0 * n, 100.0 * n + length, "A", "B", str(n)) for n, length in enumerate(seconds, 1)]


def test_clips_within_the_limits_are_drawn_in_order_of_time() -> None:
    clips = clips_lasting(14, 15, 16, 20, 24, 25, 26)
    draws = {select_clips(clips, 3, seed=seed).clips for seed in range(30)}
    assert len(draws) > 5
    for draw in draws:
        assert [clip.number for clip in draw] == sorted({clip.number for clip in draw})
        assert len(draw) == 3
        assert all(15 <= clip.duration <= 25 for clip in draw)
    assert select_clips(clips, 3, seed=4) == select_clips(clips, 3, seed=4)
    assert select_clips(clips, 5).clips == tuple(clips[1:6])


def test_the_limits_widen_until_enough_clips_fit_or_the_ends_are_reached() -> None:
    clips = clips_lasting(20, 12.5, 40, 3)
    assert select_clips(clips, 2) == Selection(tuple(clips[:2]), 2, 2, 12.0, 28.0, 0)
    assert select_clips(clips, 3) == Selection(tuple(clips[:2]), 3, 2, 5.0, 35.0, 0)
    # PodEval's code begins at 10 to 30 s and stops at 5 to 35 s.
    assert select_clips(clips_lasting(4, 5, 36), 2, min_seconds=10, max_seconds=30).max_seconds == 35
    # An end that is there already keeps both where they are.
    assert select_clips(clips_lasting(20, 30), 2, min_seconds=5, max_seconds=25).max_seconds == 25


def test_a_length_is_what_its_two_digits_say() -> None:
    (clip,) = cut_dialogue_clips([Segment("A", 7.02, 15.0, "a"), Segment("B", 15.0, 32.02, "b")])
    assert clip.end - clip.start != 25.0
    assert select_clips([clip], 1).eligible == 1


@given(
    st.lists(st.floats(0, 60), max_size=12),
    st.integers(1, 15),
    st.floats(0, 40),
    st.floats(0, 40),
    st.integers(),
)
def test_a_selection_never_crashes(lengths: list[float], count: int, one: float, other: float, seed: int) -> None:
    clips = clips_lasting(*lengths)
    low, high = sorted((one, other))
    selection = select_clips(clips, count, min_seconds=low, max_seconds=high, seed=seed)
    assert len(selection.clips) == min(count, selection.eligible)
    assert set(selection.clips) <= set(clips)
    assert all(selection.min_seconds <= clip.duration <= selection.max_seconds for clip in selection.clips)
    assert selection.min_seconds <= low
    assert selection.max_seconds >= high


@pytest.mark.parametrize(("low", "high"), [(5, 4), (-1, 4), (1, float("inf")), (float("nan"), 4)])
def test_limits_that_nothing_meets_are_refused(low: float, high: float) -> None:
    with pytest.raises(BadInput, match="choose different limits"):
        select_clips([], 1, min_seconds=low, max_seconds=high)
    with pytest.raises(BadInput, match="at least one clip"):
        select_clips([], 0)


@pytest.mark.parametrize(
    ("speaker", "safe"),
    [("SPEAKER_02", "SPEAKER_02"), ("../a b/c", "_a_b_c"), ("..", "_"), ("-x", "x"), ("声" * 60, "声" * 20)],
)
def test_a_file_name_is_safe_whatever_a_speaker_is_called(speaker: str, safe: str) -> None:
    clip = DialogueClip(7, 1.0, 12.345, speaker, "B", "")
    assert clip.file_name == f"dialog_7_{safe}-B_1.00-12.35.wav"
    assert len(clip.file_name.encode()) < 255


def timed(*words: str, step: float = 0.5) -> list[tuple[str, float, float]]:
    return [(word, number * step, (number + 1) * step) for number, word in enumerate(words)]


def test_utterances_end_with_sentences_but_not_with_abbreviations() -> None:
    words = timed("Hi", "Dr.", "J.", "Ray!”", "It", "is", "3.5", "e.g.", "today?", "Yes")
    assert [said.text for said in join_utterances(words)] == ["Hi Dr. J. Ray!”", "It is 3.5 e.g. today?", "Yes"]


def test_utterances_end_before_pauses_and_at_thirty_seconds() -> None:
    said = join_utterances([("a", 0.0, 1.0), ("b", 1.5, 2.004), ("c", 2.51, 3.0), ("d", 3.0, 3.0)])
    assert [(u.text, u.start, u.end) for u in said] == [("a b", 0.0, 2.0), ("c d", 2.51, 3.0)]
    assert [len(u.text.split()) for u in join_utterances(timed(*["so"] * 130))] == [60, 60, 10]
    assert join_utterances([]) == []


def test_chinese_words_are_joined_without_spaces_and_hyphens_without_gaps() -> None:
    assert (
        join_utterances(timed("你", "好，", "podcast", "听众。", "hydro", "-thermal", "at", "-5"))[0].text
        == "你好，podcast听众。"
    )
    assert join_utterances(timed("hydro", "-thermal", "at", "-5"))[0].text == "hydro-thermal at -5"


def test_an_utterance_goes_to_the_speaker_who_overlaps_it_longest() -> None:
    said = join_utterances([("One.", 0.0, 4.0), ("Two.", 4.0, 8.0), ("Three.", 20.0, 21.0), ("Four.", 30.0, 31.0)])
    turns = [("B", 3.0, 5.6), ("A", 0.0, 3.0), ("B", 7.6, 8.0), ("C", 5.6, 7.7), ("A", 8.0, 20.0), ("D", 29.0, 40.0)]
    segments, nobody = attribute_to_speakers(said, turns)
    # Two: B has 1.6 and 0.4 s in two turns, C 2.1 s in one.
    assert [(segment.text, segment.speaker) for segment in segments] == [("One.", "A"), ("Two.", "C"), ("Four.", "D")]
    assert [utterance.text for utterance in nobody] == ["Three."]
    assert attribute_to_speakers(said, []) == ([], said)


@given(
    st.lists(st.tuples(TIMES, TIMES), max_size=8),
    st.lists(st.tuples(st.sampled_from("ABC"), TIMES, TIMES), max_size=10),
)
def test_attribution_equals_a_look_at_every_turn(
    spans: list[tuple[float, float]], turns: list[tuple[str, float, float]]
) -> None:
    said = join_utterances((f"{n}.", start, start + length) for n, (start, length) in enumerate(spans))
    turns = sorted(((speaker, start, start + length) for speaker, start, length in turns), key=lambda turn: turn[1])
    expected = {}
    for utterance in said:
        shares: dict[str, float] = {}
        for speaker, start, end in turns:
            if min(end, utterance.end) > max(start, utterance.start):
                share = min(end, utterance.end) - max(start, utterance.start)
                shares[speaker] = shares.get(speaker, 0.0) + share
        if shares:
            expected[utterance.text] = max(shares, key=shares.__getitem__)
    segments, nobody = attribute_to_speakers(said, turns)
    assert {segment.text: segment.speaker for segment in segments} == expected
    assert len(segments) + len(nobody) == len(said)


def test_it_is_said_why_there_are_no_clips() -> None:
    assert "no speech" in str(explain_no_clips([]))
    assert "only one speaker (Ann)" in str(explain_no_clips(parse_diarised("[Speaker Ann] [0-1]: hi")))
