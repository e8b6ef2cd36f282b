import json
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "judges.md"


def test_the_example_of_the_page_runs(
    serve: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    def script(call: Any) -> Any:
        return scripted.Answer(json.dumps({"reason": "as read", "warmth": 5 if "Welcome" in call.question else 1}))

    server = serve(script)
    monkeypatch.chdir(tmp_path)
    program = example.replace("http://127.0.0.1:8080/v1", server.url)
    assert program != example
    for made in (2, 2):
        exec(compile(program, str(PAGE), "exec"), {"__name__": "example"})
        printed = capsys.readouterr().out
        assert "warmth=5" in printed
        assert "warmth=1" in printed
        # The second run asks nobody.
        assert len(server.calls) == made


def test_the_judge_file_of_the_page_is_one(tmp_path: Path) -> None:
    from podeval.judges.judge import find_judge

    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    path = tmp_path / "judge.yaml"
    path.write_text(example, encoding="utf-8")
    judge = find_judge(str(path))
    assert (judge.model, judge.revision, judge.timeout) == ("gemini-2.5-pro", "2026-06", 180)
