"""Real-Pod's splits beyond the paper's topics: hard lines, long episodes, Chinese."""

from podeval.benchmarks.benchmark import Breakdown, Split

TAGS = (
    "plain",
    "date",
    "year",
    "time",
    "money",
    "number",
    "phone",
    "unit",
    "abbreviation",
    "title",
    "name",
    "web",
    "homograph",
    "code_switching",
    "long_sentence",
    "questions",
    "quotes",
    "list",
    "laughter",
    "interruption",
)
"""What a line, or a stretch of it, is hard for; `plain` where it is for nothing."""

HARD = Split(
    name="hard",
    description=(
        "What text-to-speech stumbles over: 40 short scripts with figures, dates, names, abbreviations, other "
        "languages and long sentences, each line tagged, with every reading that counts as right."
    ),
    file="real_pod_hard.json",
    revision="sha256:87d16b8b107923d4fb523c0315a3d4a4eecee8c1c818556e0080f00e7b0b8b92",
    readings=True,
    tracks=("voice",),
    licence="CC-BY-4.0",
)

SPLITS = (HARD,)

TAG_BREAKDOWN = Breakdown(name="tag", title="What it stumbles over", groups=TAGS, within=True)
