"""What people and good systems reach on a metric: the values that a reader sets a score against, each with its source.

They are facts of a metric's declaration, as `reach=Reach(...)` of a key. A range is the middle half of recordings where
recordings were measured one by one, and the span of the averages where a paper prints averages.
"""

from dataclasses import dataclass

from podeval.models.card import Profile

CLIPS = (
    "the middle half of 34 clips of real podcasts, and of 51 by NotebookLM, MOSS-TTSD and MoonCast "
    "(clips of PodEval's listening test, about 17 s each), measured here"
)
STUDY = "the middle half of the undistorted clips of 20 s in docs/distortion-study.md, of people and of machines"
PEOPLE_TURNS = "people in 411 broadcasts (VoxConverse) and 170 meetings (AMI), from their published turn times"
READERS = "the middle half of ten readers of LibriTTS-R, whose clips podeval ships, measured here"
LFS = "LFS-Bench, Tables 2 and 3: real speech and dialogue, and the averages of open and of closed systems"
LFS_JUDGED = f"{LFS}, by the judges of the paper"
PODEVAL_TEXTS = "PodEval, Tables 4 to 7: transcripts of real podcasts, and scripts by GPT-4, PodAgent and MoonCast"
PODEVAL_AUDIO = "PodEval, Table 9: real podcasts, and the systems of the paper"
PODBENCH = "PodBench, Table 1: Claude 4.5 Sonnet, GPT-5.1 and Gemini 3 Pro; no scripts by people"
DEMO = "Hibari with Piper, and Kokoro, on the six demo scripts of Real-Pod (`podeval demo --more`), measured here"
PEOPLE_STRETCHES = f"{PEOPLE_TURNS}, stretches of 15 and of 50 events"
LFS_SPEED = "LFS-Bench, Table 9: ten open systems, one speaker"
PODEVAL_HARMONY = "PodEval, Table 9, converted from 0…1 back to a cosine: real podcasts and PodAgent"
PODEVAL_QUESTIONS = "PodEval, Table 10: real podcasts and NotebookLM, Q scores, the mean over the questions"
PAM_READERS = "PAM, Table 6: StyleTTS, MQTTS and YourTTS reading LibriTTS"
MTALK_RUBRIC = "MTalk-Bench, Table 2: all dialogues, by people and by three judges"
MTALK = "MTalk-Bench, Table 4: the systems of the paper, and people"

PART = "A component of the metric; no values of people or of systems have been published for it"
RAW = "Depends on how a text is spelled, so values of other texts are no guide; use the normalised rate"
NEW = "Defined by podeval; no recordings of people or of many systems have been measured with it yet"
UNRUN = "Its real weights were not available here, and published values are for other material"
UNMEASURED = "No clips of people or of systems have been measured with it here yet"
VARIANT = "A variant of the metric; no values of people or of systems are known for it"
PLACE = "Relative to the other systems in one arena; meaningless outside it"
RELATIVE = "Relative to the other systems in one listening test; meaningless outside it"
ZERO = "Relative to a reference script, which counts as 0, so there is no typical value"
LENGTH = "Grows with the length of the text, so values of texts of other lengths are no guide"
HARDWARE = "Depends on the machine; no paper reports it for the same one"


_ZH = {
    CLIPS: "34 段真实播客以及 NotebookLM、MOSS-TTSD、MoonCast 的 51 段音频的中间一半"
    "（PodEval 听力测试的片段，每段约 17 秒），由本项目测得",
    STUDY: "docs/distortion-study.md 中未经失真处理的 20 秒片段的中间一半，包括真人和机器",
    PEOPLE_TURNS: "411 个广播节目（VoxConverse）和 170 场会议（AMI）中的真人对话，按其公开的话轮时间",
    PEOPLE_STRETCHES: "411 个广播节目（VoxConverse）和 170 场会议（AMI）中的真人对话，按其公开的话轮时间，"
    "每段 15 和 50 个事件",
    READERS: "LibriTTS-R 十位朗读者（podeval 自带其片段）的中间一半，由本项目测得",
    LFS: "LFS-Bench，表 2 和表 3：真实语音与对话，以及开源和闭源系统的平均值",
    LFS_JUDGED: "LFS-Bench，表 2 和表 3：真实语音与对话，以及开源和闭源系统的平均值，由论文的裁判模型评分",
    LFS_SPEED: "LFS-Bench，表 9：十个开源系统，单说话人",
    PODEVAL_TEXTS: "PodEval，表 4 至表 7：真实播客的文字稿，以及 GPT-4、PodAgent 和 MoonCast 的脚本",
    PODEVAL_AUDIO: "PodEval，表 9：真实播客，以及论文中的系统",
    PODEVAL_HARMONY: "PodEval，表 9，由 0 至 1 换算回余弦：真实播客和 PodAgent",
    PODEVAL_QUESTIONS: "PodEval，表 10：真实播客和 NotebookLM，Q 分数，各问题的平均值",
    PODBENCH: "PodBench，表 1：Claude 4.5 Sonnet、GPT-5.1 和 Gemini 3 Pro；没有真人撰写的脚本",
    DEMO: "Hibari 配 Piper，以及 Kokoro，朗读 Real-Pod 的六份演示脚本（`podeval demo --more`），由本项目测得",
    PAM_READERS: "PAM，表 6：StyleTTS、MQTTS 和 YourTTS 朗读 LibriTTS",
    MTALK_RUBRIC: "MTalk-Bench，表 2：全部对话，由真人和三个裁判模型评分",
    MTALK: "MTalk-Bench，表 4：论文中的系统，以及真人",
    PART: "这是指标的一部分，尚无人公布真人或系统的数值",
    RAW: "取决于文本的写法，其他文本的数值没有参考意义；请看规范化后的错误率",
    NEW: "由 podeval 定义，尚未用它测量真人录音或大量系统",
    UNRUN: "此处无法取得其真实权重，而论文公布的数值出自其他材料",
    UNMEASURED: "尚未用它测量真人和系统的片段",
    VARIANT: "这是指标的变体，尚无已知的真人或系统数值",
    PLACE: "只表示在同一竞技场各系统中的位置，离开该竞技场没有意义",
    RELATIVE: "相对于同一听力测试中的其他系统，离开该测试没有意义",
    ZERO: "相对于计为 0 的参考脚本，没有通常数值可言",
    LENGTH: "随文本变长而增大，长度不同的文本的数值没有参考意义",
    HARDWARE: "取决于机器，没有论文在同一机器上报告过",
}
"""The sentences above in Chinese."""


def say(sentence: str, language: str) -> str:
    """Return a sentence of this file, a source or why there is none, in a language of the site."""
    return _ZH.get(sentence, sentence) if language == "zh" else sentence


@dataclass(frozen=True)
class Reach:
    """What people and good systems reach, as ranges of a key's value.

    Attributes:
        source: where the values are from.
        people: recordings or scripts of people; None where nothing is known.
        systems: good systems; None where nothing is known.
        profile: whose models the values were measured with; empty where they hold for every profile.
    """

    source: str
    people: tuple[float, float] | None = None
    systems: tuple[float, float] | None = None
    profile: Profile | None = None

    @property
    def usual(self) -> tuple[float, float]:
        """The range that holds both."""
        ranges = [span for span in (self.people, self.systems) if span]
        return min(low for low, _ in ranges), max(high for _, high in ranges)
