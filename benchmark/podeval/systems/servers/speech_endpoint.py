"""`POST /audio/speech` of the OpenAI API: each turn of a script is asked for in its speaker's voice, all are joined.

Joining is that of the built-in readers (`podeval.systems.dialogue_reader`). Turns are asked for one after the other, so
that what is timed is one listener's. Sound is asked for as WAV, whose header states the rate, in a stream too; from a
server that refuses that, as samples without a header. `podeval.systems.servers.sound_reading` reads what comes. Where
headers contradict the sound, the sound counts, and the log says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from podeval.audio.resample import resample
from podeval.errors import BadInput
from podeval.systems.dialogue_reader import DialogueReader, join_lines, list_lines
from podeval.systems.servers.connection import ServerConnection, ServerResponse, ServerSystem
from podeval.systems.servers.sound_reading import ServedSound, read_sound
from podeval.systems.servers.streaming import summarise_playback
from podeval.systems.speech import Ask, Speech, SpeechFailed


@dataclass
class SpeechEndpoint(ServerSystem):
    """A system that reads scripts aloud.

    Attributes:
        voices: names of voices there; the n-th speaker of a script without one of their own gets the n-th.
        by_speaker: voices of speakers by name.
        stream: whether the sound is asked for in a stream.
    """

    voices: tuple[str, ...]
    by_speaker: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    options: ClassVar[tuple[str, ...]] = ("voice", "stream")

    @classmethod
    def open(cls, connection: ServerConnection, model: str, voice: Sequence[str] = (), stream: bool = False) -> Self:
        """See `ServerSystem.open`; without a voice the server is asked for its own.

        Args:
            connection: the connection to the server.
            model: the name of the model there.
            voice: names of voices, or SPEAKER=VOICE.
            stream: whether the sound is asked for in a stream.

        Raises:
            BadInput: the server does not list its voices.
        """
        pairs = [name.partition("=") for name in voice]
        by_speaker = {speaker: name for speaker, equals, name in pairs if equals}
        voices = tuple(name for name, equals, _ in pairs if not equals)
        return cls(connection, model, voices if pairs else _ask_for_voices(connection), by_speaker, stream)

    @property
    def generation(self) -> dict[str, Any]:
        """Everything that changes what is said, as far as a client knows it."""
        return {
            "system": "server",
            "server": self.connection.url,
            "model": self.model,
            "voices": list(self.voices),
            "by_speaker": dict(self.by_speaker),
            "stream": self.stream,
            # What was streamed before it was asked for may be events that were read as sound: that run is another one.
            **({"stream_format": "audio"} if self.stream else {}),
            "extra": {},
            "strategy": "chunked",
            "chunk": "turn",
            **DialogueReader.assembly(),
        }

    def make(self, asks: Sequence[Ask], seed: int) -> list[Speech]:
        """Have each script read aloud; see `OutputMaker.make`."""
        return [self._speak(ask, seed) for ask in asks]

    def _speak(self, ask: Ask, seed: int) -> Speech:
        script = ask.spoken()
        voices = self._assign_voices(script.speakers)
        lines = list_lines(script)
        served = [self._say(line.text, voices[script.turns[line.turn].speaker], seed) for line in lines]
        rate = served[0][0].rate
        sounds = [
            sound.samples if sound.rate == rate else resample(sound.samples, sound.rate, rate) for sound, _ in served
        ]
        samples, turns = join_lines(script, lines, sounds, rate)
        if not turns:
            raise SpeechFailed(f"the server sent only silence for a script of {len(script.turns)} turns")
        rates = sorted({sound.rate for sound, _ in served})
        responses = [response for _, response in served]
        costs = [response.cost for response in responses if response.cost is not None]
        lies = [lie for sound, _ in served for lie in sound.lies]
        notes = [note for sound, _ in served for note in sound.notes]
        return Speech(
            samples,
            rate,
            turns,
            wall_seconds=sum(response.seconds for response in responses),
            details={
                "seed": seed,
                "voices": voices,
                "requests": sum(response.tries for response in responses),
                "playback": summarise_playback([sound.playback for sound, _ in served], [r.seconds for r in responses]),
                **({"rates": rates} if len(rates) > 1 else {}),
                **({"cost": round(sum(costs), 8)} if costs else {}),
                **({"headers_wrong": list(dict.fromkeys(lies))} if lies else {}),
                **({"notes": list(dict.fromkeys(notes))} if notes else {}),
                **self.connection.list_refused(),
            },
        )

    def _assign_voices(self, speakers: Sequence[str]) -> dict[str, str]:
        others = [speaker for speaker in speakers if speaker not in self.by_speaker]
        if len(others) > len(self.voices):
            raise BadInput(
                f"the script has the speakers {', '.join(others)[:200]}, and {len(self.voices)} voices are named for "
                "them; name one for each with --voice"
            )
        return {
            **dict(zip(others, self.voices, strict=False)),
            **{who: v for who, v in self.by_speaker.items() if who in speakers},
        }

    def _say(self, text: str, voice: str, seed: int) -> tuple[ServedSound, ServerResponse]:
        form = {"response_format": "wav", **({"stream": True, "stream_format": "audio"} if self.stream else {})}
        body = {"model": self.model, "input": text, "voice": voice, **form, "seed": seed}
        return self.connection.post("audio/speech", body, lambda response: read_sound(response, text))


def _ask_for_voices(connection: ServerConnection) -> tuple[str, ...]:
    """Ask a server which voices it has.

    Raises:
        BadInput: it does not say.
    """
    answer = connection.get("audio/voices")
    entries = answer.get("voices") if isinstance(answer, dict) else answer
    listing = entries if isinstance(entries, list) else []
    names = [voice.get("id") or voice.get("name") if isinstance(voice, dict) else voice for voice in listing]
    voices = tuple(voice for voice in names if isinstance(voice, str) and voice)
    if not voices:
        raise BadInput(
            f"{connection.url} does not list its voices; give one for each speaker: --voice alloy --voice onyx"
        )
    return voices
