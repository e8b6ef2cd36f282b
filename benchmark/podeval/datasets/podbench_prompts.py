"""The prompt that asks a language model for a podcast script, in English and in Chinese.

Its wording is podeval's own, its substance that of PodBench's Appendix D.1: the user's wishes first, facts from the
materials only, text for the ear, a set length for a minute, and turns with numbered speakers. The benchmark itself puts
the authors' finished `input_prompt` to systems; this prompt is for requests of one's own.
"""

from collections.abc import Sequence
from string import Template

from podeval.errors import BadInput
from podeval.text.script_format import PER_MINUTE
from podeval.text.tokens import check_language

VERSION = "1.0.0"
"""Raised whenever a prompt changes by a character: scripts are compared only under one version."""

_ENGLISH = Template("""\
You write podcast scripts. From the materials below, make one that people enjoy hearing and learn from.

What to keep to:
1. What the user asks for goes before everything else here.
2. Every fact, figure and opinion comes from the materials. Add nothing from elsewhere, and invent nothing.
3. Never point at the materials ("the article says"): the speakers talk as people who know the matter themselves.
4. Write for the ear: short sentences, easy transitions, the small words of talk where they fit.
5. Go deep, and explain what a general listener may not know.
6. Give every speaker a voice of their own, but do not have them state their roles.
7. Where several people talk, each takes up and carries on what was said; avoid an interview of question and answer.
8. $rate English words, or $characters Chinese characters, make a minute.

What the user asks for:
$instruction

Speakers:
$speakers

Materials:
$sources

Form of the answer: nothing but the script. Every turn begins on a line of its own with its speaker and a colon, as in
$form
No heading, no markup, no stage directions, no comment before or after.
""")

_CHINESE = Template("""\
你负责撰写播客脚本。请根据下面的材料，写出一篇让人爱听、听了有收获的脚本。

请遵守：
1. 用户的要求优先于以下各条。
2. 一切事实、数据和观点都取自材料，不引入外部内容，也不编造。
3. 不提及材料本身（例如“文章里说”），说话人要像自己熟悉这件事一样来谈。
4. 为听而写：句子短，过渡自然，适当使用口语词。
5. 谈得深入，同时把一般听众可能不懂的地方讲明白。
6. 每位说话人要有自己的说话方式，但不要在对话里报出角色。
7. 多人对谈时，后一句接着前一句往下推进，避免一问一答。
8. 每分钟约合$characters个汉字，或$rate个英文单词。

用户的要求：
$instruction

说话人：
$speakers

材料：
$sources

输出格式：只输出脚本。每一轮话另起一行，先写说话人和冒号，例如
$form
不要标题、标记、舞台提示，也不要在前后加任何说明。
""")

_TEMPLATES = {"en": _ENGLISH, "zh": _CHINESE}
_LABEL = {"en": "Host {}: ", "zh": "主持人{}："}
_MATERIAL = {"en": "[Material {}]", "zh": "【材料{}】"}
_ANY = {"en": "as many as suit the request, at most four", "zh": "人数按要求而定，最多四位"}
_COUNT = {"en": "{}", "zh": "{}位"}


def make_generation_prompt(
    instruction: str, sources: Sequence[str], *, language: str, speakers: int | None = None
) -> str:
    """Make the prompt for one request.

    Args:
        instruction: the user's request.
        sources: the materials; may be empty.
        language: language of the prompt, `en` or `zh`.
        speakers: number of speakers; None leaves it to the request.

    Raises:
        BadInput: another language, no request, or fewer than one speaker.
    """
    code = check_language(language)
    if not instruction.strip():
        raise BadInput("the request for a script is empty; say what the podcast should be about")
    if speakers is not None and speakers < 1:
        raise BadInput(f"a script has at least one speaker, not {speakers}")
    return _TEMPLATES[code].substitute(
        rate=PER_MINUTE["en"],
        characters=PER_MINUTE["zh"],
        instruction=instruction.strip(),
        speakers=_ANY[code] if speakers is None else _COUNT[code].format(speakers),
        sources="\n\n".join(f"{_MATERIAL[code].format(n)}\n{text.strip()}" for n, text in enumerate(sources, 1)) or "-",
        form="\n".join((_LABEL[code].format(n) + "…") for n in range(1, min(speakers or 2, 2) + 1)),
    )
