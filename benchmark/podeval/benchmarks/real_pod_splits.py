"""Real-Pod's splits beyond the paper's topics: hard lines, long episodes and Chinese."""

from podeval.benchmarks.benchmark import Breakdown, Split
from podeval.benchmarks.records import PinnedFile

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
"""Difficulties in a line, or in part of a line; `plain` for a line without difficulties."""

UNMEASURED = ("name", "homograph")
"""Tags that no breakdown uses, because a transcript does not show how a name or a homograph is pronounced."""

HARD = Split(
    name="hard",
    description=(
        "What text-to-speech stumbles over: 40 short scripts with figures, dates, names, abbreviations, other "
        "languages and long sentences, each line tagged, with every accepted reading. How names and "
        "homographs are pronounced is not measured."
    ),
    file="real_pod_hard.json",
    revision="sha256:b9d2c5d7b815bc2283439237f28d505fae5254a20f3b6299c7b896c27b5e4fa0",
    readings=True,
    trial=True,
    tracks=("voice",),
    licence="CC-BY-4.0",
)

VOICES = PinnedFile(
    file="real_pod_voices.json",
    revision="sha256:fd89662ae2f1fd42da998f40c5affcf725b798b3628da90c8d733abe361f5f98",
)
"""The reference voices for speaking scripts in English."""

LONG = Split(
    name="long",
    description=(
        "Long episodes in English: four of 10 minutes, two of 30 and one of 60, with two to four speakers, each "
        "written as a single script, with a reference voice for each speaker. Seven episodes are too few for a ranking."
    ),
    file="real_pod_long.json",
    revision="sha256:1b37d837996e6f29ed2a75e9969425377f4bf5f559ad01adbe9d65b903adcb95",
    scripts=PinnedFile(
        file="real_pod_long_scripts.jsonl",
        revision="sha256:cdf3f47a92a88a2de29657af8522497deb605d93a9b01e8a66c8e5d494c63cce",
    ),
    voices=VOICES,
    trial=True,
    ranked=False,
    tracks=("voice",),
    licence="CC-BY-4.0",
)

LONG_ZH = Split(
    name="long_zh",
    description=(
        "Long episodes in Chinese: four of 10 minutes, two of 30 and one of 60, with two to four speakers, each "
        "written as a single script; without reference voices. Seven episodes are too few for a ranking."
    ),
    file="real_pod_long_zh.json",
    revision="sha256:02ccec6ce792cdf6e90738908a8bb5085ddff62c6a7605ee94dad146db1cfab7",
    scripts=PinnedFile(
        file="real_pod_long_zh_scripts.jsonl",
        revision="sha256:ff43bbee27c93086b205cc6da276bac2fe1f7b61e7736bc739fc7f8f8498d2a5",
    ),
    trial=True,
    ranked=False,
    tracks=("voice",),
    licence="CC-BY-4.0",
)

DEMO_ZH = Split(
    name="demo_zh",
    trial=True,
    description="Six scripts in Chinese of about 50 seconds from six categories; without reference voices.",
    file="real_pod_demo_zh.json",
    revision="sha256:68d1424e0a5c4b82bd8605045ee78cf7b8ae0585a29ce544e33fdd1c2f3915fd",
    tracks=("voice", "write", "podcast"),
    licence="CC-BY-4.0",
)

_ZH_FILE = PinnedFile(
    file="real_pod_zh.json",
    revision="sha256:5c07686a4115d601017f1bcc82e925e7f14ca334d84b67e44d31d06527be256b",
)

ZH = Split(
    name="zh",
    description="A topic in Chinese from each of the 17 categories, with a script; without reference voices.",
    file=_ZH_FILE.file,
    revision=_ZH_FILE.revision,
    scripts=PinnedFile(
        file="real_pod_zh_scripts.jsonl",
        revision="sha256:1fc9dd7469fac2796978df535f2496167067384009e1dce81dc4377ec4c95275",
    ),
    trial=True,
    tracks=("voice", "write", "podcast"),
    licence="CC-BY-4.0",
)

ZH_SPONTANEOUS = Split(
    name="zh_spontaneous",
    description=(
        "The 17 topics in Chinese as shows for one to four speakers who interrupt, correct themselves and trail off; "
        "for listening tests."
    ),
    file=_ZH_FILE.file,
    revision=_ZH_FILE.revision,
    scripts=PinnedFile(
        file="real_pod_zh_spontaneous_scripts.jsonl",
        revision="sha256:2ec703cca733dacb2ba5474027582c80e910029f9b8dfc1f51538d91a4e1987d",
    ),
    version="spontaneous",
    trial=True,
    tracks=("voice",),
    licence="CC-BY-4.0",
)


SPLITS = (HARD, LONG, DEMO_ZH, ZH, ZH_SPONTANEOUS, LONG_ZH)
"""All current splits. There are no reference voices in Chinese, because no recordings of Chinese speakers have a
licence that allows podeval to distribute them.
"""

MINUTES_BREAKDOWN = Breakdown(
    name="minutes", title="Length in minutes", groups=("10", "30", "60"), splits=("long", "long_zh")
)
TAG_BREAKDOWN = Breakdown(
    name="tag",
    title="What it stumbles over",
    groups=tuple(tag for tag in TAGS if tag not in UNMEASURED),
    within=True,
    splits=("hard",),
)
