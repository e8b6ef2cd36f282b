"""Read turns in plain text: lines, or tags within them, that name speakers.

The supported labels are numbered ones (`Host 1:`, `Speaker A:`, `嘉宾1：`), tags (`[S1]`, `<Person1>…</Person1>`,
`<|speaker:0|>`), roles and names (`Narrator:`, `**Ann:**`), each optionally after a time or a list number and with a
direction (`Speaker 1 (warmly):`), and subtitles. The speakers `Host 1`, `Speaker 1`, `Person 1` and `S1` are called
`1`; all others keep their names as written.

Names are accepted only if many lines begin with a name and some name is repeated, because prose has colons too
(`Note:`, `10:30`, `Genesis 1:1`). Whenever words are omitted or read under another label, a note for human readers is
added.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from podeval.text.markup import strip_surroundings, strip_tags, strip_time, strip_times
from podeval.text.numerals import parse_number
from podeval.text.script import Script
from podeval.text.subtitles import VOICE, read_cues

# The speaker of the words before the first label.
UNLABELLED = "Narrator"

# Words before a speaker's number that are not part of the speaker's name, and words that are part of the name.
_COUNTED = "host|speaker|spk|person|主持人|说话人|說話人|发言人|發言人"
_ROLES = (
    r"co-?host|guest|narrator|voice[ -]?over|interviewer|interviewee|moderator|presenter|announcer|host|speaker|voice|"
    r"participant|panelist|character|嘉宾|嘉賓|旁白|主持人?|记者|記者|专家|主播|女声|男声|甲|乙|男|女|"
    r"司会|ナレーター|ゲスト|話者|화자|진행자|게스트"
)
# A list number, and a time with a colon.
_LEAD = (
    r"[\s*_#•\"“\-\p{S}]*+(?:\d{1,4}[.)、]\s++|(?<=\#)\d{1,4}\s++|\[?(?i:turn|line|segment)\s\d{1,4}\]?\s*+[.–—\-]?\s*+)?"
    r"(?:[\[(]?(?=[^\p{L}]{0,30}\d:\d\d)\d[\d/.,:\s>\-]{3,45}+(?:[ap]m\b)?[\])]?[\s–—\-]*+)?[*_\"“]*+"
)
_DIRECTION = r"(?:[\s*_]*+(?:[(\[（【](?P<aside>[^()\[\]（）【】\n]{1,60})[)\]）】]|[*_][^*_\n:：]{1,60}[*_])){0,2}+"
_COLON = r"[\s*_\"”]*+[:：︓﹕∶꞉៖፦᠄][*_]*+"
_CLOCK = r"[\[(]?\d{1,2}(?::\d\d){1,2}(?:[.,]\d{1,3}|\s?[AaPp]\.?[Mm]\b\.?)?(?:\s?(?:-->|[–—-])\s?[\d:.,]{4,12})?[\])]?"
_DATE = r"(?:[\[(]?\d[\d./\-]{5,9},?\s++|(?i:to|yester)day at\s++)"
_NUMBERED = regex.compile(
    rf"{_LEAD}(?P<open>[\[(【])?(?:(?P<word>s)(?P<number>\d{{1,3}})|(?P<word>{_COUNTED}|{_ROLES})"
    r"(?:[\s_#\-]*+(?P<number>\d{1,9}|[一二三四五六七八九十]|[①-⑳]|(?<=\p{Han})[a-z])"
    r"|[\s_]++(?P<number>[a-z]|one|two|three|four|five|six|seven|eight|nine|ten))(?![\p{L}\p{N}'’]))"
    rf"(?(open)[\])】]){_DIRECTION}(?:,[^,:：]{{1,40}})?(?:{_COLON}\s*+|\s+[–—\-]\s++|[\s*_]*+(?:(?<=\s){_CLOCK}\s*)?$)",
    regex.IGNORECASE,
)
_NAME = (
    r"(?P<name>\d{1,2}|\p{L}(?:[^\W_]|[.'’&·\-])*+"
    r"(?:(?: (?:[&+–\-] )?|, |/)(?!\d+:\d|\d{1,4}[./\-]\d)[\"“‘]?[\p{L}\p{N}](?:[^\W_]|[.'’&·\-])*+[\"”’]?){0,5}+)"
)
_NAMED = regex.compile(
    # A name with a colon or in brackets; a name and a time; a heading; capitals alone.
    rf"{_LEAD}(?:(?P<open>[\[【])?{_NAME}(?(open)[\]】]){_DIRECTION}(?:\s++{_CLOCK})?{_COLON}"
    r"(?:(?<=[：︓][*_]*)(?!\d\d\b)|(?=[\s\"“”「『*_(\[（\p{Lu}]|$|[^\x00-\x7f]))"
    rf"|[\[【]{_NAME}[\]】](?:\s++{_CLOCK}\s*$|(?=\s*[^\s:：]))|{_NAME}[*_]*+(?:\s*+[–—•·|,\-])?\s++{_DATE}?{_CLOCK}\s*$)\s*+"
    # A quotation after a name.
    rf"|\s*+{_NAME}(?=[「『].*[」』]\s*$)"
    rf"|(?:\#+\s*+|\*\*){_NAME}{_DIRECTION}\*{{0,2}}\s*$"
    rf"|\s*@?(?P<name>\p{{Lu}}[\p{{Lu}}\p{{N}} .'’\-]{{1,30}}\p{{Lu}})\.?(?:\s*\([^()]*\))?\s*\^?\s*$"
    r"|\s*@?(?P<name>\p{Lu}[\p{L}'’\-]+(?: \p{Lu}[\p{L}'’\-]+){0,2})\s*$"
)
_TAG = regex.compile(
    rf"[\[<(]\|?(?P<word>{_COUNTED}|{_ROLES}|s)[\s_:\-]*+(?P<number>\d{{1,3}}|[a-z])\|?[\]>)]\s*+[:：]?\s*+"
    rf"|</(?:{_COUNTED}|{_ROLES}|s)\s?\d{{1,3}}>",
    regex.IGNORECASE,
)
_SPEAKING_TAG = regex.compile(
    r"<(?:[\w:]+\s[^<>]*?\b(?:speaker|who|spk)|(?:voice|turn|line|utterance|speaker)\s[^<>]*?\b(?:name|id))"
    r"=[\"'](?P<name>[^\"'<>]+)[\"'][^<>]*>\s*+|</?(?:voice|turn|line|utterance|utt|u|sp|speaker)>"
)
# Elements that are named after their speakers.
_ELEMENT = regex.compile(r"<(\p{L}[\w .-]{0,30})>([^<>]+)</\1>")
# The position between a sentence and a label on the same line.
_BEHIND = (
    r"(?<!\b(?:Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|Rev|Lt|Col|Gen|Sgt|Capt|Hon|Mme|\p{Lu})\.)"
    r"(?<=\p{L}[.!?…]|[.!?…。！？][\"”’)\]]|[。！？]) *+"
)
_WITHIN = regex.compile(
    rf"{_BEHIND}(?=\**(?:{_COUNTED}|{_ROLES})[ _#]?(?:\d{{1,3}}|(?-i:[A-Z])(?![\w'’]))\** ?[:：])", regex.IGNORECASE
)
_NAME_WITHIN = regex.compile(
    rf"{_BEHIND}(?=[*\[]*(?P<name>\p{{Lu}}[\w.'’-]*(?: \p{{Lu}}[\w.'’-]*){{0,2}})[*\]]* ?[:：][*]* )"
)
_HEADING = regex.compile(
    r"\s*(?:#{1,6}\s|```|[-=*_]{3,}\s*$|(?:music|sfx|fx|sounds?|bgm|音乐|音樂|音效)\s*[:：])", regex.I
)
# Scene headings and transitions in screenplays.
_SCENE = regex.compile(r"\s*(?:(?:INT|EXT|INT\.?/EXT)\.\s|(?:FADE|CUT|DISSOLVE)\s(?:IN|OUT|TO)\b)")
_DIRECTION_ALONE = regex.compile(r"[\s*_]*[(\[（【][^()\[\]（）【】]*[)\]）】][\s*_]*$")
_NO_SPEAKER = regex.compile(
    r"(?:https?|notes?|n\.?b|p\.?s|warning|caution|tips?|hint|important|example|e\.?g|i\.?e|title|subtitle|topic|theme|genre|"
    r"chapter|part|section|episode|scene|act|verse|chorus|bridge|intro(?:duction)?|outro|conclusion|summary|abstract|"
    r"overview|authors?|by|date|time|place|location|setting|weather|subject|from|to|b?cc|re|fwd?|ingredients|directions|"
    r"instructions|method|preparation|servings|serves|yield|(?:prep|cook|total)(?:aration|ing)? time|sources?|"
    r"references?|url|link|links|website|web|e-?mail|phone|tel|telephone|fax|mobile|address|price|cost|total|duration|length|"
    r"language|keywords?|tags?|style|tone|audience|format|step|day|week|month|year|lesson|level|phase|round|option|figure|"
    r"table|theorem|lemma|proof|definition|remark|pros?|cons?|advantages?|disadvantages?|question|answer|info|error|warn|debug|"
    r"todo|fixme|fix|feat|chore|docs|usage|output|input|results?|key|value|name|age|status|version|licen[sc]e|copyright|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|breakfast|lunch|dinner|remember|also|however|finally|first|second|third|next|then|so|but|and|or|"
    r"注意?|备注|提示|例如|比如|标题|题目|作者|日期|时间|地点|来源|主题|摘要|步骤|食材|做法|材料|用料|总结|结论|参考|链接|网址|电话|地址|邮箱|"
    r"credits?|draft date|contact|.* (?:said|says|asked|asks|replied|replies|answered|answers|added|adds|whispered)|"
    r"价格|说明|第.{1,3}[章节集部]|问题|答案|原因|结果|其[一二三次]|首先|最后|因此|所以|.*[说說道问問答讲講喊叫曰])",
    regex.IGNORECASE,
)
_LOOKS_LABELLED = regex.compile(
    rf"\s*[–—](?=[\s¡¿\p{{L}}])|{_LEAD}(?:[\p{{Lu}} .'’\-]{{3,40}}\.\s|{_NAME}(?:\s+[–—\-]\s|\t)|\[\d{{1,2}}\]"
    rf"|(?i:{_COUNTED})[\s_#\-]*\d{{1,3}}\s)"
)
_HEAD_OF_LINE = regex.compile(
    r"[^\p{L}\n]{0,12}(\p{L}[^\n:：|>;\t)\]}—–=«「.]{0,39}?)\s*+(?:[:：|>;\t)\]}—–=«「.]|- |\*\*|,\")"
)
# A word that is not part of a name; in chats, all names are in lower case.
_SMALL_WORD = regex.compile(
    r"\b(?!(?:van|von|de|der|den|del|da|di|du|la|le|of|the|and|bin|al|el|y|zu|host|co-host|guest|narrator)\b"
    # Georgian does not use capitals.
    r"|\p{Georgian})\p{Ll}"
)
# A colon or a time; a heading does not end with either.
_ENDS_LABEL = regex.compile(rf"(?:[:：]|\s{_CLOCK})[\s*_]*$")
_ENDED = regex.compile(r"[.!?…。！？][\W_]*$")
# Maximum number of characters in a label within its line and in a name; number of spaces from which a label counts as a
# sentence.
_HEAD, _LONGEST_NAME, _LONGEST_HAN_NAME, _SHORT = 200, 40, 6, 3
# In a dialogue: the number of lines up to the first name, and up to the first numbered label.
_OPENING, _LONG_OPENING = 4, 10
# Share of labelled lines that is enough to indicate a dialogue: by itself, and together with other signs of a dialogue.
_MOST, _SOME = 0.5, 0.25
# Share of a text in elements that are named after speakers; ratio of headings that are names to other headings.
_INSIDE, _MORE = 0.8, 2


@dataclass(frozen=True)
class LabelledLine:
    """A line, its number (counted from 1), the label at its beginning, if any, and the words after it.

    `sure` is true if the label has the form of a speaker label, and `aside` is the text in brackets after it.
    """

    number: int
    text: str
    label: str = ""
    words: str = ""
    sure: bool = False
    aside: str = ""


def read_labels(text: str) -> Script:
    """Read the turns of a clean text; a text without labels is one turn, with a note if it seems to contain several.

    Raises:
        BadInput: the text has no words, or has markup in an unsupported format.
    """
    cues = read_cues(text)
    plain, around = strip_surroundings(text) if cues is None else ("\n".join(cues), [])
    plain, stamped = strip_times(plain) if cues is None else (plain, 0)
    plain = _break_lines(plain)
    lines = _name_by_asides(
        [_read_line(number, line) for number, line in enumerate(plain.split("\n"), 1) if line.strip()]
    )
    clocks = [line for line in lines if line.label and regex.fullmatch(_CLOCK, line.words)]
    if 2 * len(clocks) > sum(bool(line.label) for line in lines):
        lines = [replace(line, words="") if line in clocks else line for line in lines]
    speakers, notes = _find_speakers(_leave_out_headings(lines))
    turns, more = _join_turns(lines, speakers) if speakers else ([], [])
    if cues is not None:
        notes.insert(0, f"the text consists of subtitles; {len(cues)} lines of words are read, without their times")
        voiced = sum(line.startswith(VOICE) for line in cues)
        more += (
            [f"{len(cues) - voiced} of them name no voice and keep the previous one"] if 0 < voiced < len(cues) else []
        )
    if stamped and not turns:
        notes.insert(0, f"the times at the beginning of {stamped} lines are not read as words")
    return Script.from_turns(turns or [("1", plain if cues is None else " ".join(cues))], [*around, *notes, *more])


def _break_lines(text: str) -> str:
    """Start a new line at each tag, and at each label that follows a sentence."""
    # Tags with a speaker's name, such as those of SSML, and tags that only format text.
    text = strip_tags(_SPEAKING_TAG.sub(_begin_turn, text))
    if _begins_with_tags(text):
        text = _TAG.sub(lambda tag: f"\n{VOICE}{_name_number(tag)}{VOICE}" if tag["number"] else "\n", text)
    elif sum(len(element[0]) for element in _ELEMENT.finditer(text)) >= _INSIDE * len(text.strip()):
        text = _ELEMENT.sub(lambda element: f"\n{VOICE}{element[1]}{VOICE}{' '.join(element[2].split())}\n", text)
    elif _NUMBERED.match(text[:_HEAD]):
        text = _WITHIN.sub("\n", text)
    elif (first := _NAMED.match(text[:_HEAD])) and not first["name"].islower():
        names = Counter([first["name"], *(match["name"] for match in _NAME_WITHIN.finditer(text))])
        if len(names) > 1 and len(text.split("\n")) < sum(names.values()) < 2 * sum(
            each for each in names.values() if each > 1
        ):
            text = _NAME_WITHIN.sub("\n", text)
    return text


def _leave_out_headings(lines: Sequence[LabelledLine]) -> list[LabelledLine]:
    """Return the lines that are not headings; names may look like headings."""
    # Headings may be the speakers' names; in a document, several headings occur only once.
    headings = {
        line.number: line.label or line.text
        for line in lines
        if _is_direction(line) or (line.label and not (line.sure or line.words or _ENDS_LABEL.search(line.text)))
    }
    times = Counter(headings.values())
    once = sum(
        times[line.label] == 1 and not _SCENE.match(line.text)
        for line in lines
        if line.number in headings and line.label
    )
    again = sum(times[line.label] > 1 for line in lines if line.number in headings and line.label)
    side_by_side = sum(
        one.number in headings and other.number in headings and bool(one.label and other.label)
        for one, other in pairwise(lines)
    )
    as_names = (once < 2 or again >= _MORE * once) and _MORE * side_by_side <= again
    return [
        line for line in lines if line.number not in headings or (as_names and line.label and times[line.label] > 1)
    ]


def note_inner_labels(script: Script) -> Script:
    """Return a script with a note about turns whose text contains labels; these labels are not interpreted."""
    inner = [
        str(number)
        for number, turn in enumerate(script.turns, 1)
        if len({match["number"] for match in _TAG.finditer(turn.text)} - {None}) > 1
        or sum(_NUMBERED.match(line[:_HEAD]) is not None for line in turn.text.split("\n")) > 1
        or _read_line(number, turn.text).label == turn.speaker
    ]
    if not inner:
        return script
    note = f"the text of turn {', '.join(inner[:5])} contains labels of speakers, which are read as words"
    return replace(script, notes=(*script.notes, note))


def _begin_turn(tag: regex.Match[str]) -> str:
    return f"\n{VOICE}{tag['name']}{VOICE}" if tag["name"] else "\n"


def _read_line(number: int, line: str) -> LabelledLine:
    if line.startswith(VOICE):
        _, name, words = line.split(VOICE, 2)
        return LabelledLine(number, line, name, words, sure=True)
    head = line[:_HEAD]
    match, sure = _NUMBERED.match(head), True
    if match:
        name = _name_number(match)
    elif (match := _NAMED.match(head)) and len(match["name"]) <= _LONGEST_NAME:
        name = match["name"]
        sure = regex.fullmatch(_ROLES, name, regex.IGNORECASE) is not None
    else:
        return LabelledLine(number, line)
    return LabelledLine(number, line, name, strip_time(line[match.end() :]).strip(), sure, match["aside"] or "")


def _name_by_asides(lines: list[LabelledLine]) -> list[LabelledLine]:
    """Name speakers who share a role, such as `Host (Ann):` and `Host (Bob):`, after the text in brackets."""
    asides_by_label: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        asides_by_label[line.label][line.aside] += 1
    roles = {
        label
        for label, asides in asides_by_label.items()
        if regex.fullmatch(rf"{_ROLES}", label, regex.IGNORECASE)
        and len(asides) > 1
        and all(aside and not _SMALL_WORD.search(aside) and count > 1 for aside, count in asides.items())
    }
    return [replace(line, label=line.aside) if line.label in roles else line for line in lines]


def _begins_with_tags(text: str) -> bool:
    """Return whether a text, apart from headings and directions, begins with a tag, or many of its lines do."""
    lines = [line for line in text.split("\n") if line.strip()] if _TAG.search(text) else []
    tagged = [_TAG.match(line.lstrip(' \t*_>"“')) is not None for line in lines]
    spoken = (tag for line, tag in zip(lines, tagged, strict=True) if tag or not _is_direction(LabelledLine(0, line)))
    return next(spoken, False) or sum(tagged) >= max(2, _SOME * len(lines))


def _name_number(match: regex.Match[str]) -> str:
    number, word = unicodedata.normalize("NFKC", match["number"]).lower(), match["word"]
    number = number.upper() if regex.fullmatch("[a-z]", number) else str(int(parse_number(number) or 0))
    if regex.fullmatch(rf"{_COUNTED}|s", word, regex.IGNORECASE):
        return number
    return f"{word} {number}" if word.isascii() else word + number


def _find_speakers(lines: Sequence[LabelledLine]) -> tuple[set[str], list[str]]:
    """Return the labels that name speakers (none for prose), and notes about their reliability."""
    labels = Counter(line.label for line in lines if _may_speak(line))
    sure = [at for at, line in enumerate(lines) if line.sure]
    share = sum(labels.values()) / max(1, len(lines))
    small = share == 1 and min(labels.values()) > 1
    names = {label for label in labels if small or not _SMALL_WORD.search(label)}
    again = {label for label in names if labels[label] > 1}
    # If names have their own lines, a word with a colon in the lines below is text.
    separate = {line.label for line in lines if line.label and not line.words}
    names = names & (separate | again) if separate & again else names
    alone = again >= names > set() and all(_ENDS_LABEL.search(line.text) for line in lines if line.label in names)
    # Labels that are recognisable by their form, and names that precede the first of them or are used more than once.
    certain = any(line.text.startswith(VOICE) for line in lines) or sure[:1] == [0]
    if certain or (len(sure) > 1 and share >= _SOME and sure[0] <= _LONG_OPENING):
        ahead = {line.label for line in lines[: sure[0]]} & names
        noted = (f"“{name}:” is read as a speaker, although other speakers are numbered" for name in sorted(ahead))
        return {lines[at].label for at in sure} | (names if share == 1 else again | ahead), list(noted)
    # Names at the beginning of many lines, some of them more than once.
    many = share >= _MOST or (share >= _SOME and (len(again) > 1 or alone))
    recurring = again and sum(labels[label] for label in again) >= _MOST * sum(labels.values())
    if (
        many
        and recurring
        and {line.label for line in lines[:_OPENING]} & names
        and (len(names) > 1 or share == 1 or alone)
    ):
        note = "is read as the only speaker, because it is above other lines"
        return names, [f"“{name}” {note}" for name in names if alone and len(names) == 1]
    quoted = ", ".join([f"“{label}:”" for label in dict.fromkeys(line.label for line in lines) if label][:2])
    if len(lines) == len(names) == 2 and all(" " not in line.label or _ENDED.search(line.words) for line in lines):
        return names, [f"the two lines are read as turns of two speakers ({quoted}), because each begins with a name"]
    heads = [match[1] if (match := _HEAD_OF_LINE.match(line.text[:_HEAD])) else "" for line in lines]
    heads_again = {head for head, count in Counter(heads).items() if count > 1 and not _SMALL_WORD.search(head)} - {""}
    like = sum(
        bool(
            line.label in (names | again)
            or _LOOKS_LABELLED.match(line.text[:_HEAD])
            or (len(heads_again) > 1 and head in heads_again)
        )
        for line, head in zip(lines, heads, strict=True)
    )
    # Short lines that recur above other lines, as names do.
    short = Counter(line.text.strip() for line in lines if len(line.text) <= _LONGEST_NAME)
    above = [count for text, count in short.items() if count > 1 and not _ENDED.search(text)]
    like = min(len(lines), max(like, 2 * sum(above) if len(above) > 1 or 2 * sum(above) == len(lines) else 0))
    note = (
        f"{max(like, len(sure))} of {len(lines)} lines look like turns with a label, but are read as the words of one "
        f"speaker ({quoted or 'without a colon'}); begin each turn with Speaker 1:, Speaker 2:, or give JSON"
    )
    return set(), [note] if sure or like > max(1, len(lines) / 2) or len(lines) == len(names) == 1 else []


def _may_speak(line: LabelledLine) -> bool:
    """Return whether a label can be a speaker's, because it is neither a known heading nor a sentence."""
    stem = line.label.rstrip("0123456789 .IVX") or line.label
    short = len(regex.findall(r"\p{Han}", stem)) <= _LONGEST_HAN_NAME
    return bool(line.label) and short and not _NO_SPEAKER.fullmatch(stem)


def _is_direction(line: LabelledLine) -> bool:
    """Return whether a line is not speech: a heading, a rule, a direction in brackets, or a sound."""
    return not line.sure and any(form.match(line.text) for form in (_HEADING, _SCENE, _DIRECTION_ALONE))


def _join_turns(lines: Sequence[LabelledLine], speakers: set[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Join the lines of each turn; note lines that are omitted or may belong to another turn."""
    turns: list[tuple[str, list[str]]] = []
    before: list[LabelledLine] = []
    left: list[LabelledLine] = []
    unread: list[LabelledLine] = []
    for at, line in enumerate(lines):
        # A name that other labels begin with is also a label if no space follows its colon.
        name, colon, words = line.text.strip(" *_").partition(":")
        if line.label in speakers:
            turns.append((line.label, [line.words]))
        elif colon and name.strip() in speakers:
            turns.append((name.strip(), [words]))
        elif _is_direction(line) and not (turns and _DIRECTION_ALONE.match(line.text)):
            left.append(line)
        elif turns:
            # Text that looks like a label or follows a horizontal rule, after which models write text that is not
            # spoken.
            like = line.label.count(" ") < _SHORT and line.label and any(turns[-1][1])
            unread += [line] if like or left[-1:] == lines[at - 1 : at] else []
            turns[-1][1].append(line.text.strip())
        else:
            (left if line.label and not _may_speak(line) else before).append(line)
    # A single line that announces the script is a heading; other words before the first label are a turn.
    if len(before) == 1 and before[0].text.rstrip(" *_").endswith((":", "：")):
        left, before = [*before, *left], []
    turns.insert(0, (UNLABELLED, [line.text.strip() for line in before]))
    noted = {
        f"words before the first label are read as a turn of “{UNLABELLED}”; label them if others say them": before,
        "left out because they are not spoken (headings, directions, sounds)": left,
        "read as words of the previous turn, not as the label of a speaker": unread,
    }
    notes = [
        f"{what}: line "
        + ", ".join(f"{line.number} (“{' '.join(line.text.split())[:40]}”)" for line in some[:3])
        + (f" and {len(some) - 3} more" if len(some) > 3 else "")
        for what, some in noted.items()
        if some
    ]
    return [(speaker, text) for speaker, words in turns if (text := " ".join(words).strip())], notes
