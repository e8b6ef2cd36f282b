"""Each kind of server is asked as its own package asks it, and recognised by what it says of itself."""

import base64
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.systems.servers.connection import RequestRefused, ServerConnection, ServerRefused
from podeval.systems.servers.kinds import KINDS, find_kind, recognise_kind
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask
from podeval.text.script import Turn
from tests.fakes.loopback_kinds import FIRST, PIPER, SECOND, WORDS, answer, bodies, speak, whole
from tests.fakes.loopback_speech import Reply, SpeechServer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_script_is_spoken_turn_by_turn_by_every_kind(kind: str, stream: bool, ask: Ask) -> None:
    if stream and not find_kind(kind).streams:
        with pytest.raises(BadInput, match="leave out --stream"):
            speak(kind, ask, dialogue="turns", stream=True)
        return
    speech, server = speak(kind, ask, dialogue="turns", stream=stream)
    assert len(server.requests) == 3
    assert speech.duration == pytest.approx(3.56, abs=0.1)
    texts = [json.dumps(body) for body in bodies(server)]
    assert all(words in text for words, text in zip((FIRST, SECOND, FIRST), texts, strict=True))
    header = find_kind(kind).key_header.lower()
    assert {headers[header] for headers in map(lower, server.headers)} == {f"{find_kind(kind).key_prefix}s3cret"}


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def clip_of(data: str) -> np.ndarray[Any, Any]:
    samples, _ = soundfile.read(io.BytesIO(base64.b64decode(data.rpartition(",")[2])), dtype="int16")
    return np.asarray(samples)


# What each kind is asked for, in full; `{Ann}` stands for her reference voice.
LINES = [("Ann", FIRST), ("Ben", SECOND), ("Ann", FIRST)]
BRACKETED = f"[S1] {FIRST} [S2] {SECOND} [S1] {FIRST}"
TAGGED = f"<|speaker:0|> {FIRST} <|speaker:1|> {SECOND} <|speaker:0|> {FIRST}"
WAV_FORM = {"response_format": "wav", "seed": 3}
WHOLE: dict[str, tuple[str, str, bool, dict[str, Any]]] = {
    "openai": ("openai", "dia-1.6b", False, {"input": BRACKETED, "voice": "a", **WAV_FORM}),
    "ttsd on vLLM-Omni": (
        "vllm-omni",
        "OpenMOSS-Team/MOSS-TTSD-v1.0",
        True,
        {"input": BRACKETED, "ref_audio": "{Ann}", "ref_audio_2": "{Ben}", **WAV_FORM},
    ),
    "fish on vLLM-Omni": ("vllm-omni", "fishaudio/s2-pro", False, {"input": TAGGED, "voice": "a", **WAV_FORM}),
    "drama3 on SGLang-Omni": (
        "sglang-omni",
        "fishaudio/drama3",
        True,
        {
            "input": TAGGED,
            "references": [
                {"audio_path": "{Ann}", "text": f"<|speaker:0|> {WORDS['Ann']}"},
                {"audio_path": "{Ben}", "text": f"<|speaker:1|> {WORDS['Ben']}"},
            ],
            **WAV_FORM,
        },
    ),
    "elevenlabs": (
        "elevenlabs",
        "eleven_v3",
        False,
        {"inputs": [{"text": t, "voice_id": {"Ann": "id_a", "Ben": "id_b"}[s]} for s, t in LINES], "seed": 3},
    ),
    "gemini": (
        "gemini",
        "gemini-3.8-flash-tts",
        False,
        {
            "contents": [{"role": "user", "parts": [{"text": t, "speechMetadata": {"speaker": s}} for s, t in LINES]}],
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "seed": 3,
                "speechConfig": {
                    "multiSpeakerVoiceConfig": {
                        "speakerVoiceConfigs": [
                            {"speaker": s, "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": v}}}
                            for s, v in (("Ann", "Kore"), ("Ben", "Puck"))
                        ]
                    }
                },
            },
        },
    ),
    "openrouter": (
        "openrouter",
        "google/gemini-3.8-flash-tts",
        False,
        {
            "input": [{"text": t, "voice": {"Ann": "a", "Ben": "b"}[s]} for s, t in LINES],
            "response_format": "pcm",
        },
    ),
}
TURNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vLLM-Omni": (
        "vllm-omni",
        "Qwen3-TTS",
        {"input": FIRST, "ref_audio": "{Ann}", "ref_text": WORDS["Ann"], **WAV_FORM},
    ),
    "SGLang-Omni": (
        "sglang-omni",
        "Qwen3-TTS",
        {"input": FIRST, "references": [{"audio_path": "{Ann}", "text": WORDS["Ann"]}], **WAV_FORM},
    ),
    "openrouter": (
        "openrouter",
        "fish-audio/s2",
        {
            "input": FIRST,
            "input_references": [
                {"type": "input_audio", "input_audio": {"data": "{Ann}", "format": "wav"}},
                {"type": "text", "text": WORDS["Ann"]},
            ],
            "response_format": "pcm",
        },
    ),
}


def named_voices(body: Any, ask: Ask) -> Any:
    """A body in which reference voices are their speakers' names again."""
    if isinstance(body, dict):
        return {name: named_voices(value, ask) for name, value in body.items()}
    if isinstance(body, list):
        return [named_voices(value, ask) for value in body]
    if isinstance(body, str) and len(body) > 1_000:
        sounds = {name: soundfile.read(voice.audio, dtype="int16")[0] for name, voice in ask.voices.items()}
        return next(f"{{{name}}}" for name, sound in sounds.items() if np.array_equal(clip_of(body), sound))
    return body


@pytest.mark.parametrize(("kind", "model", "clone", "expected"), WHOLE.values(), ids=WHOLE)
def test_a_whole_dialogue_is_one_request_in_the_models_own_form(
    kind: str, model: str, clone: bool, expected: dict[str, Any], ask: Ask
) -> None:
    voice = {"voice": ("a",)} if expected.get("voice") else {}
    speech, server = speak(kind, ask, model=model, clone=clone, dialogue="whole", **voice)
    (body,) = bodies(server)
    model_fields = {"elevenlabs": {"model_id": model}, "gemini": {}}.get(kind, {"model": model})
    assert named_voices(body, ask) == {**expected, **model_fields}
    assert (speech.details["strategy"], speech.details["cuts"], speech.turns) == ("whole", 0, ())
    assert speech.duration == pytest.approx(1.0, abs=0.01)
    assert clone == (set(speech.details["voices"].values()) == {"reference"})


@pytest.mark.parametrize(("kind", "model", "expected"), TURNS.values(), ids=TURNS)
def test_a_turn_is_asked_for_in_the_reference_voice_of_its_speaker(
    kind: str, model: str, expected: dict[str, Any], ask: Ask
) -> None:
    speech, server = speak(kind, ask, model=model, clone=True)
    assert named_voices(bodies(server)[0], ask) == {**expected, "model": model}
    others = [json.dumps(named_voices(body, ask)) for body in bodies(server)]
    assert ["{Ann}" in other for other in others] == [True, False, True]
    assert ["{Ben}" in other and WORDS["Ben"] in other for other in others] == [False, True, False]
    assert speech.details["voices"] == {"Ann": "reference", "Ben": "reference"}
    assert "strategy" not in speech.details


def test_elevenlabs_gets_each_reference_voice_once_and_keeps_it(ask: Ask) -> None:
    uploaded: list[bytes] = []

    def plan(request: dict[str, Any]) -> Reply:
        if request["path"] == "/v1/voices/add":
            uploaded.append(request["form"])
            return whole(json.dumps({"voice_id": f"new_{len(uploaded)}", "requires_verification": False}).encode())
        return answer(request)

    speech, server = speak("elevenlabs", ask, plan, model="eleven_v3", clone=True)
    assert [one["voice_id"] for one in server.requests[-1]["inputs"]] == ["new_1", "new_2", "new_1"]
    assert speech.details["voices"] == {"Ann": "reference", "Ben": "reference"}
    names = [form.partition(b"podeval-")[2][:16].decode() for form in uploaded]
    assert len({*names}) == 2
    there = {"voices": [{"name": f"podeval-{name}", "voice_id": f"old_{name}"} for name in names]}
    _, server = speak("elevenlabs", ask, plan, model="eleven_v3", clone=True, facts={"/v1/voices": there})
    assert [one["voice_id"] for one in server.requests[-1]["inputs"]] == [f"old_{names[n]}" for n in (0, 1, 0)]
    assert len(uploaded) == 2, "what is there is not uploaded again"


def test_two_speakers_never_share_a_reference_voice(ask: Ask) -> None:
    same = ask.model_copy(update={"voices": {**ask.voices, "Ben": ask.voices["Ann"]}})
    with pytest.raises(RequestRefused, match="two speakers of one have the same reference voice"):
        speak("vllm-omni", same, clone=True)
    missing = ask.model_copy(update={"voices": {"Ann": ask.voices["Ann"]}})
    with pytest.raises(ServerRefused, match=r"one has no reference voice for Ben; .* leave out --clone"):
        speak("vllm-omni", missing, clone=True)


@pytest.mark.parametrize("seconds", [0.5, 31.0])
def test_a_reference_voice_that_the_server_would_refuse_is_no_fault_of_the_system(
    seconds: float, ask: Ask, tmp_path: Path
) -> None:
    soundfile.write(tmp_path / "Ben.flac", np.full(round(seconds * 8_000), 0.1), 8_000)
    with pytest.raises(RequestRefused, match=rf"1 to 30 s, but one of the given voices lasts {seconds}"):
        speak("sglang-omni", ask, clone=True)


def test_a_reference_voice_of_two_channels_is_sent_as_one(ask: Ask, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "Ann.flac", np.full((24_000, 2), [0.1, 0.3]), 24_000)
    _, server = speak("vllm-omni", ask, clone=True)
    assert clip_of(server.requests[0]["ref_audio"]).shape == (24_000,)


@pytest.mark.parametrize(
    ("kind", "model", "longest"),
    [("elevenlabs", "eleven_v3", 2_000), ("gemini", "gemini-3.8-flash-tts", 4_000), ("sglang-omni", "ttsd", 4_096)],
)
def test_a_dialogue_is_cut_at_the_stated_length_alone(kind: str, model: str, longest: int, ask: Ask) -> None:
    def script(*lengths: int) -> Ask:
        texts = [("word " * length)[:length].strip() + "x" for length in lengths]
        turns = [Turn(("Ann", "Ben")[number % 2], text) for number, text in enumerate(texts)]
        return ask.model_copy(update={"script": tuple(turns)})

    marks = 5 if kind == "sglang-omni" else 0
    options = {"model": model, "dialogue": "whole", **({"voice": ()} if marks else {})}
    fits = (longest // 4 - 1 - marks - bool(marks),) * 4
    speech, server = speak(kind, script(*fits), **options)
    assert (len(server.requests), speech.details["cuts"], speech.details["strategy"]) == (1, 0, "whole")
    speech, server = speak(kind, script(*fits, 100, 100), **options)
    assert (len(server.requests), speech.details["cuts"], speech.details["strategy"]) == (2, 1, "chunks")
    assert speech.duration == pytest.approx(2.4, abs=0.01)
    # A turn that is longer than a request is cut between words; nothing is lost.
    speech, server = speak(kind, script(2 * longest, 50), **options)
    assert speech.details["strategy"] == "chunks"
    assert sum(json.dumps(body).count("word") for body in bodies(server)) == 2 * longest // 5 + 10


def test_the_length_of_gemini_is_in_bytes(ask: Ask) -> None:
    chinese = ask.model_copy(update={"script": tuple(Turn(s, "好" * 500) for s in ("Ann", "Ben") * 2)})
    _, server = speak("gemini", chinese, model="gemini-3.8-flash-tts")
    assert [len(one["contents"][0]["parts"]) for one in server.requests] == [2, 2]


def test_a_script_with_more_speakers_than_a_request_takes_is_sent_turn_by_turn_and_says_so(ask: Ask) -> None:
    three = ask.model_copy(update={"script": (*(ask.script or ()), Turn("Cid", "And I am the third."))})
    speech, server = speak("gemini", three, model="gemini-3.8-flash-tts", voice=("Kore", "Puck", "Zephyr"))
    assert len(server.requests) == 4
    assert speech.details["strategy"] == "turns"
    assert speech.details["notes"] == [
        "scripts of more than 2 speakers are sent turn by turn, because a request may have at most 2"
    ]
    assert len(speech.turns) == 4


def test_gemini_before_3_8_reads_lines_with_names_and_one_speaker_in_one_voice(ask: Ask) -> None:
    _, server = speak("gemini", ask, model="gemini-2.5-flash-preview-tts")
    (part,) = server.requests[0]["contents"][0]["parts"]
    assert part["text"].endswith(f":\nAnn: {FIRST}\nBen: {SECOND}\nAnn: {FIRST}")
    alone = ask.model_copy(update={"script": (Turn("Ann", FIRST),) * 2})
    _, server = speak("gemini", alone, model="gemini-3.8-flash-tts")
    speech_config = server.requests[0]["generationConfig"]["speechConfig"]
    assert speech_config == {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}}


WAYS = [
    ("openai", "tts-1", {}, "sent turn by turn, in voices of the server"),
    ("vllm-omni", "MOSS-TTSD", {"clone": True}, "sent whole, in the reference voices"),
    ("vllm-omni", "Qwen3-TTS", {"clone": True}, "turn by turn, .* vllm-omni accepts one reference voice per request"),
    ("vllm-omni", "s2-pro", {"clone": True, "dialogue": "whole"}, "turn by turn, .* accepts one reference voice"),
    ("elevenlabs", "eleven_v3", {}, "sent whole"),
    (
        "elevenlabs",
        "eleven_v3",
        {"clone": True, "dialogue": "turns"},
        "turn by turn, in the reference .* item$",
    ),
    ("vllm-omni", "s2-pro", {"voice": ("Ann=a",)}, "turn by turn"),
    ("elevenlabs", "eleven_multilingual_v2", {}, "turn by turn"),
    ("gemini", "gemini-3.8-flash-tts", {}, "sent whole"),
    ("gemini", "gemini-3.8-flash-tts", {"dialogue": "turns"}, "turn by turn"),
    ("openrouter", "google/gemini-3.8-flash-tts", {}, "sent whole"),
    ("openrouter", "openai/gpt-4o-mini-tts", {}, "turn by turn"),
    ("vllm-omni", "s2-pro", {}, "turn by turn, in voices of the server"),
    ("vllm-omni", "s2-pro", {"voice": ()}, "sent whole, in voices of the server"),
    ("huggingface", "hexgrad/Kokoro-82M", {}, "turn by turn"),
]


@pytest.mark.parametrize(("kind", "model", "options", "way"), WAYS)
def test_scripts_go_whole_by_default_where_the_model_is_known_to_perform(
    kind: str, model: str, options: dict[str, Any], way: str
) -> None:
    with SpeechServer(answer) as server:
        all_options = {"voice": () if options.get("clone") else ("a", "b"), **options}
        system = SpeechEndpoint.open(ServerConnection(server.url), model, server_kind=kind, **all_options)
    assert re.search(way, system.way), system.way
    assert system.generation["strategy"] == ("whole" if "whole" in way else "chunked")


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("openai", {"clone": True}, "a server of the kind openai does not accept reference voices; leave out --clone"),
        ("gemini", {"clone": True}, "gemini does not accept reference voices"),
        ("piper", {"clone": True}, "piper does not accept reference voices"),
        ("vllm-omni", {"clone": True, "voice": ("a",)}, "leave out --voice"),
        ("vllm-omni", {"dialogue": "whole", "voice": ("a", "b")}, "name at most one voice with --voice"),
        ("piper", {"dialogue": "whole"}, "piper accepts one turn per request; leave out --dialogue whole"),
        ("huggingface", {"dialogue": "whole", "voice": ("a", "b")}, "accepts one turn per request"),
        (
            "piper",
            {"voice": ("joe", "bob")},
            "no voice bob and would use a different voice; .* one of joe, vctk#p225",
        ),
        ("openrouter", {}, "does not list its voices; .*--clone"),
        ("openai", {}, "name a voice for each speaker: --voice alloy --voice onyx$"),
        ("gemini", {}, "name a voice for each speaker: --voice Kore --voice Puck$"),
        ("opnai", {}, "no kind of server 'opnai'; did you mean openai"),
    ],
)
def test_options_that_do_not_fit_a_kind_are_refused_before_anything_is_asked(
    kind: str, options: dict[str, Any], words: str
) -> None:
    with SpeechServer(answer, facts={"/v1/voices": PIPER}) as server:
        with pytest.raises(BadInput, match=words):
            SpeechEndpoint.open(ServerConnection(server.url), "tts", server_kind=kind, **options)
        assert server.requests == []


@pytest.mark.parametrize("listing", [None, {}, ["joe"]])
@pytest.mark.parametrize("voice", [(), ("joe",)])
def test_a_piper_that_lists_no_voices_is_refused_with_what_to_do(listing: Any, voice: tuple[str, ...]) -> None:
    facts = {} if listing is None else {"/v1/voices": listing}
    with SpeechServer(answer, facts=facts) as server:
        with pytest.raises(
            BadInput, match=r"/v1/voices lists no voices, .* start a version of piper-tts that has /voices"
        ):
            SpeechEndpoint.open(ServerConnection(server.url), "tts", server_kind="piper", voice=voice)
        assert server.requests == []


def test_voices_of_a_server_are_listed_as_requests_name_them(ask: Ask) -> None:
    _, server = speak("piper", ask, voice=())
    assert [(one["voice"], one.get("speaker")) for one in server.requests] == [
        ("joe", None), ("vctk", "p225"), ("joe", None)
    ]  # fmt: skip
    listing = {"voices": [{"voice_id": "x1", "name": "Rachel"}, {"voice_id": "x2", "name": "Roger"}]}
    _, server = speak("elevenlabs", ask, voice=(), facts={"/v1/voices": listing})
    assert [one["path"].split("?")[0] for one in server.requests][:2] == [
        "/v1/text-to-speech/x1", "/v1/text-to-speech/x2"
    ]  # fmt: skip


STATEMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "vLLM's models": ({"/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "root": "a/b"}]}}, "vllm-omni"),
    "SGLang-Omni's models": ({"/v1/models": {"data": [{"id": "m", "owned_by": "sglang-omni"}]}}, "sglang-omni"),
    "SGLang-Omni's API": ({"/openapi.json": {"info": {"title": "sglang-omni", "version": "0.1.9"}}}, "sglang-omni"),
    "Piper": ({"/v1/info": {"voice": {"name": "joe", "num_speakers": 1}, "last": None}}, "piper"),
    "another": ({"/v1/models": {"data": [{"id": "m", "owned_by": "library"}]}}, "openai"),
    "nothing": ({}, "openai"),
    "nonsense": ({"/v1/models": [1, None], "/openapi.json": {"info": "x"}, "/v1/info": "?"}, "openai"),
}


@pytest.mark.parametrize(("facts", "kind"), STATEMENTS.values(), ids=STATEMENTS)
def test_a_server_is_recognised_by_what_it_says_of_itself(facts: dict[str, Any], kind: str) -> None:
    with SpeechServer(answer, facts=facts) as server:
        assert recognise_kind(ServerConnection(server.url))[0] == kind


@pytest.mark.parametrize(
    ("url", "kind", "called"),
    [
        ("https://api.openai.com/v1", "openai", "https://api.openai.com/v1"),
        ("https://api.elevenlabs.io", "elevenlabs", "https://api.elevenlabs.io/v1"),
        ("https://api.eu.residency.elevenlabs.io/v1", "elevenlabs", "https://api.eu.residency.elevenlabs.io/v1"),
        ("https://generativelanguage.googleapis.com/", "gemini", "https://generativelanguage.googleapis.com/v1beta"),
        ("https://openrouter.ai", "openrouter", "https://openrouter.ai/api/v1"),
        ("https://router.huggingface.co", "huggingface", "https://router.huggingface.co"),
    ],
)
def test_a_known_cloud_is_recognised_by_its_host_without_a_request(url: str, kind: str, called: str) -> None:
    connection = ServerConnection(url)
    assert recognise_kind(connection) == (kind, f"its host is {connection.url.split('/')[2]}")
    assert SpeechEndpoint.open(connection, "m", server_kind=kind, voice=("a",)).connection.url == called


def test_a_model_is_known_by_its_checkpoint_whatever_the_server_calls_it(ask: Ask) -> None:
    facts = {"/v1/models": {"data": [{"id": "tts", "owned_by": "vllm", "root": "OpenMOSS-Team/MOSS-TTSD-v1.0"}]}}
    speech, server = speak("vllm-omni", ask, clone=True, facts=facts)
    assert speech.details["strategy"] == "whole"
    assert (server.requests[0]["model"], server.requests[0]["input"]) == ("tts", BRACKETED)
