"""The tricks of docs/gaming.md: each wins nothing, or is in no rank, or is said on the metric's card."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio import faults
from podeval.audio.windows import Span
from podeval.metrics import catalogue, voice_match
from podeval.metrics.predicted_opinion import CANCELLED
from podeval.metrics.score import Score
from podeval.metrics.speech.pace import REPEATED, measure_repeated
from podeval.metrics.speech.timbre_consistency import count_repeated
from podeval.recording import Recording
from podeval.text.comparison.alignment import align_script
from podeval.text.comparison.content_differences import find_content_differences
from podeval.text.script import Script
from podeval.texts import REASONS
from tests.fakes.scoring import score

RATE = 16_000


def text(words: str, name: str) -> Score:
    return score(name, {"text": words})


def pulses(seconds: float, quiet_start: float = 0.0) -> Recording:
    """Noise in syllables of 0.2 s, the first seconds perhaps 8 dB quieter."""
    samples = np.random.default_rng(1).normal(0, 0.1, int(seconds * RATE)).astype(np.float32)
    at = np.arange(len(samples)) / RATE
    samples *= (at % 0.25 < 0.2).astype(np.float32)
    samples[: int(quiet_start * RATE)] *= np.float32(10 ** (-8 / 20))
    return Recording.from_samples(samples, RATE)


def test_a_quiet_start_still_lifts_the_range_score_of_a_clip_which_is_in_no_rank() -> None:
    plain, quiet = (score("loudness", {"recording": pulses(17, start)}) for start in (0.0, 4.0))
    assert (quiet.values["range_score"] or 0) > (plain.values["range_score"] or 0) + 0.3
    for clip in (plain, quiet):
        assert set(clip.unranked) == {"range", "range_score"}


def test_the_range_of_a_minute_is_that_of_a_programme() -> None:
    assert not score("loudness", {"recording": pulses(61)}).unranked


SCRIPT = (
    "So what I would like to ask you first is how the two of you came to work on this at all, because it is not what "
    "people expect of a bakery in a small town by the sea. It began with my mother, who kept the books of the shop "
    "for thirty years, and who could tell from the sales of a Tuesday whether it had rained. We thought that there "
    "might be more in those books than she had seen, and so we typed them in, page after page, over one long winter. "
    "And what did you find in them when you had finished? That she was right about the rain, and wrong about the rest."
)
LETTERS = " ".join("".join(np.random.default_rng(n).choice(list("abcdefghijklmnop"), 6)) for n in range(200))


@pytest.mark.parametrize("name", ["distinct_n", "mattr", "info_dens"])
def test_three_words_and_random_letters_win_and_are_in_no_rank(name: str) -> None:
    metric = catalogue.get(name)
    real, few, letters = (text(words, name) for words in (SCRIPT, "three different words", LETTERS))
    key = metric.keys[-1].name
    assert (letters.values[key] or 0) >= (real.values[key] or 0), "the trick works, which is why it is in no rank"
    assert not real.unranked
    assert set(few.unranked) == set(letters.unranked) == {k.name for k in metric.keys}
    assert "function words" in letters.unranked[key]


def test_a_voice_that_changes_is_not_scored_as_two_where_nobody_says_how_many_speak() -> None:
    result = catalogue.get("timbre_consistency")({"recording": pulses(12)})
    assert (result.cause, "speakers" in result.reason) == ("ours", True)


def test_a_loop_is_counted() -> None:
    piece = np.random.default_rng(0).normal(0, 1, (1, 32)).astype(np.float32)
    others = np.random.default_rng(1).normal(0, 1, (4, 32)).astype(np.float32)
    starts = [0.0, 2.0, 4.0, 6.0, 8.0]
    assert count_repeated(np.concatenate([piece, others]), starts) == 0
    assert count_repeated(np.repeat(piece, 5, axis=0), starts) == 5
    # Overlapping windows are alike without any loop.
    assert count_repeated(np.repeat(piece, 2, axis=0), [0.0, 2.0]) == 0


def test_the_spread_of_a_uniformly_worse_recording_falls_and_its_coefficient_of_variation_does_not() -> None:
    """SRMR a third everywhere, as in a hall: the paper's value is a third, what ranks is the same."""
    metric = catalogue.get("reverb_consistency")
    assert (metric.headline.name, metric.headline.ranked) == ("reverb_consistency_cv", True)
    assert not metric.key("reverb_consistency").ranked
    assert not metric.key("reverb_consistency_norm").ranked


def test_inaudible_music_is_in_no_rank_by_its_ratio_and_out_of_range() -> None:
    smr = catalogue.get("smr")
    assert (smr.key("smr").better, smr.key("smr").ideal) == ("in range", (5, 30))
    assert smr.key("smr_reference").better == "higher"


class Heard:
    """A recording whose quality is that of its samples' level: a stand-in for a model that is moved by level."""

    rate, duration, profile = RATE, 10.0, "embedded"

    cancelled = 0.0

    def __init__(self, level: float, notes: dict[str, Any] | None = None, stem: "Heard | None" = None) -> None:
        self.level, self.notes, self.stem = level, notes or {}, stem

    def require_sound(self, shortest: float = 0.0) -> None: ...

    def speech_track(self, source: str = "auto") -> "Heard":
        return self.stem if self.stem and source == "auto" else self

    def speech_stem(self) -> "Heard":
        return self.stem or self

    def mono(self, rate: int = RATE, *, offset: bool = False) -> Any:
        tone = np.sin(2 * np.pi * 1000 * np.arange(RATE * 10) / RATE)
        return np.asarray(np.sqrt(2) * 10 ** (self.level / 20) * tone, np.float32)

    def speech(self) -> tuple[Span, ...]:
        return (Span(0, 10),)

    def array_from(self, job: str, ask: Any, gain: float = 0.0, **options: Any) -> Any:
        return np.array([[0.0, 3.0, 4.0, 3 - abs(self.level + gain + 26) / 20, 3.0]])


def test_dnsmos_at_a_fixed_level_does_not_move_with_the_level_and_the_notes_have_the_level() -> None:
    loud, quiet = Heard(-16), Heard(-36)
    assert score("dnsmos", {"recording": loud}).notes["speech_level"] == pytest.approx(-16)
    fixed = [score("dnsmos", {"recording": r}, level="fixed").values["ovrl"] for r in (loud, quiet)]
    assert fixed == pytest.approx([3.0, 3.0])
    assert score("dnsmos", {"recording": loud}).values["ovrl"] == pytest.approx(2.5)


def test_the_mix_is_ranked_and_the_stem_is_shown() -> None:
    mixed = Heard(-6, stem=Heard(-26, {"scored": "speech stem"}))
    values = score("dnsmos", {"recording": mixed}).values
    assert (values["ovrl"], values["ovrl_stem"]) == (pytest.approx(2.0), pytest.approx(3.0))
    for name in ("dnsmos", "distillmos", "utmos22", "nisqa_tts", "sound_fidelity"):
        assert [key.better for key in catalogue.get(name).keys if key.name.endswith("_stem")] == ["informative"]


@pytest.mark.parametrize(
    "name",
    [
        "dnsmos",
        "distillmos",
        "reverb_consistency",
        "timbre_consistency",
        "loudness",
        "smr",
        "distinct_n",
        "mattr",
        "info_dens",
        "sim",
        "rtf",
        "rubric",
        "instruction_following",
        "wer",
        "speaker_attribution",
    ],
)
def test_what_can_be_gained_is_said_on_the_card(name: str) -> None:
    from podeval.measuring.space_files import write_card

    metric = catalogue.get(name)
    assert metric.caution.endswith(".")
    assert metric.caution in write_card(metric)


def test_a_reference_that_is_played_back_is_noticed_through_level_and_noise_and_other_speech_is_not() -> None:
    random = np.random.default_rng(3)
    reference, speech = (random.normal(0, 0.1, voice_match.RATE * n).astype(np.float32) for n in (6, 20))
    copied = speech.copy()
    copied[9_000 : 9_000 + len(reference)] = 0.3 * reference + random.normal(0, 0.01, len(reference))
    assert voice_match.holds_copy(copied, reference)
    assert voice_match.correlate_with(speech, reference) < 0.3
    assert not voice_match.holds_copy(np.zeros_like(speech), reference)
    assert not voice_match.holds_copy(speech[:100], reference)


def test_noise_over_a_recording_hides_its_holes_and_the_card_says_so() -> None:
    random = np.random.default_rng(5)
    torn = np.asarray(0.1 * np.sin(2 * np.pi * 220 * np.arange(4 * RATE) / RATE), np.float32)
    for second in (1, 2, 3):
        torn[second * RATE : second * RATE + RATE // 10] = 0
    noisy = np.asarray(torn + random.normal(0, 0.001, len(torn)), np.float32)
    assert len(faults.find_holes(torn, RATE)) == 3
    assert faults.find_holes(noisy, RATE) == [], "the trick works, which is why the card says it"
    assert "noise at −60 dB" in catalogue.get("integrity").misreading


@pytest.mark.long
def test_one_voice_shifted_by_four_semitones_passes_as_two_and_the_card_says_so() -> None:
    import librosa

    from podeval.models import registry
    from studies.bias_material import SENTENCES, say_lines, voices

    encoder = registry.load("speaker_encoder", "embedded")
    one, other = (next(v for v in voices() if v.name == name) for name in ("espeak-m1", "espeak-m3"))
    said = [
        librosa.resample(say_lines(voice, "en", SENTENCES["en"][:2]), orig_sr=24_000, target_sr=RATE)
        for voice in (one, other)
    ]
    half = len(said[0]) // 2
    shifted = librosa.effects.pitch_shift(said[0][half:], sr=RATE, n_steps=4)
    parts = [said[0][:half], said[0][half:], shifted, said[1][half:]]
    first, same, moved, another = encoder.embed([np.asarray(part, np.float32) for part in parts])
    alike = [float(first @ v / np.linalg.norm(first) / np.linalg.norm(v)) for v in (same, another, moved)]
    assert alike[0] > 0.9 > alike[1] > alike[2] + 0.1, "the voice that is moved is further off than another one"
    assert "four semitones" in catalogue.get("sptd").misreading


@pytest.mark.long
def test_hum_lifts_dnsmos_of_a_robotic_voice_and_the_card_says_so() -> None:
    import librosa

    from studies.bias_material import SENTENCES, say_lines, voices
    from studies.tricks import add_hum

    robotic = next(voice for voice in voices() if voice.name == "espeak-m1")
    spoken = librosa.resample(say_lines(robotic, "en", SENTENCES["en"][:2]), orig_sr=24_000, target_sr=RATE)
    plain, humming = (
        score("dnsmos", {"recording": Recording.from_samples(sound, RATE)}).values["ovrl"] or 0
        for sound in (spoken, add_hum(spoken, RATE))
    )
    assert humming > plain + 0.3, "the trick works, which is why the card says it"
    assert "hum" in catalogue.get("dnsmos").misreading


def test_a_stage_direction_that_is_read_aloud_is_inserted_and_left_out_it_is_no_error() -> None:
    script = Script.parse("[sighs] Then somebody pours a cup of tea.")
    words = ["Sighs.", "Then", "somebody", "pours", "a", "cup", "of", "tea."]
    read, left_out = (
        find_content_differences(align_script(script, [(word, n, n + 0.5) for n, word in enumerate(heard)]))
        for heard in (words, words[1:])
    )
    assert [(each.kind, each.words) for each in read] == [("inserted", 1)]
    assert left_out == []
    assert "in brackets" in catalogue.get("content_errors").misreading


def test_a_room_lifts_robotic_voices_where_neural_ones_fall_and_the_card_says_so() -> None:
    with (Path(__file__).parents[2] / "docs" / "studies" / "bias.csv").open(encoding="utf-8") as file:
        effects = {(row["key"], row["level"]): row for row in csv.DictReader(file)}
    robotic, neural = (effects["distillmos.distillmos", f"0.3 s, {kind}"] for kind in ("espeak-ng", "neural voices"))
    assert float(robotic["low"]) > 0 > float(neural["high"])
    said = catalogue.get("distillmos").misreading
    assert f"{float(robotic['effect']):.2f}" in said
    assert f"{-float(neural['effect']):.2f}" in said


def test_noise_that_cancels_in_the_mean_of_the_channels_is_in_no_rank_and_stereo_is() -> None:
    random = np.random.default_rng(7)
    at = np.arange(20 * RATE) / RATE
    speech, other = (random.normal(0, 0.05, len(at)) * (at % 1 < 0.8) for _ in range(2))
    noise, wide = random.normal(0, 0.05, len(at)), random.normal(0, 0.02, (len(at), 2))
    stereo = {
        "noise against itself": np.stack([speech + noise, speech - noise], axis=1),
        "one in each channel": np.stack([speech, other], axis=1),
        "room in stereo": speech[:, None] + wide,
        "mono twice": np.stack([speech, speech], axis=1),
    }
    shares = {name: Recording.from_samples(samples, RATE).cancelled for name, samples in stereo.items()}
    share = shares["noise against itself"]
    assert shares.pop("noise against itself") == pytest.approx(0.2, abs=0.02), "in every pause"
    assert set(shares.values()) == {0.0}
    clean, noisy = Heard(-26), Heard(-26)
    noisy.cancelled = share
    dnsmos = [score("dnsmos", {"recording": recording}) for recording in (clean, noisy)]
    assert dnsmos[0].values == dnsmos[1].values, "the trick works"
    assert not dnsmos[0].unranked
    assert set(dnsmos[1].unranked) == {"ovrl", "sig", "bak", "p808"}
    assert REASONS["not-ranked-cancelled"] == CANCELLED


def test_a_whistle_above_8_khz_is_not_heard_and_the_card_says_so() -> None:
    from studies.tricks import whistle

    random = np.random.default_rng(8)
    speech = random.normal(0, 0.05, 48_000).astype(np.float32)
    whistling = whistle(speech, 48_000, -26)
    assert np.std(whistling) > 1.3 * np.std(speech)
    heard = [Recording.from_samples(samples, 48_000).mono() for samples in (speech, whistling)]
    assert np.abs(heard[0] - heard[1])[800:-800].max() < 1e-3, "the trick works, which is why the cards say it"
    for name in ("dnsmos", "distillmos"):
        assert "8 kHz" in catalogue.get(name).misreading


def test_a_loop_has_the_most_even_pace_and_is_in_no_rank() -> None:
    line = "the ferry leaves at seven and the people on it watch the lights of the town grow small"
    tale = line.split()
    said_once = [f"{word}{number}" for number in range(4) for word in tale]
    assert measure_repeated([*said_once, *tale]) == 0
    assert measure_repeated(4 * tale) == 1
    assert measure_repeated([*said_once, *tale, *tale]) == pytest.approx(2 / 6)
    assert measure_repeated([]) == 0
    assert REASONS["not-ranked-repeated"] == REPEATED


def test_gaps_drawn_by_chance_are_nearer_to_people_than_even_ones_and_the_card_says_so() -> None:
    from podeval.stats.turn_taking import count_people, follow_the_floor, jensen_shannon_distance
    from studies.tricks_of_dialogues import draw_offsets

    def distance(offsets: list[float]) -> float:
        end, units = 0.0, []
        for number, offset in enumerate(offsets):
            units.append(("AB"[number % 2], end + offset, end + offset + 3))
            end += offset + 3
        return jensen_shannon_distance(follow_the_floor(units).counts, count_people("broadcast"))

    even = distance([0.3] * 60)
    by_chance = [distance(draw_offsets(60, seed)) for seed in range(5)]
    assert max(by_chance) < even - 0.2, "the trick works, which is why the card says it"
    assert "by chance" in catalogue.get("turn_taking").misreading


def test_one_voice_through_a_telephone_in_every_other_turn_is_as_far_off_as_another_and_the_card_says_so() -> None:
    import librosa

    from podeval.models import registry
    from studies.bias_material import SENTENCES, say_lines, voices
    from studies.tricks_of_dialogues import band

    one = next(voice for voice in voices() if voice.name == "espeak-m1")
    spoken = say_lines(one, "en", SENTENCES["en"][:2])
    parts = [librosa.resample(part, orig_sr=24_000, target_sr=RATE) for part in (spoken, band(spoken))]
    half = len(parts[0]) // 2
    encoder = registry.load("speaker_encoder", "embedded")
    first, same, telephoned = encoder.embed([parts[0][:half], parts[0][half:], parts[1][half:]])
    distances = [1 - float(first @ v / np.linalg.norm(first) / np.linalg.norm(v)) for v in (same, telephoned)]
    assert distances[0] < 0.1
    assert distances[1] > 0.35, "the trick works, which is why the card says it"
    assert "telephone" in catalogue.get("sptd").misreading
