"""The realtime servers of SGLang-Omni and vLLM-Omni without their models, and OpenAI's types of events.

What reads and writes the WebSocket is the packages' own code, loaded from the reference packages without what their
`__init__` files import; a `TurnTaker` stands for the model.
"""

import asyncio
import base64
import importlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp import WSMsgType, web

from tests.fakes.loopback_realtime import RealtimeServer, TurnTaker

SGLANG = ("sglang_omni", "sglang_omni.serve", "sglang_omni.serve.realtime")
VLLM = (
    "vllm_omni",
    "vllm_omni.engine",
    "vllm_omni.engine.duplex",
    "vllm_omni.entrypoints",
    "vllm_omni.entrypoints.duplex",
)
OPENAI = ("openai", "openai.types", *(f"openai.types.{name}" for name in ("realtime", "responses", "shared", "chat")))


class PackageLoader:
    """Loads modules of a package from a folder; `stubs` are modules whose place is taken."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, monkeypatch

    def prepare(self, packages: tuple[str, ...], **stubs: Any) -> Callable[[str], Any]:
        if not (self._folder / packages[0]).is_dir():
            pytest.skip(f"no {packages[0]} among the reference packages; `make reference-packages` gets it")
        for name in [name for name in sys.modules if name.partition(".")[0] == packages[0]]:
            self._patch.delitem(sys.modules, name)
        for name in packages:
            module = ModuleType(name)
            module.__path__ = [str(self._folder / name.replace(".", "/"))]
            self._patch.setitem(sys.modules, name, module)
        for name, content in stubs.items():
            module = ModuleType(name)
            vars(module).update(content)
            self._patch.setitem(sys.modules, name, module)
        return importlib.import_module


class SocketOfStarlette:
    """As much of Starlette's WebSocket as the packages use, on aiohttp's."""

    def __init__(self, server: RealtimeServer, request: web.Request) -> None:
        self.server, self.request, self.query_params = server, request, dict(request.query)
        self.socket = web.WebSocketResponse()

    async def accept(self) -> None:
        await self.socket.prepare(self.request)

    async def receive(self) -> dict[str, Any]:
        message = await self.socket.receive()
        if message.type is not WSMsgType.TEXT:
            return {"type": "websocket.disconnect"}
        self.server.events.append(json.loads(message.data))
        return {"type": "websocket.receive", "text": message.data}

    async def receive_text(self) -> str:
        from starlette.websockets import WebSocketDisconnect

        message = await self.receive()
        if "text" not in message:
            raise WebSocketDisconnect(1000)
        return str(message["text"])

    async def send_text(self, text: str) -> None:
        self.server.answers.append(json.loads(text))
        await self.socket.send_str(text)

    async def send_json(self, data: Any) -> None:
        await self.send_text(json.dumps(data))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self.socket.close(code=code, message=reason.encode())


def serve_sglang_omni(loader: PackageLoader, **capabilities: Any) -> Any:
    """Return a handler that is SGLang-Omni's shared realtime session.

    Its native interaction is that of its VoiceChat: one response for all, in which there is always sound, or silence.
    """
    native = capabilities.get("interaction") == "native"
    profiler = {"SessionUnitReadyObservation": object, "capture_session_unit_ready": lambda: None}
    load = loader.prepare(SGLANG, **{"sglang_omni.profiler.duplex_events": profiler})
    protocol, runtime, types, output = (
        load(f"sglang_omni.serve.realtime.{name}") for name in ("protocol", "runtime", "types", "output")
    )

    class Adapter(types.InteractionAdapter, TurnTaker):  # type: ignore[misc, name-defined]
        answering = False

        async def open(self, session_id: str, config: Any, emit: Any) -> None:
            self.emit = emit

        async def start(self, response: str) -> None:
            await self.emit(output.ResponseStarted(response))

        async def process(self, unit: Any) -> int:
            self.hear(bool(np.any(np.frombuffer(unit.pcm, "<i2"))))
            if native and unit.index == 0:
                await self.start("all")
            if native and not self.answering:
                await self.emit(output.AudioDelta("all", "item_all", bytes(len(unit.pcm))))
            return int(unit.real_samples)

        async def truncate(self, audio_end_ms: float) -> None:
            pass

        async def close(self) -> None:
            self.leave()

        async def tell_speech(self) -> None:
            await self.emit(output.SpeechStarted("item_user", 0.0))

        async def begin(self, response: str) -> None:
            self.answering = True
            if not native:
                await self.start(response)
            response = "all" if native else response
            await self.emit(output.TextDelta(response, f"item_{response}", "Yes."))

        async def sound(self, response: str, data: bytes) -> None:
            response = "all" if native else response
            await self.emit(output.AudioDelta(response, f"item_{response}", data))

        async def end(self, response: str, status: str) -> None:
            self.answering = False
            if not native:
                await self.emit(output.ResponseFinished(response, f"item_{response}", "Yes.", True, status, "stop"))

    about = {"interaction": "turn_based", "turn_control": ("server_vad", None), "supports_truncate": True}
    rates = {"input_sample_rate_hz": 16_000, "output_sample_rate_hz": 24_000, "native_unit_ms": 10}
    modalities = {"output_modalities": ("text", "audio"), "max_granted_modalities": 2}
    granted = types.Capabilities(**{**about, **rates, **modalities, **capabilities})

    async def handle(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        socket = SocketOfStarlette(server, request)

        def make() -> Any:
            server.takers.append(Adapter(server.plan))
            return server.takers[-1]

        await socket.accept()
        session = protocol.SharedRealtimeSession(
            socket, runtime.SessionRuntime("m", granted, make, types.RuntimeLimits())
        )
        await session.run()
        return socket.socket

    return handle


def serve_vllm_omni(loader: PackageLoader) -> Any:
    """Return a handler that is vLLM-Omni's transport of duplex sessions, with its projection of events."""
    duplex_omni = {"DuplexOmni": object, "DuplexSessionHandle": object}
    loggers = {"init_logger": logging.getLogger}
    messages = {"DuplexSessionError": type("DuplexSessionError", (Exception,), {"code": "internal_error"})}
    load = loader.prepare(
        VLLM,
        **{
            "vllm_omni.entrypoints.duplex_omni": duplex_omni,
            "vllm_omni.engine.duplex.messages": messages,
            "vllm": {"__path__": []},
            "vllm.logger": loggers,
            "pybase64": vars(base64),
        },
    )
    serving = load("vllm_omni.entrypoints.duplex.serving")
    realtime_events = load("vllm_omni.engine.duplex.realtime_events")
    commands, events = load("vllm_omni.engine.duplex.commands"), load("vllm_omni.protocol.duplex.events")

    class Handle(TurnTaker):
        session_id, lease_generation, closed, public_session = "s", 0, False, None
        capabilities = SimpleNamespace(supports_session_resume=False)

        def __init__(self, server: RealtimeServer, payload: Any) -> None:
            super().__init__(server.plan)
            self.commands: list[Any] = []
            self.queue: asyncio.Queue[Any] = asyncio.Queue()
            self.state = realtime_events.RealtimeProjectionState(
                session_id="s", model=payload.get("model"), default_payload=payload, initial_session_update=True
            )
            capabilities = {"supports_model_native_turn_policy": False}
            self.project({"type": "session.created", "session": {"model": "m", "capabilities": capabilities}})

        def project(self, event: dict[str, Any]) -> None:
            for projected in realtime_events.project_internal_event(self.state, event):
                self.queue.put_nowait(projected)

        async def events(self) -> AsyncIterator[Any]:
            while True:
                yield await self.queue.get()

        async def submit(self, command: Any) -> None:
            self.commands.append(command)
            if isinstance(command, commands.UpdateSession):
                self.state.apply_session_defaults(command.patch)
                self.project({"type": "session.updated", "session": {"model": "m"}})
            elif isinstance(command, commands.AppendAudio):
                self.hear(bool(np.any(np.frombuffer(command.audio, "<f4"))))

        async def close(self, reason: str) -> None:
            self.leave()

        async def tell_speech(self) -> None:
            self.queue.put_nowait(events.SpeechStarted(item_id="item_user"))

        async def begin(self, response: str) -> None:
            self.queue.put_nowait(events.ResponseCreated(response_id=response, response={"id": response}))
            self.queue.put_nowait(events.TranscriptDelta(response_id=response, delta="Yes."))

        async def sound(self, response: str, data: bytes) -> None:
            delta = base64.b64encode(data).decode()
            about = {"response_id": response, "item_id": f"item_{response}", "sample_rate_hz": 24_000}
            self.queue.put_nowait(events.AudioDelta(delta=delta, **about))

        async def end(self, response: str, status: str) -> None:
            self.queue.put_nowait(
                events.ResponseDone(response_id=response, response={"id": response, "status": status})
            )

    async def handle(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
        async def open_session(payload: Any) -> Any:
            server.takers.append(Handle(server, dict(payload)))
            return server.takers[-1]

        config = SimpleNamespace(resume_replay_ttl_s=1.0, resume_replay_max_bytes_per_session=10**6)
        omni = SimpleNamespace(open_session=open_session, duplex_session_config=config, get_session=lambda name: None)
        socket = SocketOfStarlette(server, request)
        await serving.OmniDuplexSessionHandler(duplex_omni=omni).handle_realtime_session(socket)
        return socket.socket

    return handle


def load_openai_types(loader: PackageLoader) -> tuple[Any, Any]:
    """Return what checks events of clients and of servers by OpenAI's types; a field that they lack is refused."""
    from pydantic import BaseModel, ConfigDict, TypeAdapter

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

    class PropertyInfo:
        def __init__(self, **about: Any) -> None:
            """Its content is for the package's own client."""

    models = {"BaseModel": Strict, "GenericModel": Strict}
    load = loader.prepare(OPENAI, **{"openai._models": models, "openai._utils": {"PropertyInfo": PropertyInfo}})
    client = load("openai.types.realtime.realtime_client_event").RealtimeClientEvent
    server = load("openai.types.realtime.realtime_server_event").RealtimeServerEvent
    return TypeAdapter(client).validate_python, TypeAdapter(server).validate_python
