"""The material of the bias study: voices, sentences, changes of clips, dialogues, scripts."""

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import espeakng_loader
import numpy as np
import soundfile

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.benchmarks.benchmark import Item
from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.engines import read_records, run_worker
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.kokoro import Kokoro
from podeval.text.script import Script
from studies.bias_chinese import ChineseKokoro
from studies.distortions import Samples, gain, mu_law, reverberate

RATE = 24_000
SENTENCES = {
    "en": (
        "The ferry leaves the harbour at seven, and the people on it watch the lights of the town grow small.",
        "Most of them work on the other side of the water, and some have taken the same seat for twenty years.",
        "When the fog comes in, the captain sounds the horn, and for a while nobody speaks at all.",
        "Then somebody pours a cup of tea, somebody laughs, and the talk goes on where it had stopped.",
    ),
    "zh": (
        "渡轮早上七点离开港口，船上的人看着镇上的灯光慢慢变小。",
        "他们大多在对岸工作，有些人二十年来一直坐在同一个座位上。",
        "起雾的时候，船长拉响汽笛，有一阵子谁也不说话。",
        "后来有人倒了一杯茶，有人笑了起来，谈话又从停下的地方继续。",
    ),
}
MEDIUM = 2
"""Number of sentences in an unchanged clip; short clips have one, long ones four."""
SPEECH_LEVEL = -26.0
"""Level of the speech in every unchanged clip, in dB relative to full scale."""
SHORT_LINES = {
    "en": (
        "Did you see the ferry this morning?",
        "I did, it left ten minutes late.",
        "Was there fog on the water again?",
        "More than I have seen all year.",
        "So the captain had to wait for light.",
        "He sounded the horn twice, I think.",
        "Who was standing on the upper deck?",
        "Mostly people who work in the town.",
        "My neighbour takes that boat each day.",
        "Has he kept the same seat so long?",
        "For twenty years, by the left window.",
        "Then he must know every wave by name.",
        "He says the tea is what he comes for.",
        "The tea on board is not very good.",
        "Perhaps it tastes better in the cold.",
        "That may be, I only drink it at home.",
        "Shall we take the boat on Sunday then?",
        "If the weather holds, I would like to.",
        "We could walk along the other shore.",
        "There is a lighthouse behind the hill.",
        "I have never been up there before.",
        "The stairs are steep but the view is wide.",
        "Bring a coat, the wind is strong there.",
        "I will, and something warm to eat.",
    ),
    "zh": (
        "你今天早上看见渡轮了吗？",
        "看见了，晚开了十分钟。",
        "水面上又起雾了吗？",
        "比今年哪一次都大。",
        "所以船长只好等天亮。",
        "我记得他拉了两次汽笛。",
        "上层甲板上站着谁？",
        "大多是在镇上工作的人。",
        "我的邻居每天坐那班船。",
        "他一直坐同一个座位吗？",
        "坐了二十年，靠左边的窗。",
        "那他一定认得每一朵浪花。",
        "他说他是为了喝茶才来的。",
        "船上的茶可不怎么好喝。",
        "也许天冷的时候好喝一些。",
        "可能吧，我只在家里喝茶。",
        "那我们星期天去坐船吧？",
        "天气好的话，我很想去。",
        "我们可以沿着对岸走走。",
        "山的后面有一座灯塔。",
        "我从来没有上去过那里。",
        "楼梯很陡，但是风景很好。",
        "带件外套，那里风很大。",
        "好的，再带点热的吃的。",
    ),
}
"""The lines that two voices say in turn."""
TURNS = {"12 turns": 12, "plain": 18, "24 turns": 24}
TURNS_THAT_CHANGE = {"plain": 18, "24 turns": 24, "28 turns": 28}
"""Numbers of turns for a metric that needs 15 changes of speaker."""
GAPS = (0.2, 0.45, 0.1, 0.6, 0.3)
"""Pauses between turns in seconds, repeated in this order."""


@dataclass(frozen=True)
class StudyVoice:
    """A voice of the study."""

    name: str
    engine: str
    sex: str
    setting: tuple[str, int] | int
    pair: "tuple[StudyVoice, StudyVoice] | None" = None
    """The two voices of a dialogue."""


@dataclass(frozen=True)
class StudyClip:
    """A scored clip: a voice, the change that was made, the language, and the number of sentences."""

    voice: StudyVoice
    factor: str
    level: str
    language: str
    sentences: int

    @property
    def name(self) -> str:
        """The name that distinguishes the clip from the others."""
        return f"{self.voice.name}|{self.factor}|{self.level}"


def voices() -> list[StudyVoice]:
    """Return the 21 voices, with the engines in turn, so that the first six voices cover all engines."""
    variants = [(f"m{n}", "male") for n in range(1, 8)] + [(f"f{n}", "female") for n in range(1, 6)]
    espeak = [
        StudyVoice(f"espeak-{variant}", "espeak-ng", sex, (f"gmw/en-US+{variant}", 50)) for variant, sex in variants
    ]
    espeak += [
        StudyVoice("espeak-low", "espeak-ng", "male", ("gmw/en-US", 30)),
        StudyVoice("espeak-british", "espeak-ng", "male", ("gmw/en", 50)),
    ]
    kokoro = [
        StudyVoice(voice, "Kokoro", "female" if voice.startswith("jf") else "male", number)
        for number, voice in enumerate(Kokoro().voices)
    ]
    others = [StudyVoice("hibari-heart", "hibari", "female", 0), StudyVoice("piper-joe", "Piper", "male", 1)]
    first = [kokoro[0], kokoro[1], *others, espeak[1], espeak[8]]
    return [*first, *(voice for voice in (*kokoro, *espeak) if voice not in first)]


CHANGES: Mapping[str, Mapping[str, Callable[[Samples, int], Samples]]] = {
    "rate": {f"{factor:g} times": lambda s, _, f=factor: stretch(s, f) for factor in (0.8, 1.25, 1.5)},  # type: ignore[misc]
    "level": {f"{db:+g} dB": lambda s, _, d=db: gain(s, d) for db in (-20.0, -10.0, 10.0)},  # type: ignore[misc]
    "codec": {
        "MP3": lambda s, rate: code_with(s, "MP3", "MPEG_LAYER_III", rate),
        "Opus": lambda s, rate: code_with(s, "OGG", "OPUS", rate),
        "mu-law, 8 bit": lambda s, _: mu_law(s, 8),
    },
    "room": {f"{rt:g} s": lambda s, rate, r=rt: reverberate(s, rate, r, seed=1) for rt in (0.3, 0.6, 1.2)},  # type: ignore[misc]
}
"""By factor, the changes of the sound at a sampling rate; the unchanged clip is the fourth level of each factor."""


def clips(changed: int) -> Iterator[StudyClip]:
    """Yield the clips: every voice unchanged, then Chinese by as many of the voices that speak it, then every change
    for one voice after the other.
    """
    everybody = voices()
    for voice in everybody:
        yield StudyClip(voice, "plain", "plain", "en", MEDIUM)
    for voice in [voice for voice in everybody if voice.engine in BILINGUAL][:changed]:
        yield StudyClip(voice, "language", "Chinese", "zh", MEDIUM)
    for voice in everybody[:changed]:
        for factor, levels in CHANGES.items():
            for level in levels:
                yield StudyClip(voice, factor, level, "en", MEDIUM)
        yield StudyClip(voice, "length", "one sentence", "en", 1)
        yield StudyClip(voice, "length", "four sentences", "en", 4)


BILINGUAL = ("espeak-ng", "Kokoro")
"""Engines that also speak Chinese."""


@cache
def engine_of(name: str, language: str) -> Kokoro | HibariPiper:
    """Return an engine, loaded once."""
    if name == "Kokoro":
        return ChineseKokoro() if language == "zh" else Kokoro()
    return HibariPiper()


def say(voice: StudyVoice, language: str, count: int, first: int = 0) -> Samples:
    """Speak the sentences from `first` up to `count` with pauses of 0.3 s, at the study's rate and level."""
    return say_lines(voice, language, SENTENCES[language][first:count])


def lines_of_a_minute(language: str, sentences: int) -> tuple[str, ...]:
    """Return about a minute of lines, for a metric that needs 40 s; fewer lines for short clips, and more for long
    ones.
    """
    return (*SENTENCES[language], *SHORT_LINES[language])[: {1: 18, MEDIUM: 23, 4: 28}[sentences]]


FAST_MINUTE = {("rate", "1.5 times"): ("length", "four sentences")}
"""Speech at 1.5 times the rate is made from the longer clip and compared with it, because too little would remain of
the usual clip.
"""


def minute_clips(changed: int) -> Iterator[StudyClip]:
    """Yield the clips for a metric that needs 40 s of speech."""
    for clip in clips(changed):
        fast = (clip.factor, clip.level) in FAST_MINUTE
        yield replace(clip, sentences=4) if fast else clip


def say_lines(voice: StudyVoice, language: str, lines: Sequence[str]) -> Samples:
    """Speak lines with pauses of 0.3 s, at the study's rate and level."""
    rate, sounds = _speak(voice, language, lines)
    pause = np.zeros(round(0.3 * rate), np.float32)
    return set_level(resample(np.concatenate([part for sound in sounds for part in (sound, pause)]), rate, RATE))


def say_dialogue(pair: tuple[StudyVoice, StudyVoice], language: str, turns: int) -> Samples:
    """Have two voices speak the short lines in turn, each at the study's level, with gaps between turns."""
    lines = lines_of_dialogue(language)[:turns]
    spoken: dict[int, Samples] = {}
    for number, voice in enumerate(pair):
        rate, sounds = speak_role(voice, language, number)
        sounds = sounds[: len(lines[number::2])]
        levelled = set_level(resample(np.concatenate(sounds), rate, RATE))
        ends = np.cumsum([0] + [len(sound) for sound in sounds]) * RATE / rate
        for index in range(len(sounds)):
            spoken[2 * index + number] = levelled[round(ends[index]) : round(ends[index + 1])]
    parts = []
    for number in range(len(lines)):
        parts += [spoken[number], np.zeros(round(GAPS[number % len(GAPS)] * RATE), np.float32)]
    return np.concatenate(parts)


def lines_of_dialogue(language: str) -> tuple[str, ...]:
    """Return the lines that two voices say in turn, for the longest dialogue."""
    return (*SHORT_LINES[language], *SENTENCES[language])


@lru_cache(maxsize=64)
def speak_role(voice: StudyVoice, language: str, number: int) -> tuple[int, list[Samples]]:
    """Return the speech of a voice as the first or the second speaker of a dialogue; it is the same in all of its
    pairs.
    """
    return _speak(voice, language, lines_of_dialogue(language)[number::2])


def _speak(voice: StudyVoice, language: str, texts: Sequence[str]) -> tuple[int, list[Samples]]:
    """Return the sampling rate, and the speech of a voice for each text."""
    if isinstance(voice.setting, tuple):
        file, pitch = voice.setting
        if language == "zh":
            file = file.replace("gmw/en-US", "sit/cmn").replace("gmw/en", "sit/cmn")
        job = {"seed": 0, "parameters": [[2, 80]], "lines": [[file, pitch, 175, text] for text in texts]}
        # The built-in system has six voices; the study also needs other variants of the engine.
        files = [espeakng_loader.get_library_path(), espeakng_loader.get_data_path()]
        output = run_worker("espeak-ng", files, job, sum(map(len, texts)))
        rate, sounds, _ = read_records(output, len(texts))
    else:
        # All lines are spoken in one voice; in a script, the first speaker would get the engine's first voice.
        engine = engine_of(voice.engine, language)
        engine.require()
        spoken = engine._say([SpokenLine(n, voice.setting, text) for n, text in enumerate(texts)], language, 0)
        rate, sounds = spoken.rate, list(spoken.lines)
    return rate, [np.asarray(sound, np.float32) for sound in sounds]


def _level(samples: Samples) -> float:
    """Return the level of everything that is not silence, in dB relative to full scale."""
    return 10 * math.log10(float(np.mean(np.square(samples[np.abs(samples) > 1e-3], dtype=np.float64))))


def set_level(samples: Samples) -> Samples:
    return gain(samples, SPEECH_LEVEL - _level(samples))


def pairs() -> list[StudyVoice]:
    """Return pairs of voices, each as one voice with the sexes of both: eleven pairs that contain each of the 21
    voices, and the pairs that diarisation can tell apart.
    """
    everybody = voices()
    kokoro = [voice for voice in everybody if voice.engine == "Kokoro"]
    espeak = [voice for voice in everybody if voice.engine == "espeak-ng"]
    men = [voice for voice in espeak if voice.sex == "male"]
    women = [voice for voice in espeak if voice.sex == "female"]
    others = [voice for voice in everybody if voice.engine in ("hibari", "Piper")]
    chosen = [
        (kokoro[0], kokoro[1]),
        (men[0], women[0]),
        (others[0], others[1]),
        (men[1], men[2]),
        (women[1], women[2]),
        (kokoro[2], kokoro[3]),
        (men[3], women[3]),
        (men[4], men[5]),
        (women[4], men[6]),
        (kokoro[0], kokoro[4]),
        (men[7], men[8]),
    ]
    return [_join(*pair) for pair in (*chosen, *_tell_apart(kokoro, men, women))]


def _tell_apart(
    kokoro: Sequence[StudyVoice], men: Sequence[StudyVoice], women: Sequence[StudyVoice]
) -> list[tuple[StudyVoice, StudyVoice]]:
    """Return pairs of different sexes or different models that both speak Chinese; diarisation finds two people in
    each.
    """
    return [
        (kokoro[2], kokoro[1]),
        (kokoro[3], kokoro[1]),
        (kokoro[4], kokoro[1]),
        (kokoro[0], men[1]),
        (kokoro[2], men[6]),
        (kokoro[3], men[2]),
        (kokoro[4], men[0]),
        (women[2], kokoro[1]),
    ]


def _join(one: StudyVoice, other: StudyVoice) -> StudyVoice:
    engine = one.engine if one.engine == other.engine else f"{one.engine} with {other.engine}"
    sex = "one sex" if one.sex == other.sex else "two sexes"
    return StudyVoice(f"{one.name}+{other.name}", engine, sex, 0, (one, other))


def dialogue_clips(changed: int, lengths: Mapping[str, int] = TURNS) -> Iterator[StudyClip]:
    """Yield the dialogues: every pair unchanged, then Chinese by the pairs that speak it, then every change for one
    pair after the other.
    """
    plain = TURNS["plain"]
    for pair in pairs():
        yield StudyClip(pair, "plain", "plain", "en", plain)
    for pair in pairs():
        if all(voice.engine in BILINGUAL for voice in pair.pair or ()):
            yield StudyClip(pair, "language", "Chinese", "zh", plain)
    for pair in pairs()[:changed]:
        for factor, levels in CHANGES.items():
            for level in levels:
                yield StudyClip(pair, factor, level, "en", plain)
        for level, turns in lengths.items():
            if level != "plain":
                yield StudyClip(pair, "length", level, "en", turns)


def turn_clips(changed: int) -> Iterator[StudyClip]:
    """Yield the dialogues for a metric that needs 15 changes of speaker."""
    return dialogue_clips(changed, TURNS_THAT_CHANGE)


def texts() -> Iterator[tuple[str, str, str, Script]]:
    """Yield the scripts of the study of texts: the topic, the factor, the level and the script.

    The length levels are the first half and the first quarter of the same script; the Chinese script is one of the same
    category, not a translation.
    """
    benchmark = benchmarks.get("real_pod")
    chinese: dict[str, Item] = {item.category: item for item in benchmark.items("zh")}
    for item in benchmark.items("topics"):
        if item.script is None:
            continue
        whole = item.script.turns
        yield item.id, "plain", "plain", item.script
        yield item.id, "length", "half", Script(whole[: len(whole) // 2])
        yield item.id, "length", "a quarter", Script(whole[: len(whole) // 4])
        if (other := chinese.pop(item.category, None)) and other.script:
            yield item.id, "language", "Chinese", other.script


def stretch(samples: Samples, factor: float) -> Samples:
    """Change the speed of speech by this factor, at the same pitch."""
    import librosa

    return np.asarray(librosa.effects.time_stretch(samples, rate=factor), np.float32)


def code_with(samples: Samples, container: str, subtype: str, rate: int = RATE) -> Samples:
    """Encode samples with a codec at its default bit rate, and decode them; for Opus, which does not support 44.1 kHz,
    use 48 kHz.
    """
    coded = 48_000 if subtype == "OPUS" and rate == 44_100 else rate
    file = io.BytesIO()
    soundfile.write(file, resample(samples, rate, coded), coded, format=container, subtype=subtype)
    file.seek(0)
    decoded, decoded_rate = soundfile.read(file, dtype="float32")
    return resample(np.asarray(decoded, np.float32), decoded_rate, rate)
