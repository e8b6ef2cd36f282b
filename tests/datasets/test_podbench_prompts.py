"""The prompt for scripts holds the request, the materials and the form; a script in that form is read by its turns."""

import re

import pytest

from podeval.datasets.podbench_prompts import make_generation_prompt
from podeval.errors import BadInput
from podeval.text.script_format import read_any_script
from podeval.text.tokens import detect_language


@pytest.mark.parametrize("language", ["en", "zh"])
def test_everything_given_stands_in_the_prompt(language: str) -> None:
    prompt = make_generation_prompt(
        "On $5 bread & ${yeast}", ["Yeast eats sugar.", "Gluten holds gas."], language=language, speakers=2
    )
    for part in ("On $5 bread & ${yeast}", "Yeast eats sugar.", "Gluten holds gas.", "300", "150"):
        assert part in prompt
    assert not re.search(r"\$[a-z]", prompt.replace("${yeast}", ""))
    assert detect_language(prompt) == language


@pytest.mark.parametrize(("language", "words"), [("en", "Bread is alive."), ("zh", "面包是活的。")])
@pytest.mark.parametrize("speakers", [1, 2])
def test_the_form_it_shows_is_read_as_that_many_speakers(language: str, words: str, speakers: int) -> None:
    prompt = make_generation_prompt("Bread", [], language=language, speakers=speakers)
    shown = [line for line in prompt.splitlines() if line.endswith("…")]
    script = "\n".join(line.replace("…", words) for line in shown)
    assert len(shown) == speakers
    assert len(read_any_script(script).speakers) == speakers


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"instruction": " "}, "the request for a script is empty"),
        ({"speakers": 0}, "at least one speaker"),
        ({"language": "fr"}, "language must be en or zh"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        make_generation_prompt(**{"instruction": "Bread", "sources": [], "language": "en"} | changes)  # type: ignore[arg-type]
