"""Detects material that addresses its judge: asks for a score, gives orders, imitates delimiters or control words.

What is found is reported beside the score and does not change it: the material is delimited in any case, and a
judge is told to obey nothing inside (`podeval.judges.prompt`). The detection is a heuristic for English and Chinese: it
misses new wordings, and it reports a podcast about prompt injection. A sign is therefore a reason to read
the script, never one to refuse it.
"""

import re
from collections import Counter
from collections.abc import Mapping

NOTE = "the material spoke to the judge"

_JUDGE = r"(?:judges?|graders?|evaluators?|raters?|scorers?|assessors?|reviewing\s+model|language\s+model|LLM)"
_WORK = r"(?:script|podcast|dialogue|conversation|answer|response|submission|text|transcript|recording|system)"
_RULES = r"(?:instructions?|rules|prompts?|guidelines|criteria|rubrics?)"
_TOP = r"(?:full|maximum|max|highest|perfect|top)\s+(?:possible\s+)?(?:scores?|marks?|points?|ratings?|grade)"
_WORK_CHINESE = "(?:脚本|剧本|对话|回答|播客|文本|文稿|稿子|内容|系统)"
_JUDGE_CHINESE = "(?:评委|评审|裁判|评分者|评分员|评分模型|打分者|评判者|评估者)"

SIGNS: Mapping[str, re.Pattern[str]] = {
    "gives the judge an order": re.compile(
        rf"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){{0,3}}?"
        rf"(?:previous|above|prior|earlier|preceding|all|any|these|your)\s+(?:\w+\s+){{0,3}}?{_RULES}\b"
        rf"|\b(?:dear|attention|note\s+(?:to|for)(?:\s+the)?|instructions?\s+(?:to|for)(?:\s+the)?),?\s+(?:AI\s+)?{_JUDGE}\b"
        rf"|^[^\w\n]{{0,20}}(?:\w{{1,20}}:[ \t]{{0,4}})?(?:AI\s+)?{_JUDGE}\s*[:,]\s*"
        r"(?:please\s+|you\s+must\s+)?(?:give|rate|score|award|grade|ignore)\b"
        r"|(?:忽略|无视|忘记|忘掉|不要理会|跳过)(?:掉|了)?(?:以上|上述|上面|之前|前面|先前|所有|一切|任何|你的|这些)"
        r"[^。！？\n]{0,12}(?:指令|指示|规则|提示词?|评分标准|要求)"
        rf"|(?:尊敬的|各位|致|请){_JUDGE_CHINESE}",
        re.IGNORECASE | re.MULTILINE,
    ),
    "asks for a score": re.compile(
        rf"\b(?:give|award|assign|rate|score|grade|mark)\s+(?:\w+\s+){{0,4}}?{_TOP}\b"
        rf"|\b(?:give|award|assign|rate|score|grade|mark)\s+(?:this|the|my|our)\s+(?:\w+\s+)?{_WORK}\s+(?:\w+\s+){{0,3}}?\d"
        r"|(?:^|[.!?:]\s{0,3})(?:please\s+)?(?:give|rate|score|grade|award)\s+(?:this|it|me)\s+(?:an?\s+|with\s+)?"
        r"\d{1,3}(?!\d)(?!\s*(?:stars?|minutes?|seconds?|hours?|days?|weeks?|months?|years?)\b)"
        rf"|\b(?:this|the)\s+{_WORK}\s+(?:deserves|must\s+(?:get|receive)|should\s+(?:get|receive))\s+(?:\w+\s+){{0,3}}?"
        rf"(?:{_TOP}|\d)"
        rf"|(?:请|务必|必须|应当|应该|一定要)[^。！？\n]{{0,8}}(?:给|打|评)[^。！？\n]{{0,15}}(?:满分|最高分|\d{{2,3}}\s*分(?!钟))"
        rf"|给(?:予|出)?(?:本|这(?:篇|个|段|份)?|该){_WORK_CHINESE}[^。！？\n]{{0,8}}(?:满分|最高分|高分|\d{{2,3}}\s*分(?!钟))",
        re.IGNORECASE | re.MULTILINE,
    ),
    "writes the judge's answer": re.compile(
        r"[\"“](?:score|overall|total|rating|verdict|winner|total_score|得分|总分|分数)[\"”]\s{0,3}[:：]\s{0,3}[\"“]?-?\d",
        re.IGNORECASE,
    ),
    "forges a mark": re.compile(
        r"^[ \t]{0,8}(?:BEGIN|END) [a-z][a-z0-9_]{0,40}(?: [0-9a-f]{8,64})?[ \t]{0,8}$", re.MULTILINE
    ),
    "holds a control word": re.compile(
        r"<[|\uff5c][^\s<>]{1,60}[|\uff5c]>|<</?SYS>>|\[/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w{1,20})\]"
        r"|</?(?:s|bos|eos|think|sop|eop|(?:start|end)_of_turn|tool_\w{1,20}|seed:\w{1,20}|unused\d{1,4}|extra_id_\d{1,4})>"
        r"|\]~!?\w{0,4}[\[\]]|\[e~\["
    ),
}
"""The patterns to search for, by their names in a score's notes."""


def count_signs(text: str) -> Counter[str]:
    """Count how often a text shows each sign of addressing its judge."""
    counts = {name: sum(1 for _ in pattern.finditer(text)) for name, pattern in SIGNS.items()}
    return Counter({name: count for name, count in counts.items() if count})


def note(texts: Mapping[str, str]) -> dict[str, object]:
    """Return a score's notes on material that addresses the judge; empty if there is no sign of that.

    Args:
        texts: the texts of the inputs by name. A text that is part of another, such as a dialogue up to a turn,
            counts once.
    """
    # Texts that are not part of another.
    whole: list[str] = []
    for text in sorted(texts, key=len, reverse=True):
        if not any(text in longer for longer in whole):
            whole.append(text)
    # Signs by input.
    counts: dict[str, Counter[str]] = {}
    for text in whole:
        counts.setdefault(texts[text], Counter()).update(count_signs(text))
    total = sum(count.total() for count in counts.values())
    if not total:
        return {}
    notes = {name: dict(count) for name, count in counts.items() if count}
    return {"spoke_to_the_judge": {"note": NOTE, "count": total, "signs": notes}}
