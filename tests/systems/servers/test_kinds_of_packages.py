"""The classes and clients of the real packages take our requests, and would send the same."""

import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podeval.systems.speech import Ask
from tests.fakes.loopback_kinds import FIRST, SECOND, WORDS, answer, bodies, speak, whole
from tests.fakes.loopback_speech import Reply

LoadReference = Callable[[str], Any]
ONE_OF = {"vllm_omni": "vllm-omni", "sglang_omni": "sglang-omni"}
MODELS = {"turn": "Qwen3-TTS", "brackets": "MOSS-TTSD-v1.0", "tags": "fishaudio/drama3"}
CLIP_FIELDS = {
    ("vllm_omni", "turn"): {"ref_audio", "ref_text"},
    ("vllm_omni", "brackets"): {"ref_audio", "ref_audio_2"},
    ("vllm_omni", "tags"): {"ref_audio", "ref_text"},
    ("sglang_omni", "turn"): {"references"},
    ("sglang_omni", "brackets"): {"references"},
    ("sglang_omni", "tags"): {"references"},
}


@pytest.mark.filterwarnings("ignore:Support for class-based")
@pytest.mark.parametrize(("package", "form"), CLIP_FIELDS, ids=["-".join(one) for one in CLIP_FIELDS])
def test_cloning_reaches_the_request_class_of_open_servers(
    load_reference: LoadReference, package: str, form: str, ask: Ask
) -> None:
    requested = load_reference(package)
    way = {} if form == "turn" else {"dialogue": "whole"}
    _, server = speak(ONE_OF[package], ask, model=MODELS[form], clone=True, field=['language="English"'], **way)
    for body in bodies(server):
        common = {"model", "input", "response_format", "seed", "language"}
        assert body.keys() == common | CLIP_FIELDS[package, form]
        assert body.keys() <= requested.model_fields.keys(), "another field would be dropped silently"
        parsed = requested.model_validate(body).model_dump(exclude_unset=True, exclude_none=True)
        assert parsed == body
    if package == "vllm_omni":
        assert re.match("data:audio/wav;base64,", server.requests[0]["ref_audio"])
    else:
        assert [one["text"].endswith(words) for one, words in zip(parsed["references"], WORDS.values(), strict=False)]


class Recorder:
    """An HTTP client of an SDK that notes what would be sent."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.httpx_client = SimpleNamespace(stream=self.stream, request=self.request)

    def _note(self, path: str, omit: Any, **call: Any) -> None:
        clean = {
            part: {name: value for name, value in (call.get(part) or {}).items() if value not in (None, omit)}
            for part in ("json", "params", "data")
        }
        plain = json.loads(json.dumps(clean, default=lambda model: model.model_dump()))
        self.calls.append({"path": path, **plain, "files": call.get("files")})

    @contextmanager
    def stream(self, path: str, omit: Any = None, **call: Any) -> Iterator[Any]:
        self._note(path, omit, **call)
        yield SimpleNamespace(status_code=200, headers={}, iter_bytes=lambda chunk_size: iter([b"RIFF"]))

    def request(self, path: str, omit: Any = None, **call: Any) -> Any:
        self._note(path, omit, **call)
        answer = {"voice_id": "new", "requires_verification": False}
        return SimpleNamespace(status_code=200, headers={}, json=lambda: answer)


def import_reference(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    package = name.partition(".")[0]
    if not (folder / package).is_dir():
        pytest.skip(f"no {package} among the reference packages; `make reference-packages` gets it")
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    module = importlib.import_module(name)
    for new in {one for one in sys.modules if one.partition(".")[0] == package} - before:
        monkeypatch.delitem(sys.modules, new)
    return module


def split_address(path: str) -> tuple[str, dict[str, str]]:
    place, _, query = path.removeprefix("/v1/").partition("?")
    return f"v1/{place}", dict(part.split("=") for part in query.split("&"))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_elevenlabs_own_client_sends_what_we_send(
    stream: bool, reference_packages: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    dialogue = import_reference(reference_packages, "elevenlabs.text_to_dialogue.raw_client", monkeypatch)
    turn = import_reference(reference_packages, "elevenlabs.text_to_speech.raw_client", monkeypatch)
    recorder = Recorder()
    form = {"output_format": "pcm_24000" if stream else "wav_24000", "model_id": "eleven_v3", "seed": 3}
    inputs = [
        dialogue.DialogueInput(text=text, voice_id=voice)
        for text, voice in ((FIRST, "id_a"), (SECOND, "id_b"), (FIRST, "id_a"))
    ]
    performer = dialogue.RawTextToDialogueClient(client_wrapper=recorder)
    with (performer.stream if stream else performer.convert)(inputs=inputs, **form):
        pass
    reader = turn.RawTextToSpeechClient(client_wrapper=recorder)
    with (reader.stream if stream else reader.convert)("id_a", text=FIRST, **form):
        pass
    for call, way in zip(recorder.calls, ("whole", "turns"), strict=True):
        _, server = speak("elevenlabs", ask, model="eleven_v3", dialogue=way, stream=stream)
        assert split_address(server.requests[0]["path"]) == (call["path"], call["params"])
        assert bodies(server)[0] == call["json"]


def test_elevenlabs_own_client_uploads_a_voice_as_we_do(
    reference_packages: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    module = import_reference(reference_packages, "elevenlabs.voices.ivc.raw_client", monkeypatch)
    recorder = Recorder()
    voice = module.RawIvcClient(client_wrapper=recorder).create(
        name="podeval-x", files=[("x.wav", b"RIFF", "audio/wav")]
    )
    (call,) = recorder.calls
    forms: list[tuple[str, bytes]] = []

    def plan(request: dict[str, Any]) -> Reply:
        if "form" not in request:
            return answer(request)
        forms.append((request["path"], request["form"]))
        return whole(voice.data.model_dump_json().encode())

    speak("elevenlabs", ask, plan, model="eleven_v3", clone=True)
    path, form = forms[0]
    assert path == f"/{call['path']}"
    fields = re.findall(rb'name="(\w+)"', form)
    assert [field.decode() for field in fields] == ["name", *call["files"]]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("google/gemini-3.8-flash-tts", {}),
        ("openai/gpt-4o-mini-tts", {"field": ['instructions="Calm."', "speed=1.1"]}),
        ("fish-audio/s2", {"clone": True}),
    ],
)
def test_openrouters_own_class_takes_our_requests(
    model: str, options: dict[str, Any], reference_packages: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    requested = import_reference(reference_packages, "openrouter.components.speechrequest", monkeypatch).SpeechRequest
    _, server = speak("openrouter", ask, model=model, **options)
    for body in bodies(server):
        assert requested.model_validate(body).model_dump(by_alias=True) == body
        for name in ("model", "input"):
            with pytest.raises(ValueError, match=name):
                requested.model_validate({other: value for other, value in body.items() if other != name})


@pytest.mark.parametrize("way", ["whole", "turns"])
def test_geminis_own_classes_take_our_requests_and_our_answers(
    way: str, load_reference: LoadReference, ask: Ask
) -> None:
    answered = load_reference("gemini")
    types = sys.modules[answered.__module__]
    _, server = speak("gemini", ask, model="gemini-3.8-flash-tts", dialogue=way)
    for body in bodies(server):
        assert body.keys() == {"contents", "generationConfig"}
        for name, kind, value in (
            ("content", types.Content, body["contents"][0]),
            ("config", types.GenerationConfig, body["generationConfig"]),
        ):
            parsed = kind.model_validate(value)
            assert parsed.model_dump(by_alias=True, exclude_none=True, mode="json") == value, name
        config = types.GenerationConfig.model_validate(body["generationConfig"])
        speakers = config.speech_config.multi_speaker_voice_config
        parts = types.Content.model_validate(body["contents"][0]).parts
        assert config.response_modalities == ["AUDIO"]
        if way == "whole":
            assert {part.speech_metadata.speaker for part in parts} == {
                one.speaker for one in speakers.speaker_voice_configs
            }
    (reply,) = answer({"path": ":generateContent"}).chunks
    assert answered.model_validate_json(reply[1]).candidates[0].content.parts[0].inline_data.data


def test_hugging_faces_own_client_sends_our_texts(ask: Ask) -> None:
    from huggingface_hub import InferenceClient
    from huggingface_hub.inference._generated.types.text_to_speech import TextToSpeechInput

    _, server = speak("huggingface", ask, field=["temperature=0.5"])
    assert [body["inputs"] for body in bodies(server)] == [FIRST, SECOND, FIRST]
    assert [body["parameters"]["voice"] for body in bodies(server)] == ["a", "b", "a"]
    fields = inspect.signature(InferenceClient.text_to_speech).parameters
    assert "temperature" in fields
    assert "voice" not in fields
    for body in bodies(server):
        assert TextToSpeechInput(**body).inputs == body["inputs"]


def test_pipers_own_server_reads_the_fields_that_we_send(ask: Ask) -> None:
    import piper

    source = Path(piper.__file__).with_name("http_server.py").read_text("utf-8")
    assert '@app.route("/synthesize", methods=["POST"])' in source
    fields = set(re.findall(r'data\.get\(\s*"(\w+)"', source))
    _, server = speak("piper", ask)
    for body in bodies(server):
        assert body.keys() <= fields
    assert {name for body in bodies(server) for name in body} == {"text", "voice", "speaker"}
    assert {one["path"] for one in server.requests} == {"/v1/synthesize"}
