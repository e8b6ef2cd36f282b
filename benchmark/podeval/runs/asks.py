"""An item asks something of a system: to speak a script, to write one, or to answer a person's turns."""

from podeval.benchmarks.benchmark import Item
from podeval.systems.ask import Ask, RecordedUserTurn, Reference


def ask_of(track: str, item: Item) -> Ask:
    """Ask for an item as systems in our own processes are asked: recordings by their paths on this machine."""
    match track:
        case "voice" if item.script is not None:
            voices = {
                speaker: Reference(audio=str(voice.recording()), text=voice.words)
                for speaker, voice in item.reference_voices.items()
            }
            return Ask(id=item.id, language=item.language, script=item.script.turns, voices=voices)
        case "write":
            return Ask(id=item.id, language=item.language, prompt=write_prompt(item))
    turns = tuple(RecordedUserTurn(id=turn.id, words=turn.words, audio=turn.audio) for turn in item.user)
    return Ask(id=item.id, language=item.language, user=turns)


def write_prompt(item: Item) -> str:
    """Return the prompt of a script writer: the item's instruction with its sources, or a request on its topic."""
    if item.instruction:
        return "\n\n".join([item.instruction, *item.sources])
    if item.language == "zh":
        request = f"请为{item.voices}位说话人写一期完整的播客脚本，主题是：{item.topic}"
        return f"{request}\n每个话轮单独一行，以说话人的名字和冒号开头。"
    request = f"Write the whole script of a podcast episode for {item.voices} speakers on this topic: {item.topic}"
    return f"{request}\nGive each turn a line of its own that starts with the speaker's name and a colon."
