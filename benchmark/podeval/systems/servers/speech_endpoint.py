"""Have a server read scripts aloud: as a whole if the server is of a kind that performs dialogues, otherwise turn by
turn.

The kind of the server determines which requests are sent, and in what form (`podeval.systems.servers.kinds`). Turns are
requested one after the other, so the times are those that a single listener would experience, unless several requests
are in flight (`podeval.systems.servers.streaming`). The audio of the turns is joined as in the built-in readers
(`podeval.systems.dialogue_reader`). A whole dialogue is cut only if it is too long for a request.
`podeval.systems.servers.sound_reading` reads the audio; if headers contradict the audio, the audio takes precedence,
and the log records this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, Self

from podeval.audio.samples import resample
from podeval.errors import BadInput
from podeval.systems.dialogue_reader import (
    PIECE_PAUSE,
    cut_silence,
    describe_chunks,
    fit_lines,
    join_lines,
    join_pieces,
    list_lines,
)
from podeval.systems.servers.connection import (
    RequestRefused,
    ServerConnection,
    ServerRefused,
    ServerResponse,
    ServerSystem,
)
from podeval.systems.servers.kinds import open_kind
from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice
from podeval.systems.servers.server_errors import add_fields, read_fields
from podeval.systems.servers.sound_reading import ReferenceClip, ServedSound
from podeval.systems.servers.streaming import summarise_playback
from podeval.systems.speech import Ask, Samples, Speech, SpeechFailed, SpokenTurn
from podeval.text.script import Script

Served = tuple[ServedSound, ServerResponse]


@dataclass
class SpeechEndpoint(ServerSystem):
    """A system that reads scripts aloud.

    Attributes:
        voices: names of voices on the server; they are assigned in order to the speakers who are not in `by_speaker`.
        by_speaker: names of voices on the server, by the name of the speaker.
        stream: whether the audio is requested as a stream.
        kind: the kind of the server; OpenAI's API by default.
        clone: whether each speaker has the reference voice from the item.
        whole: whether scripts are sent as a whole.
        fields: fields that are added to every request or, if they are None, omitted from it.
    """

    voices: tuple[str, ...]
    by_speaker: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    kind: ServerKind = None  # type: ignore[assignment] # set below
    clone: bool = False
    whole: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: ClassVar[tuple[str, ...]] = ("voice", "stream", "server_kind", "clone", "dialogue", "field")

    def __post_init__(self) -> None:
        self.kind = self.kind or open_kind("openai", self.connection, self.model)
        self._adopting = Lock()
        self._adopted: dict[str, Voice] = {}

    @classmethod
    def open(
        cls,
        connection: ServerConnection,
        model: str,
        voice: Sequence[str] = (),
        stream: bool = False,
        server_kind: str = "openai",
        clone: bool = False,
        dialogue: str = "",
        field: Sequence[str] = (),
    ) -> Self:
        """See `ServerSystem.open`; if no voice is named, the server is asked for its voices.

        Args:
            connection: the connection to the server.
            model: the name of the model on the server.
            voice: names of voices, or SPEAKER=VOICE.
            stream: whether the audio is requested as a stream.
            server_kind: the name of the server's kind.
            clone: whether each speaker has the reference voice from the item.
            dialogue: `whole` or `turns`; `whole` by default if the model is known to perform dialogues.
            field: fields for every request, as KEY=JSON.

        Raises:
            BadInput: the server does not list its voices, or an option does not fit the server's kind.
        """
        kind = open_kind(server_kind, connection, model)
        if clone and voice:
            raise BadInput("--clone gives each speaker the reference voice of the item; leave out --voice")
        if clone and not kind.clones:
            raise BadInput(f"a server of the kind {kind.name} does not accept reference voices; leave out --clone")
        if stream and not kind.streams:
            raise BadInput(f"a server of the kind {kind.name} sends its audio in one piece; leave out --stream")
        speakers = kind.count_speakers(clone)
        if dialogue == "whole" and speakers < 2 and not clone:
            raise BadInput(f"a server of the kind {kind.name} accepts one turn per request; leave out --dialogue whole")
        fits = kind.names_voices or (len(voice) < 2 and not any("=" in name for name in voice))
        if dialogue == "whole" and not fits:
            raise BadInput(
                f"{model} gives the speakers of a dialogue its own voices; name at most one voice with --voice"
            )
        whole = (dialogue == "whole" or (not dialogue and kind.performs and fits)) and speakers > 1
        pairs = [name.partition("=") for name in voice]
        if not all(name if equals else first for first, equals, name in pairs):
            raise BadInput("--voice takes the name of a voice, or SPEAKER=VOICE; one value lacks a name")
        by_speaker = {speaker: name for speaker, equals, name in pairs if equals}
        voices = tuple(name for name, equals, _ in pairs if not equals)
        if unknown := kind.list_unknown([*voices, *by_speaker.values()]):
            raise BadInput(
                f"the server has no voice {', '.join(unknown)[:200]} and would use a different voice; set --voice "
                f"to one of "
                f"{', '.join(kind.list_voices())[:500]}"
            )
        if not pairs and not clone and (kind.names_voices or not whole):
            voices = _ask_for_voices(kind)
        return cls(kind.connection, model, voices, by_speaker, stream, kind, clone, whole, read_fields(field))

    @property
    def way(self) -> str:
        """How scripts are sent, in words."""
        voice = "in the reference voices of each item" if self.clone else "in voices of the server"
        if self.whole:
            return f"scripts are sent whole, {voice}"
        is_one = self.clone and self.kind.count_speakers(clone=True) < 2
        one = f", because {self.kind.name} accepts one reference voice per request" if is_one else ""
        return f"scripts are sent turn by turn, {voice}{one}"

    @property
    def generation(self) -> dict[str, Any]:
        """All settings that change the speech and are known to the client."""
        longest = self.kind.longest(self.whole)
        return {
            "system": "server",
            "server": self.connection.url,
            "model": self.model,
            "voices": "reference" if self.clone else list(self.voices),
            "by_speaker": dict(self.by_speaker),
            "stream": self.stream,
            # Earlier versions did not request a stream of audio, so their runs may contain events that were read as
            # audio; these runs count as different runs.
            **({"stream_format": "audio"} if self.stream else {}),
            "extra": dict(self.fields),
            # Runs on servers with OpenAI's API have the same identity as before kinds of servers were introduced.
            **({"kind": self.kind.name, "longest_request": longest} if self.kind.name != "openai" else {}),
            **({"checkpoint": self.kind.checkpoint} if self.kind.checkpoint not in ("", self.model) else {}),
            **(self._describe_whole() if self.whole else describe_chunks()),
        }

    def _describe_whole(self) -> dict[str, Any]:
        most = self.kind.count_speakers(self.clone)
        form = {"pause": PIECE_PAUSE, "most_speakers": most, "else": describe_chunks()}
        return {"strategy": "whole", **self.kind.describe_dialogue(), **form}

    def require_some(self, asks: Sequence[Ask], seed: int) -> None:
        """Refuse voices for speakers who are not in any script.

        Raises:
            BadInput: there are such voices; the message names them.
        """
        scripts = [ask.spoken() for ask in asks if self.by_speaker and ask.script is not None]
        if unknown := self.by_speaker.keys() - {speaker for script in scripts for speaker in script.speakers}:
            raise BadInput(f"--voice names {', '.join(sorted(unknown))}, but no script has such a speaker")

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Have an item's script read aloud."""
        script = ask.spoken()
        most = self.kind.count_speakers(self.clone)
        whole = self.whole and len(script.speakers) <= most
        voices = self._assign_voices(ask, script.speakers, whole)
        speech = (self._perform if whole else self._read)(script, voices, seed)
        if self.whole and not whole:
            note = (
                f"scripts of more than {most} speakers are sent turn by turn, because a request may have at most {most}"
            )
            return replace(speech, details={**speech.details, "notes": [*speech.details.get("notes", ()), note]})
        return speech

    def _perform(self, script: Script, voices: Mapping[str, Voice], seed: int) -> Speech:
        """Speak whole dialogues, in as many parts of the script as the maximum length of a request requires."""
        kind, longest = self.kind, self.kind.longest(whole=True)
        name = max(script.speakers, key=len)
        lines = fit_lines(
            list_lines(script), longest, lambda text: kind.measure_parts([DialoguePart(name, text)], voices)
        )
        pieces: list[list[DialoguePart]] = []
        for part in (DialoguePart(script.turns[line.turn].speaker, line.text) for line in lines):
            if not pieces or (longest and kind.measure_parts([*pieces[-1], part], voices) > longest):
                pieces.append([])
            pieces[-1].append(part)
        served = self.connection.pace.ask_each(
            lambda piece: self._send(
                kind.write_dialogue(piece, voices, seed, stream=self.stream), " ".join(part.text for part in piece)
            ),
            pieces,
        )
        rate, sounds = _at_one_rate(served)
        if not all(len(cut_silence(sound, rate)) for sound in sounds):
            raise SpeechFailed(f"the server sent only silence for a script of {len(script.turns)} turns")
        way = {"strategy": "whole" if len(pieces) == 1 else "chunks", "cuts": len(pieces) - 1}
        return self._describe(
            served, join_pieces(sounds, rate), (), voices, {"seed": self.fields.get("seed", seed), **way}
        )

    def _read(self, script: Script, voices: Mapping[str, Voice], seed: int) -> Speech:
        """Have a script spoken turn by turn."""
        lines = fit_lines(list_lines(script), self.kind.longest(whole=False), self.kind.measure_text)
        served = self.connection.pace.ask_each(
            lambda line: self._send(
                self.kind.write_turn(line.text, voices[script.turns[line.turn].speaker], seed, stream=self.stream),
                line.text,
            ),
            lines,
        )
        rate, sounds = _at_one_rate(served)
        samples, turns = join_lines(script, lines, sounds, rate)
        if not turns:
            raise SpeechFailed(f"the server sent only silence for a script of {len(script.turns)} turns")
        cuts = len(lines) - len({line.turn for line in lines})
        way = {**({"strategy": "turns"} if self.whole else {}), **({"cuts": cuts} if cuts else {})}
        return self._describe(served, samples, turns, voices, {"seed": self.fields.get("seed", seed), **way})

    def _send(self, request: SpeechRequest, what: str) -> Served:
        return self.kind.post(replace(request, body=add_fields(request.body, self.fields)), what)

    def _describe(
        self,
        served: Sequence[Served],
        samples: Samples,
        turns: tuple[SpokenTurn, ...],
        voices: Mapping[str, Voice],
        details: Mapping[str, Any],
    ) -> Speech:
        """Return the speech with all known details."""
        rates = sorted({sound.rate for sound, _ in served})
        responses = [response for _, response in served]
        costs = [response.cost for response in responses if response.cost is not None]
        lies = [lie for sound, _ in served for lie in sound.lies]
        notes = [note for sound, _ in served for note in sound.notes]
        names = {who: "reference" if self.clone else voice or "the model's" for who, voice in voices.items()}
        return Speech(
            samples,
            served[0][0].rate,
            turns,
            wall_seconds=sum(response.seconds for response in responses),
            details={
                **details,
                "voices": names,
                "requests": sum(response.tries for response in responses),
                "playback": summarise_playback([sound.playback for sound, _ in served], [r.seconds for r in responses]),
                **({"rates": rates} if len(rates) > 1 else {}),
                **({"cost": round(sum(costs), 8)} if costs else {}),
                **({"headers_wrong": list(dict.fromkeys(lies))} if lies else {}),
                **({"notes": list(dict.fromkeys(notes))} if notes else {}),
                **self.connection.list_refused(),
            },
        )

    def _assign_voices(self, ask: Ask, speakers: Sequence[str], whole: bool) -> dict[str, Voice]:
        """Return the voice of each speaker, in the order of the script.

        Raises:
            BadInput: there are fewer voices than speakers.
            ServerRefused: the item has no reference voice for a speaker.
            RequestRefused: two speakers would share a reference voice, or the server does not accept a voice of this
                length.
        """
        if self.clone:
            return self._clone_voices(ask, speakers)
        if whole and not self.kind.names_voices:
            return dict.fromkeys(speakers, self.voices[0] if self.voices else "")
        others = [speaker for speaker in speakers if speaker not in self.by_speaker]
        if len(others) > len(self.voices):
            raise BadInput(
                f"the script has the speakers {', '.join(others)[:200]}, but {len(self.voices)} voices are named "
                f"for them; name a voice for each speaker with --voice"
            )
        voices = {**self.by_speaker, **dict(zip(others, self.voices, strict=False))}
        return {speaker: voices[speaker] for speaker in speakers}

    def _clone_voices(self, ask: Ask, speakers: Sequence[str]) -> dict[str, Voice]:
        if missing := [speaker for speaker in speakers if speaker not in ask.voices]:
            raise ServerRefused(
                f"{ask.id} has no reference voice for {', '.join(missing)[:200]}; choose a split that has reference "
                f"voices, such as --split topics, or leave out --clone"
            )
        clips = {speaker: ReferenceClip.read(ask.voices[speaker]) for speaker in speakers}
        if len({clip.digest for clip in clips.values()}) < len(clips):
            raise RequestRefused(
                f"two speakers of {ask.id} have the same reference voice, but each needs a different one"
            )
        # If several items are in flight, only one of them uploads a voice.
        with self._adopting:
            for clip in clips.values():
                self._adopted[clip.digest] = self._adopted.get(clip.digest) or self.kind.adopt(clip)
        return {speaker: self._adopted[clip.digest] for speaker, clip in clips.items()}


def _at_one_rate(served: Sequence[Served]) -> tuple[int, list[Samples]]:
    """Return the rate of the first piece of audio, and all pieces at that rate."""
    rate = served[0][0].rate
    return rate, [
        sound.samples if sound.rate == rate else resample(sound.samples, sound.rate, rate) for sound, _ in served
    ]


def _ask_for_voices(kind: ServerKind) -> tuple[str, ...]:
    """Ask a server for its voices.

    Raises:
        BadInput: the server does not list its voices.
    """
    voices = kind.list_voices()
    if not voices:
        clone = ", or --clone" if kind.clones else ""
        example = " ".join(f"--voice {name}" for name in kind.voice_examples)
        raise BadInput(
            f"{kind.connection.url} does not list its voices; name a voice for each speaker: {example}{clone}"
        )
    return voices
