import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.judges.judge import Judge, Price, Sampling, find_judge, read_key

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_an_endpoint_is_named_by_model_and_address() -> None:
    judge = find_judge("org/model@v2@https://host:8000/v1/")
    assert (judge.backend, judge.model, judge.endpoint) == ("endpoint", "org/model@v2", "https://host:8000/v1")
    assert judge.hears
    assert not judge.trial
    assert judge.sampling == Sampling(temperature=0.0, seed=0)


def test_the_path_of_the_api_may_stand_in_the_address() -> None:
    assert find_judge("m@https://host/v1/chat/completions").endpoint == "https://host/v1"


def test_a_gguf_file_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    judge = find_judge(f"gguf:{file}")
    assert judge.revision == hashlib.sha256(file.read_bytes()).hexdigest()
    moved = tmp_path / "elsewhere" / "tiny.gguf"
    moved.parent.mkdir()
    moved.write_bytes(file.read_bytes())
    assert find_judge(f"gguf:{moved}").id == judge.id
    moved.write_bytes(b"GGUF" + bytes(101))
    assert find_judge(f"gguf:{moved}").id != judge.id
    assert str(tmp_path) not in str(judge.described())


def test_a_transformers_model_is_pinned_to_a_commit() -> None:
    judge = find_judge(f"transformers:RMSnow/SpeechJudge-GRM@{COMMIT}")
    assert (judge.model, judge.revision, judge.hears) == ("RMSnow/SpeechJudge-GRM", COMMIT, True)
    assert not find_judge(f"transformers:Qwen/Qwen2.5-1.5B@{COMMIT}").hears


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gpt-4o", "does not name a judge; write MODEL@https"),
        ("", "does not name a judge"),
        ("@https://host/v1", "no model is given for https://host/v1"),
        ("m@ftp://host/v1", "does not name a judge"),
        ("m@https://user:secret@host/v1", "contains a user name, a password or a query"),
        ("m@https://host/v1?key=secret", "contains a user name, a password or a query"),
        ("gguf:/nowhere/model.gguf", "no model file"),
        ("transformers:Qwen/Qwen2.5", "does not name a commit"),
        ("transformers:Qwen/Qwen2.5@main", "does not name a commit"),
        ("transformers:../../etc@" + COMMIT, "does not name a commit"),
        ("records:/nowhere", "no folder of records"),
        ("nowhere.yaml", "there is no file"),
    ],
)
def test_what_names_no_judge_is_a_sentence(name: str, why: str) -> None:
    with pytest.raises(PodevalError, match=why) as refused:
        find_judge(name)
    assert "secret" not in str(refused.value).replace("m@https://user:secret", "")


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(BadInput, match="not a GGUF file"):
        find_judge(f"gguf:{tmp_path / 'x.gguf'}")


YAML = """
backend: endpoint
model: gemini-2.5-pro
endpoint: https://host/v1
revision: 2026-06
sampling: {temperature: 1.0, top_p: 0.95, seed: null, max_tokens: 8192}
trial: true
hears: true
audio: {format: mp3, seconds: 600}
extra: {reasoning_effort: high}
timeout: 300
tries: 2
price: {prompt: 1.25, answer: 10}
"""


def test_a_yaml_file_says_everything(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(YAML)
    judge = find_judge(str(path))
    assert judge.sampling == Sampling(1.0, 0.95, None, 8192)
    assert judge.price == Price(1.25, 10)
    assert (judge.audio.format, judge.audio.seconds, judge.timeout) == ("mp3", 600, 300)
    assert judge.tries == 2
    assert judge.extra == {"reasoning_effort": "high"}
    assert judge.trial
    assert judge.id.startswith("gemini-2.5-pro@2026-06#")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("backend: endpoint", "backend: psychic"), "backend"),
        (("model: gemini-2.5-pro", "modell: x"), "modell: Unexpected keyword"),
        (("temperature: 1.0", "temperature: 3"), "sampling.temperature"),
        (("model: gemini-2.5-pro", ""), "needs the fields model and endpoint"),
        (("reasoning_effort: high", "api_key: sk-secret"), "extra.api_key looks like a secret"),
        (("tries: 2", "tries: 0"), "tries: Input should be greater than or equal to 1"),
        (("timeout: 300", "api_key: sk-secret"), "api_key: Unexpected keyword"),
        (("format: mp3", "format: ogg"), "audio.format"),
        (("https://host/v1", "https://u:sk-secret@host/v1"), "contains a user"),
        (("backend: endpoint", "{"), r"is not YAML: line \d+, column \d+: "),
    ],
)
def test_a_wrong_yaml_file_is_a_sentence_without_what_it_holds(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(YAML.replace(*change))
    with pytest.raises(BadInput, match=why) as refused:
        find_judge(str(path))
    assert "sk-secret" not in str(refused.value)


def test_a_gguf_of_a_yaml_file_lies_beside_it_and_may_be_pinned(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + bytes(10))
    path = tmp_path / "judge.yaml"
    path.write_text("backend: gguf\nmodel: tiny\nendpoint: x.gguf\ntrial: true\ncontext: 4096\n")
    judge = find_judge(str(path))
    assert (judge.model, judge.trial, judge.context) == ("tiny", True, 4096)
    path.write_text(f"backend: gguf\nendpoint: x.gguf\nrevision: '{'0' * 64}'\n")
    with pytest.raises(BadInput, match="has the SHA-256"):
        find_judge(str(path))


def test_the_id_changes_with_what_changes_an_answer_and_with_nothing_else() -> None:
    judge = Judge("endpoint", "m", endpoint="https://host/v1", hears=True)
    changed = [
        replace(judge, model="n"),
        replace(judge, revision="r"),
        replace(judge, endpoint="https://other/v1"),
        replace(judge, sampling=Sampling(temperature=0.1)),
        replace(judge, extra={"reasoning_effort": "low"}),
        replace(judge, audio=replace(judge.audio, format="mp3")),
    ]
    assert len({judge.id, *(other.id for other in changed)}) == 7
    same = [replace(judge, timeout=1.0), replace(judge, price=Price(1, 1)), replace(judge, trial=True)]
    assert {judge.id} == {other.id for other in same}


def test_a_local_model_in_16_bits_is_another_judge_than_in_32(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"transformers:org/model@{COMMIT}"
    monkeypatch.setattr("podeval.judges.judge.is_gpu_used", lambda: False)
    on_cpu = find_judge(name)
    monkeypatch.setattr("podeval.judges.judge.is_gpu_used", lambda: True)
    on_gpu = find_judge(name)
    assert (on_cpu.dtype, on_gpu.dtype) == (None, "bfloat16")
    assert on_cpu.id != on_gpu.id
    assert "dtype" not in on_cpu.described(), "what is said of it, and so its protocols, stays as it was"
    assert on_gpu.described()["dtype"] == "bfloat16"
    monkeypatch.setattr("podeval.models.chat_transformers.load_transformers_chat", lambda *_, **how: how)
    assert [one.model_to_ask() for one in (on_cpu, on_gpu)] == [
        {"hears": False, "dtype": "float32"},
        {"hears": False, "dtype": "bfloat16"},
    ]


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_key("https://host/v1") is None
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    assert read_key("https://host/v1") is None
    assert read_key("https://router.huggingface.co.evil.org/v1") is None
    assert read_key("https://router.huggingface.co/v1") == "hf_x"
    monkeypatch.setenv("PODEVAL_JUDGE_KEY", "own")
    assert read_key("https://host/v1") == read_key("https://router.huggingface.co/v1") == "own"


def test_a_judge_of_records_has_nobody_to_ask() -> None:
    with pytest.raises(ModelMissing, match="records cannot answer new questions"):
        Judge("records", "m", endpoint="folder", recorded="m@unpinned#0").model_to_ask()
