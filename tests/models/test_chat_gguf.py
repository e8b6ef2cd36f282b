import importlib.util
import json
from pathlib import Path

import pydantic
import pytest

from podeval.errors import ModelMissing
from podeval.judges.client import JudgeClient, JudgeRequest, Unanswered, UsableAnswer
from podeval.judges.judge import find_judge
from podeval.judges.prompt import Prompt
from podeval.models.chat import ChatBusy, ChatRefused, Sampling
from podeval.models.chat_endpoint import GgufChat, load_gguf_chat

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 45}},
    "required": ["score"],
    "additionalProperties": False,
}
ASKED = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge this."}]
SHORT = Sampling(max_tokens=200)


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.fakes.tiny_gguf import write_tiny_gguf

    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny(tiny_file: Path) -> GgufChat:
    return load_gguf_chat(tiny_file, 2048)


def test_a_model_of_random_weights_keeps_to_the_schema(tiny: GgufChat) -> None:
    for seed in range(5):
        answer = tiny.chat(ASKED, Sampling(temperature=1.0, seed=seed, max_tokens=200), SCHEMA, 60)
        assert answer.form == "json_schema"
        if answer.finish == "stop":
            assert 0 <= json.loads(str(answer.text))["score"] <= 45
    assert answer.prompt_tokens
    assert answer.answer_tokens


def test_the_same_question_has_the_same_answer_whatever_was_asked_between(tiny: GgufChat) -> None:
    first = tiny.chat(ASKED, SHORT, SCHEMA, 60)
    tiny.chat([{"role": "user", "content": "Something else."}], SHORT, None, 60)
    assert tiny.chat(ASKED, SHORT, SCHEMA, 60).text == first.text


def test_what_is_too_long_is_refused_with_the_way_out(tiny: GgufChat) -> None:
    with pytest.raises(ChatRefused, match=r"the 2048 tokens for which .* increase context") as refused:
        tiny.chat([{"role": "user", "content": "y" * 5000}], SHORT, SCHEMA, 60)
    assert not refused.value.for_all


def test_a_call_ends_by_the_wall_clock(tiny: GgufChat) -> None:
    with pytest.raises(ChatBusy, match="did not answer within"):
        tiny.chat(ASKED, Sampling(temperature=0.0, max_tokens=1500), None, 0.0)


def test_audio_is_refused(tiny: GgufChat) -> None:
    heard = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}]
    with pytest.raises(ChatRefused, match="does not accept audio"):
        tiny.chat(heard, SHORT, SCHEMA, 60)


def test_a_file_that_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelMissing, match=r"broken\.gguf cannot be loaded"):
        load_gguf_chat(broken, None)


def test_without_the_library_the_command_is_named(monkeypatch: pytest.MonkeyPatch, tiny_file: Path) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else real(name))
    with pytest.raises(ModelMissing, match=r"podeval\[gguf\]"):
        GgufChat(tiny_file, 512)


class Score(pydantic.BaseModel):
    score: int = pydantic.Field(ge=0, le=45)


def test_a_local_model_judges_and_is_replayed_without_it(tiny_file: Path, tmp_path: Path) -> None:
    prompt = Prompt("tiny", "1", "You judge.", "{text}", Score, "none")
    config = tmp_path / "judge.yaml"
    config.write_text(
        f"backend: gguf\nendpoint: {tiny_file}\ncontext: 4096\nsampling: {{temperature: 1.0, max_tokens: 100}}\n"
    )
    asked = [JudgeRequest(prompt, {"text": f"text {number}"}) for number in range(4)]
    first = JudgeClient(find_judge(str(config)), tmp_path / "records").ask(asked)
    assert any(isinstance(outcome, UsableAnswer) for outcome in first)
    replayed = JudgeClient(find_judge(f"records:{tmp_path / 'records'}")).ask(asked)
    assert replayed == first


def test_the_runtime_serves_the_real_client_over_http(tiny_file: Path, tmp_path: Path) -> None:
    """The endpoint backend against llama.cpp's own server: a schema asked for over HTTP is kept to."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(tiny_file)
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    prompt = Prompt("tiny", "1", "You judge.", "{text}", Score, "none")
    judging = JudgeClient(find_judge(f"tiny@{server.listening_address}/v1"), tmp_path, workers=2)
    outcomes = judging.ask([JudgeRequest(prompt, {"text": f"text {number}"}) for number in range(4)])
    assert all(isinstance(outcome, UsableAnswer) or "cut off" in outcome.reason for outcome in outcomes)
    assert any(isinstance(outcome, UsableAnswer) for outcome in outcomes)
    assert judging.records.form(judging.judge.id) == "json_schema"
    del server


def test_the_own_listener_answers_nobody(tiny: GgufChat) -> None:
    judge = find_judge(f"tiny@{tiny._server.listening_address}/v1")
    prompt = Prompt("tiny", "1", "You judge.", "{text}", Score, "none")
    (outcome,) = JudgeClient(judge).ask([JudgeRequest(prompt, {"text": "x"})])
    assert isinstance(outcome, Unanswered)
    assert "answered 401" in outcome.reason
