"""The Chinese lines of the bias study for Kokoro's voices: the lines in pinyin, and the sounds that the network reads.

Kokoro was trained on Mandarin, but podeval's `kokoro` cannot convert Chinese characters to sounds, and espeak-ng's
sounds lack the fourth tone. The study's 28 lines are therefore written here as they are read, with neutral tones and
the changed tones of 一 and 不, and are converted to sounds in the notation of Kokoro's own converter (misaki). The
voices are Japanese and have an accent.
"""

import re
from functools import cached_property

from podeval.systems import kokoro

PINYIN = {
    "渡轮早上七点离开港口，船上的人看着镇上的灯光慢慢变小。": "du4 lun2 zao3 shang5 qi1 dian3 li2 kai1 gang3 kou3, "
    "chuan2 shang5 de5 ren2 kan4 zhe5 zhen4 shang5 de5 deng1 guang1 man4 man4 bian4 xiao3.",
    "他们大多在对岸工作，有些人二十年来一直坐在同一个座位上。": "ta1 men5 da4 duo1 zai4 dui4 an4 gong1 zuo4, "
    "you3 xie1 ren2 er4 shi2 nian2 lai2 yi4 zhi2 zuo4 zai4 tong2 yi2 ge4 zuo4 wei4 shang5.",
    "起雾的时候，船长拉响汽笛，有一阵子谁也不说话。": "qi3 wu4 de5 shi2 hou5, chuan2 zhang3 la1 xiang3 qi4 di2, "
    "you3 yi2 zhen4 zi5 shei2 ye3 bu4 shuo1 hua4.",
    "后来有人倒了一杯茶，有人笑了起来，谈话又从停下的地方继续。": "hou4 lai2 you3 ren2 dao4 le5 yi4 bei1 cha2, "
    "you3 ren2 xiao4 le5 qi3 lai2, tan2 hua4 you4 cong2 ting2 xia4 de5 di4 fang5 ji4 xu4.",
    "你今天早上看见渡轮了吗？": "ni3 jin1 tian1 zao3 shang5 kan4 jian4 du4 lun2 le5 ma5?",
    "看见了，晚开了十分钟。": "kan4 jian4 le5, wan3 kai1 le5 shi2 fen1 zhong1.",
    "水面上又起雾了吗？": "shui3 mian4 shang5 you4 qi3 wu4 le5 ma5?",
    "比今年哪一次都大。": "bi3 jin1 nian2 na3 yi2 ci4 dou1 da4.",
    "所以船长只好等天亮。": "suo3 yi3 chuan2 zhang3 zhi3 hao3 deng3 tian1 liang4.",
    "我记得他拉了两次汽笛。": "wo3 ji4 de5 ta1 la1 le5 liang3 ci4 qi4 di2.",
    "上层甲板上站着谁？": "shang4 ceng2 jia3 ban3 shang5 zhan4 zhe5 shei2?",
    "大多是在镇上工作的人。": "da4 duo1 shi4 zai4 zhen4 shang5 gong1 zuo4 de5 ren2.",
    "我的邻居每天坐那班船。": "wo3 de5 lin2 ju1 mei3 tian1 zuo4 na4 ban1 chuan2.",
    "他一直坐同一个座位吗？": "ta1 yi4 zhi2 zuo4 tong2 yi2 ge4 zuo4 wei4 ma5?",
    "坐了二十年，靠左边的窗。": "zuo4 le5 er4 shi2 nian2, kao4 zuo3 bian1 de5 chuang1.",
    "那他一定认得每一朵浪花。": "na4 ta1 yi2 ding4 ren4 de5 mei3 yi4 duo3 lang4 hua1.",
    "他说他是为了喝茶才来的。": "ta1 shuo1 ta1 shi4 wei4 le5 he1 cha2 cai2 lai2 de5.",
    "船上的茶可不怎么好喝。": "chuan2 shang5 de5 cha2 ke3 bu4 zen3 me5 hao3 he1.",
    "也许天冷的时候好喝一些。": "ye3 xu3 tian1 leng3 de5 shi2 hou5 hao3 he1 yi4 xie1.",
    "可能吧，我只在家里喝茶。": "ke3 neng2 ba5, wo3 zhi3 zai4 jia1 li3 he1 cha2.",
    "那我们星期天去坐船吧？": "na4 wo3 men5 xing1 qi1 tian1 qu4 zuo4 chuan2 ba5?",
    "天气好的话，我很想去。": "tian1 qi4 hao3 de5 hua4, wo3 hen3 xiang3 qu4.",
    "我们可以沿着对岸走走。": "wo3 men5 ke3 yi3 yan2 zhe5 dui4 an4 zou3 zou3.",
    "山的后面有一座灯塔。": "shan1 de5 hou4 mian4 you3 yi2 zuo4 deng1 ta3.",
    "我从来没有上去过那里。": "wo3 cong2 lai2 mei2 you3 shang4 qu4 guo5 na4 li5.",
    "楼梯很陡，但是风景很好。": "lou2 ti1 hen3 dou3, dan4 shi4 feng1 jing3 hen3 hao3.",
    "带件外套，那里风很大。": "dai4 jian4 wai4 tao4, na4 li5 feng1 hen3 da4.",
    "好的，再带点热的吃的。": "hao3 de5, zai4 dai4 dian3 re4 de5 chi1 de5.",
}
"""The pinyin of each line, with tones as digits; 5 is the neutral tone."""

_INITIALS = {
    "zh": "ꭧ", "ch": "ꭧʰ", "sh": "ʂ", "b": "p", "p": "pʰ", "m": "m", "f": "f", "d": "t", "t": "tʰ", "n": "n", "l": "l",
    "g": "k", "k": "kʰ", "h": "x", "j": "ʨ", "q": "ʨʰ", "x": "ɕ", "r": "ɻ", "z": "ʦ", "c": "ʦʰ", "s": "s",
}  # fmt: skip
_FINALS = {
    "a": "a", "o": "wo", "e": "ɤ", "ai": "ai", "ei": "ei", "ao": "au", "ou": "ou", "an": "an", "en": "ən", "ang": "aŋ",
    "eng": "əŋ", "ong": "ʊŋ", "er": "ɚ", "i": "i", "ia": "ja", "ie": "je", "iao": "jau", "iu": "jou", "ian": "jɛn",
    "in": "in", "iang": "jaŋ", "ing": "iŋ", "iong": "jʊŋ", "u": "u", "ua": "wa", "uo": "wo", "uai": "wai", "ui": "wei",
    "uan": "wan", "un": "wən", "uang": "waŋ", "v": "y", "ve": "ɥe", "van": "ɥɛn", "vn": "yn",
}  # fmt: skip
_TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}
_BUZZED = {"zh", "ch", "sh", "r", "z", "c", "s"}
"""Initials after which the letter i stands for another sound."""


def spell(text: str) -> str:
    """Return the sounds of one of the study's lines.

    Raises:
        KeyError: the line is not one of the study's.
    """
    return re.sub(r"([a-z]+[1-5]) ?", lambda syllable: _sound(syllable[1]), PINYIN[text])


# The network is private to the system and reads the system's text; here, it is given other text.
class _ChineseNetwork(kokoro._Network):
    """The network of Kokoro, which is given the sounds of the study's lines."""

    def spell(self, text: str) -> list[int]:
        """Return the numbers of a line's sounds; a `KeyError` names a sound that the network does not support."""
        return [self._numbers[sound] for sound in spell(text)]


class ChineseKokoro(kokoro.Kokoro):
    """Kokoro for the study's Chinese lines only."""

    @cached_property
    def network(self) -> _ChineseNetwork:
        """The network, which is given the sounds of the study's lines."""
        return _ChineseNetwork(self.threads)


def _sound(syllable: str) -> str:
    tone, letters = syllable[-1], syllable[:-1]
    letters = re.sub(r"^yu", "v", letters)
    letters = re.sub(r"^y(?=i)", "", letters)
    letters = re.sub(r"^y", "i", letters)
    letters = re.sub(r"^w(?=u)", "", letters)
    letters = re.sub(r"^w", "u", letters)
    # The finals of you, wei and wen are spelled differently after an initial.
    letters = {"iou": "iu", "uei": "ui", "uen": "un"}.get(letters, letters)
    initial = next((each for each in _INITIALS if letters.startswith(each)), "")
    final = letters[len(initial) :]
    if initial in ("j", "q", "x") and final.startswith("u"):
        final = "v" + final[1:]
    vowel = "ɨ" if initial in _BUZZED and final == "i" else _FINALS[final]
    return _INITIALS.get(initial, "") + vowel + _TONES[tone]
