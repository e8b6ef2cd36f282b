"""A function in a Python file is a system, and what it does wrong is told by its line."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.systems.python_file import PythonSystem, open_python
from podeval.systems.speech import Ask, RecordedUserTurn, Reference, SpeechFailed
from podeval.text.script import Turn

SPEAK = Ask(
    id="one",
    script=(Turn(speaker="Ann", text="Hello."), Turn(speaker="Ben", text="Good day.")),
    voices={"Ann": Reference(audio="/voices/ann.wav", text="I am Ann.")},
)
WRITE = Ask(id="two", prompt="Write about tea.")
TALK = Ask(id="three", user=(RecordedUserTurn(id="t1", words="Hi", audio="a.wav"), RecordedUserTurn(id="t2")))


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., PythonSystem]:
    def write(body: str, function: str = "speak") -> PythonSystem:
        (tmp_path / "mine.py").write_text("import numpy as np\n" + dedent(body))
        return open_python(f"{tmp_path / 'mine.py'}:{function}")

    return write


def test_a_script_is_spoken_by_a_function(program: Callable[..., PythonSystem]) -> None:
    system = program("""
        def speak(turns, voices, language):
            assert [(t.speaker, t.text) for t in turns] == [("Ann", "Hello."), ("Ben", "Good day.")]
            assert voices == {"Ann": "/voices/ann.wav", "Ben": None} and language == "en"
            return np.full((800, 2), 0.5), 8000
    """)
    (speech,) = system.make([SPEAK], 0)
    assert (speech.samples.shape, speech.rate, speech.duration) == ((800, 2), 8000, 0.1)
    assert speech.samples.dtype == np.float32
    assert speech.wall_seconds > 0


def test_samples_of_16_bits_are_brought_to_full_scale(program: Callable[..., PythonSystem]) -> None:
    system = program("def speak(turns, voices, language): return np.array([0, 16384, -32768], np.int16), 8000")
    (speech,) = system.make([SPEAK], 0)
    assert speech.samples.tolist() == [0.0, 0.5, -1.0]


def test_the_seed_is_given_or_set(program: Callable[..., PythonSystem]) -> None:
    drawing = program("def speak(turns, voices, language): return np.random.uniform(-1, 1, 100), 8000")
    asking = program("def speak(turns, voices, language, seed): return np.full(100, seed / 10), 8000")
    for system in (drawing, asking):
        first, again, other = (system.make([SPEAK], seed)[0].samples for seed in (1, 1, 2))  # type: ignore[union-attr]
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_a_script_is_written_as_text_or_as_turns(program: Callable[..., PythonSystem]) -> None:
    text = program("def write(prompt, language): return 'Host 1: ' + prompt + '\\nHost 2: Yes.'", "write")
    turns = program("def write(prompt, language): return [{'speaker': 'Ann', 'text': prompt}]", "write")
    (first,), (second,) = text.make([WRITE], 0), turns.make([WRITE], 0)
    assert (first.text, first.turns) == ("Host 1: Write about tea.\nHost 2: Yes.", None)
    assert second.turns == [{"speaker": "Ann", "text": "Write about tea."}]


def test_a_person_is_answered_with_all_before_in_mind(program: Callable[..., PythonSystem]) -> None:
    system = program(
        """
        def answer(heard, language):
            return np.full(100 * len(heard), 0.1), 8000, " ".join(h.who + ":" + h.words for h in heard)
        """,
        "answer",
    )
    (made,) = system.make([TALK], 0)
    assert [answer.turn for answer in made.answers] == ["t1", "t2"]
    assert [answer.text for answer in made.answers] == ["user:Hi", "user:Hi system:user:Hi user:"]
    assert [len(answer.speech.samples) for answer in made.answers] == [100, 300]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("None", r"speak returned a value of type NoneType; return \(samples, rate in Hz\)"),
        ("(np.zeros(9), 0)", "returned the rate 0"),
        ("(np.zeros(9), 24000.0)", "returned the rate 24000.0"),
        ("(np.zeros((1, 900)), 8000)", r"channels first; return \(frames, channels\): samples.T"),
        ("(np.zeros((0,)), 8000)", r"shape \(0,\)"),
        ("(np.zeros(9, np.int64), 8000)", "samples of type int64"),
        ("('sound.wav', 8000)", "instead of an array"),
        ("(1 / 0, 8000)", r"failed \(ZeroDivisionError, line 2: division by zero\)"),
    ],
)
def test_what_a_function_gives_wrongly_is_its_failure(
    program: Callable[..., PythonSystem], result: str, reason: str
) -> None:
    with pytest.raises(SpeechFailed, match=reason):
        program(f"def speak(turns, voices, language): return {result}").make([SPEAK], 0)


def test_torch_tensors_are_samples_too(program: Callable[..., PythonSystem]) -> None:
    pytest.importorskip("torch")
    system = program(
        "import torch\ndef speak(turns, voices, language): return torch.rand(50, requires_grad=True), 8000"
    )
    (speech,) = system.make([SPEAK], 0)
    assert speech.samples.shape == (50,)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("mine.py", "takes FILE.py:FUNCTION"),
        ("mine.txt:speak", "takes FILE.py:FUNCTION"),
        ("absent.py:speak", "there is no file absent.py"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_in_words(reference: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        open_python(reference)


def test_a_file_that_cannot_be_imported_is_refused_by_its_line(program: Callable[..., PythonSystem]) -> None:
    with pytest.raises(BadInput, match=r"cannot be imported \(ModuleNotFoundError, line 2: .*no_such_thing"):
        program("import no_such_thing")
    with pytest.raises(BadInput, match=r"cannot be imported \(SyntaxError, line 2"):
        program("def speak(")
    with pytest.raises(BadInput, match=r"has no function 'speak'; it defines talk"):
        program("def talk(): pass")


def test_an_edited_file_is_another_system(program: Callable[..., PythonSystem]) -> None:
    before = program("def speak(turns, voices, language): return np.zeros(9), 8000").generation
    after = program("def speak(turns, voices, language): return np.ones(9), 8000").generation
    assert before != after
    assert before["file"] == "mine.py"
