"""Whatever is handed in, the answer is a sentence that says what to do, and the right exit code."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.metrics import catalogue
from tests.cli.conftest import RATE, write_broken_files

AWKWARD = '-my "best" it\'s 🎙 show.wav'
COMMAND = Path(sys.executable).parent / "podeval"
Podeval = Callable[..., Any]


def noise(seconds: float, rate: int = RATE, channels: int = 1) -> np.ndarray[Any, Any]:
    return 0.1 * np.random.default_rng(0).standard_normal((round(seconds * rate), channels))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_broken_files(folder, noise(6))
    soundfile.write(folder / "header.wav", np.zeros((0, 1)), RATE)
    soundfile.write(folder / "telephone.wav", noise(2, 8000), 8000)
    soundfile.write(folder / "studio.wav", noise(2, 192_000), 192_000)
    soundfile.write(folder / "seven.wav", noise(2, channels=7), RATE)
    soundfile.write(folder / "good.wav", noise(2), RATE)
    soundfile.write(folder / AWKWARD, noise(2), RATE)
    return folder


CASES = [
    ("loudness", "nowhere.wav", 2, "does not exist: check the path"),
    ("loudness", "folder", 2, "is a directory, not an audio file: give the path of a file"),
    ("loudness", "empty.wav", 2, "is empty (0 bytes): export or download it again"),
    ("loudness", "text.wav", 2, "is a text file, not audio"),
    ("loudness", "truncated.flac", 2, "of about 3.00 s could be read: export or download the file again"),
    ("loudness", "header.wav", 2, "contains no readable audio: export or download the file again"),
    ("loudness", "silence.wav", 1, "digital silence from beginning to end; check how it was exported"),
    ("loudness", "nan.wav", 1, "samples that are not numbers (NaN or infinity); export it again"),
    ("loudness", "blip.wav", 1, "lasts 0.05 s; at least 0.4 s are needed"),
    ("loudness", "seven.wav", 1, "for 7 channels; downmix the recording to stereo or 5.1 first"),
    ("loudness", "telephone.wav", 0, None),
    ("loudness", "studio.wav", 0, None),
    ("loudness", f"./{AWKWARD}", 0, None),
    ("dnsmos", "silence.wav", 1, "digital silence from beginning to end"),
    ("dnsmos", "telephone.wav", 1, "sampling rate is 8000 Hz, below the 16000 Hz required"),
    ("dnsmos", "blip.wav", 1, "lasts 0.05 s; at least 0.5 s are needed"),
    ("dnsmos", "seven.wav", 0, None),
    ("dnsmos", "studio.wav", 0, None),
]


@pytest.mark.usefixtures("quick_quality")
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(("metric", "name", "code", "sentence"), CASES, ids=lambda value: str(value)[:16])
def test_every_file_gets_a_value_or_a_sentence(
    podeval: Podeval,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    metric: str,
    name: str,
    code: int,
    sentence: str | None,
    as_json: bool,
) -> None:
    monkeypatch.chdir(files)
    said = podeval("measure", metric, name, *(["--json"] if as_json else []), code=code)
    line, *notes = said.out.splitlines()
    assert not notes or (not as_json and all(note.startswith("  ") for note in notes))
    if not as_json:
        assert line.startswith(f"{name.removeprefix('./')}: ")
        assert sentence is None or sentence in line
        assert ("unscored: " in line) == (code == 1)
        assert ("error: " in line) == (code == 2)
        assert ("protocol " in said.err) == (code != 2), "an error has no protocol"
        return
    found = json.loads(line)
    assert found["file"] == name.removeprefix("./")
    assert found["protocol"]["id"].startswith(f"{metric}@")
    if sentence is None:
        assert "unscored" not in found
        assert isinstance(found["integrated" if metric == "loudness" else "ovrl"], float)
    else:
        assert sentence in found["unscored"]
        assert found["cause"] == "system"


def test_one_bad_file_costs_the_others_nothing(podeval: Podeval, files: Path) -> None:
    names = [files / name for name in ("good.wav", "text.wav", "silence.wav", AWKWARD)]
    said = podeval("measure", "loudness", *names, "--json", code=2)
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [line["file"] for line in lines] == [str(name) for name in names]
    assert ["unscored" in line for line in lines] == [False, True, True, False]
    assert podeval("measure", "loudness", *names[::2]).code == 1


@pytest.mark.usefixtures("quick_quality")
def test_upsampling_is_done_where_it_is_asked_for(podeval: Podeval, files: Path) -> None:
    said = podeval("measure", "dnsmos", files / "telephone.wav", "--allow-upsampling", "--json", code=0)
    assert json.loads(said.out)["ovrl"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("measure", "loudnes", "good.wav"), "no metric 'loudnes'; did you mean 'loudness'? `podeval metrics list`"),
        (("measure", "loudness", "good.wav", "--set", "varian=x"), "no parameter 'varian'; it has variant"),
        (
            ("measure", "loudness", "good.wav", "--set", "variant=best"),
            "variant must be one of standard, podeval, not 'best'",
        ),
        (
            ("measure", "loudness", "good.wav", "--set", "variant"),
            "--set takes KEY=VALUE, such as --set variant=podeval",
        ),
        (
            ("measure", "loudness", "good.wav", "--profile", "best"),
            "no profile 'best' that can be run; choose embedded or",
        ),
        (("measure", "wer", "good.wav"), "wer needs the words that should be spoken: add --text FILE"),
        (
            ("measure", "loudness", "good.wav", "--text", "text.wav"),
            "does not use a text or a reference; leave out --text and --reference",
        ),
        (
            ("measure", "loudness", "good.wav", "--reference", "seven.wav"),
            "does not use a text or a reference; leave out --text and --reference",
        ),
        (("measure", "loudness"), "Missing argument"),
        (
            ("measure", "loudness", "good.wav", "--set", "variant=podeval", "--set", "variant=standard"),
            "gives variant twice",
        ),
        (("measure", "loudness", AWKWARD), f"The file {AWKWARD} begins with a dash; write ./{AWKWARD}"),
        (("measure", "loudness", "good.wav", "--nosuch"), "No such option: --nosuch"),
        (("run", "nosuch"), "no built-in system 'nosuch'"),
        (("run", "espeak-ng"), "did you mean espeak_ng?"),
        (
            ("run", "espeak_ng", "--split", "nosuch"),
            "there is no split of real_pod 'nosuch'; choose from demo, topics, spontaneous",
        ),
        (("run", "espeak_ng", "--benchmark", "realpod"), "no benchmark 'realpod'; did you mean real_pod?"),
        (
            ("run", "espeak_ng", "--track", "respond"),
            "the split demo has no track respond; choose from voice, write, podcast",
        ),
        (("run", "espeak_ng", "--profile", "best"), "no profile 'best' that can be run"),
        (("run", "espeak_ng", "--seed", "-1"), "the seed -1 of espeak_ng is out of range"),
        (("run", "nowhere.yaml"), "cannot read nowhere.yaml: No such file or directory; check the path"),
        (("run", "silence", "--out", "good.wav"), "cannot write good.wav"),
        (("report", "show"), "there are no runs in runs; create some with `podeval run` or `podeval demo`"),
        (("report", "show", "--runs", "folder"), "there are no runs in folder"),
        (("report", "show", "--profile", "best"), "no profile 'best'; choose embedded, reference or paper"),
        (("serve", "--port", "99999"), "Invalid value for '--port'"),
        (("models", "install", "--profile", "best"), "there are no weights for profile 'best'; choose"),
        (("nosuch",), "No such command 'nosuch'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_answered_with_a_sentence_on_standard_error_alone(
    podeval: Podeval, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, sentence: str
) -> None:
    shutil.copytree(files, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    said = podeval(*arguments, code=2)
    assert sentence in " ".join(said.err.split())
    assert said.out == ""
    assert not list(Path("folder").iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("hibari_piper", "--benchmark", "podbench"),
            "hibari_piper reads scripts aloud, but podbench asks for scripts (track write)",
        ),
        (
            ("espeak_ng", "--track", "write"),
            "espeak_ng reads scripts aloud, but real_pod asks for scripts (track write)",
        ),
        (
            ("silence", "--benchmark", "mtalk_bench"),
            "silence reads scripts aloud, but mtalk_bench asks for answers to speech",
        ),
    ],
    ids=["podbench", "real_pod", "mtalk_bench"],
)
def test_a_system_whose_task_is_another_begins_nothing(
    podeval: Podeval, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    said = podeval("run", *arguments, "--out", tmp_path / "runs", code=2)
    assert sentence in said.err
    assert "speak 0/" not in said.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("and mister john", "'and mister john' is read as a file name, but does not exist; check the path"),
        (
            "http://x.org/a.txt",
            "http://x.org/a.txt is a web address, which podeval does not fetch; download the file first",
        ),
    ],
    ids=["words", "address"],
)
def test_words_and_addresses_are_no_files(podeval: Podeval, files: Path, given: str, sentence: str) -> None:
    assert sentence in podeval("measure", "wer", files / "good.wav", "--text", given, code=2).out
    said = podeval("measure", "loudness", "https://x.org/a.wav", code=2)
    assert "https://x.org/a.wav is a web address, which podeval does not fetch: download the file first" in said.out


@pytest.mark.parametrize("content", ["{not json", "<!doctype html><p>Not found</p>", '[{"speaker": "Ann", "te'])
def test_what_is_named_json_and_is_none_is_not_scored_as_words(podeval: Podeval, tmp_path: Path, content: str) -> None:
    (tmp_path / "script.json").write_text(content)
    said = podeval("measure", "distinct_n", tmp_path / "script.json", code=2)
    assert "script.json cannot be read as JSON; fix it, or name it .txt" in said.out
    (tmp_path / "lines.json").write_text('["Ann", "one two"]\n\n["Ben", "three"]\n')
    assert podeval("measure", "distinct_n", tmp_path / "lines.json").code == 0


MALFORMED = """\
schema_version: 1
system:
  id: mine
  name: Mine
  description: Mine.
  licence: MIT
  open: perhaps
benchmarks:
  - name: real_pod
source:
  kind: builtin
  runer: espeak_ng
  role: baseline
"""


def test_a_malformed_submission_is_told_by_line_and_field(podeval: Podeval, tmp_path: Path) -> None:
    path = tmp_path / "submission.yaml"
    path.write_text(MALFORMED)
    for name in (path, tmp_path):
        said = podeval("run", name, code=2)
        assert f"{path}, line 7, column 3, system.open: " in said.err
        assert f"{path}, line 12, column 3, source.runer: is not a field here; did you mean runner?" in said.err
    path.write_text("schema_version: 1\nsystem: [\n")
    assert f"{path}: this is not YAML: line 3, column 1: " in podeval("run", path).err


def test_a_submission_that_is_not_run_is_told_what_to_do(podeval: Podeval, tmp_path: Path) -> None:
    reported = Path(__file__).parents[2] / "submissions"
    paper = next(path for path in sorted(reported.glob("*/submission.yaml")) if "kind: reported" in path.read_text())
    assert "contains a paper's figures, so there is nothing to run" in podeval("run", paper, code=2).err
    template = reported / "template.yaml"
    said = podeval("run", template, code=2)
    assert f"{template} is of kind model: queue it with `podeval submit {template}`, then `podeval worker" in said.err


@pytest.mark.parametrize("command", [("serve", "--runs"), ("demo", "--out")])
def test_a_taken_port_is_told_before_anything_is_built(
    podeval: Podeval, tmp_path: Path, command: tuple[str, str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = podeval(*command, tmp_path / "runs", "--port", port)
    assert said.code == 2
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use; choose another port" in said.err
    assert not (tmp_path / "runs").exists()


def test_a_host_that_is_none_is_told(podeval: Podeval, tmp_path: Path) -> None:
    said = podeval("serve", "--runs", tmp_path / "runs", "--host", "256.1.2.3", code=2)
    assert "cannot listen on 256.1.2.3" in said.err


@pytest.fixture
def no_text(tmp_path: Path) -> bytes:
    """A sound whose name is no text."""
    name = os.fsencode(tmp_path) + b"/caf\xe9.wav"
    soundfile.write(tmp_path / "a.wav", noise(1), RATE)
    os.rename(tmp_path / "a.wav", name)
    return name


def test_a_name_that_is_no_text_is_shown(no_text: bytes) -> None:
    done = subprocess.run([COMMAND, "measure", "loudness", no_text], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert rb"caf\udce9.wav: integrated" in done.stdout


def test_the_real_command_says_the_same_and_a_name_that_is_no_text_is_valid_json(files: Path, no_text: bytes) -> None:
    names = [b"text.wav", b"silence.wav", no_text, f"./{AWKWARD}".encode()]
    program = [COMMAND, "measure", "loudness", *names, "--json"]
    done = subprocess.run(program, capture_output=True, cwd=files, check=False)
    assert done.returncode == 2
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [os.fsencode(line["file"]) for line in lines] == [*names[:3], AWKWARD.encode()]
    assert "is a text file, not audio" in lines[0]["unscored"]
    assert ["unscored" in line for line in lines] == [True, True, False, False]
    assert done.stderr == b""


def test_a_reader_that_leaves_early_is_no_error(files: Path) -> None:
    pipe = f"'{COMMAND}' measure loudness good.wav good.wav good.wav --json | true"
    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, cwd=files, check=False)
    assert done.stderr == ""


def test_a_bug_is_called_one_and_debugging_shows_where(
    files: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from podeval.cli import main

    def broken(name: str) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("podeval.metrics.catalogue.get", broken)
    monkeypatch.setattr(sys, "argv", ["podeval", "measure", "loudness", str(files / "good.wav")])
    monkeypatch.delenv("PODEVAL_DEBUG", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "unexpected RuntimeError: a mistake of ours\nThis is a bug in podeval" in capfd.readouterr().err
    monkeypatch.setenv("PODEVAL_DEBUG", "1")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main()


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_metric_s_help_is_made_from_its_declaration(podeval: Podeval, name: str) -> None:
    metric = catalogue.get(name)
    said = podeval("metrics", "show", name, code=0)
    for fact in (metric.documentation, *(key.about for key in metric.keys), *(p.about for p in metric.parameters)):
        assert fact in said.out
