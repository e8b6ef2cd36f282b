"""What must not be concluded from a metric's value: a sentence each, from the study of what moves it besides quality.

The figures are those of `docs/studies/bias.csv` (21 voices that ship, the same sentences; a dialogue metric's are of
pairs of these voices), differences from the plain clip of the same voice. Whoever adds a metric adds its sentence.
"""

from collections.abc import Mapping

_JUDGED = (
    "a judge's leanings are its own, and those of the one in use are found by `podeval judge probe` and `podeval "
    "report judge`, not by this page."
)
_UNRUN = (
    "its weights come with no package and were out of reach here, so nobody has measured what it favours: "
    "`tests/studies/bias.py run WORK --profile reference` does."
)
_PEOPLE = (
    "it has no voice, level or codec of its own to favour; what moves it is who listened, to what and in which order, "
    "which `podeval report evaluators` shows."
)

MISREADINGS: Mapping[str, str] = {
    "dnsmos": (
        "that the higher of two systems sounds better where they differ in sex, level, room or pace: women's voices "
        "have 0.30 less, 20 dB less level costs 0.55, a small room 0.42, and Opus adds 0.12 (overall)."
    ),
    "distillmos": (
        "that Chinese is spoken better than English (one engine has 0.96 more in Chinese), or that a room helps: one "
        "of 0.3 s adds 0.49."
    ),
    "reverb_consistency": (
        "that a difference of 0.1 in the coefficient of variation is a change of room: slower speech alone adds 0.105, "
        "Chinese 0.076, twice the length 0.04; and SRMR tells voices apart (women +10) more than rooms (1.2 s: −5.8)."
    ),
    "timbre_consistency": (
        "that a voice changes where the value is 0.06 lower: a room of 1.2 s takes that much, slow speech 0.053, and "
        "one sentence instead of two adds 0.026."
    ),
    "loudness": (
        "that a wider range is livelier: Chinese has 1.4 LU more in the same voices, slow speech 0.6 more, and one "
        "sentence 0.6 less; and a peak is what the last tool of the chain set, not a quality of speech."
    ),
    "wer": (
        "that a system says wrong words where it speaks fast, far off or in Chinese: half as fast again adds 0.16 to "
        "the character error rate, a hall 0.06, one engine's Chinese 0.72, by the recogniser's own errors."
    ),
    "integrity": (
        "that telephone sound is broken: µ-law of 8 bits alone makes 2,400 faults an hour by its exact zeros; and the "
        "estimate of lost packets falls by 1.3 in a hall where none is lost."
    ),
    "sim": (
        "that another person speaks where pace, room or length differ from the reference: a rate changed by a quarter "
        "takes 0.17 to 0.19, a small room 0.07, and two more sentences add 0.03."
    ),
    "wsim": (
        "that another person speaks where pace, room or length differ from the reference: a rate changed by a quarter "
        "takes 0.17 to 0.19, a small room 0.07, and two more sentences add 0.03; with one speaker it is SIM."
    ),
    "timbre_similarity": (
        "that another person speaks where pace or room differ from the reference: a rate changed by a quarter takes "
        "0.16 to 0.20, a room 0.08 to 0.11."
    ),
    "content_errors": (
        "that words are left out in Chinese or in a voice that the recogniser knows badly: one engine's Chinese has "
        "350 errors in 1,000 words more than its English, all of them the recogniser's."
    ),
    "distinct_n": (
        "that a Chinese script is richer than an English one: it has 0.025 more by how words are cut, and nothing here "
        "asks whether the words mean anything."
    ),
    "mattr": (
        "that a Chinese script has the larger vocabulary: it has 0.039 more by how words are cut; length does not move "
        "it, nonsense does."
    ),
    "info_dens": (
        "that the longer script says more a word: half of the same script has 0.46 bits less and a quarter 1.05, the "
        "normalised value 0.03 and 0.06 more; Chinese has 0.37 bits more."
    ),
    "semantic_div": (
        "that diverse is good, nor that languages or lengths are treated alike: its weights come with no package and "
        "were out of reach here, and the study of texts does not have it."
    ),
    "sound_fidelity": f"that two voices or rooms are treated alike: {_UNRUN}",
    "utmos22": f"that two voices or rooms are treated alike: {_UNRUN}",
    "utmosv2": f"that two voices or rooms are treated alike: {_UNRUN}",
    "nisqa_tts": f"that two voices or rooms are treated alike: {_UNRUN}",
    "audiobox_aesthetics": f"that two voices or rooms are treated alike: {_UNRUN}",
    "pam": f"that two voices or rooms are treated alike: {_UNRUN}",
    "casp": f"that music and speech fit each other for a listener: {_UNRUN}",
    "rtf": (
        "that a voice, a language or a codec makes a system slow: it is computed from a log of times, in which the "
        "machine counts for most; longer texts share the start among more seconds."
    ),
    "arena": f"that the winner is better for everybody: {_PEOPLE}",
    "mushra": f"that marks of two tests can be compared: {_PEOPLE}",
    "mos": f"that marks of two tests can be compared: {_PEOPLE}",
    "sptd": (
        "that a system keeps its speakers apart better where it casts a man and a woman: in the same dialogue two "
        "sexes have 0.20 more than one."
    ),
    "speaker_attribution": (
        "that words are given to the wrong speaker where two voices are of one sex: two sexes have 0.34 more right and "
        "0.62 less cpCER in the same dialogue, as alike voices are not told apart by whoever listens by machine."
    ),
    "turn_taking": (
        "that turns are unlike people's where voices are alike: of dialogues with equal gaps only those are scored "
        "whose two voices the diarisation tells apart, and a room alone lowers the distance by 0.11."
    ),
    "dialogue_naturalness": (
        "that a dialogue is better timed where its engine is: with equal gaps and words, espeak-ng has 0.31 less than "
        "Kokoro."
    ),
    "pace": (
        "that an even pace is a good one, or that Chinese is spoken more slowly because fewer syllables are counted: "
        "the same voices have 0.62 a second less in it. What rate, codec and room do to it was not scored."
    ),
    "smr": (
        "that two values near a bound of the range lie on different sides of it: its error at known ratios is in "
        "docs/smr-accuracy.md, and what voice, pace and room do to it is unknown, since under clips of nine seconds no "
        "chords are heard as music."
    ),
    "dialogue_judge": f"that people would prefer the same script: {_JUDGED}",
    "instruction_following": f"that a wish is met because a passage was quoted for it: {_JUDGED}",
    "script_quality": f"that a point more is a better script: {_JUDGED}",
    "prosodic_coherence": f"that half a point is heard by people: {_JUDGED}",
    "expressive_richness": f"that a lively voice is a fitting one: {_JUDGED}",
    "expressive_hierarchy": f"that a development was meant by the speaker: {_JUDGED}",
    "rubric": f"that a criterion is met for people because a judge says so: {_JUDGED}",
    "content_density": f"that a short answer is a helpful one: {_JUDGED}",
}
"""By metric, the end of the sentence that begins with "Do not conclude"."""
