"""What commands tell of the time that is left, and what they really take.

    python studies/speed/told_times.py record OUT.jsonl NAME -- score episode.wav --metrics wer,dnsmos
    python studies/speed/told_times.py table OUT.jsonl [...]

`record` runs one command of `podeval` and appends what it heard of its work, every line that it told, when, and what it
took. `table` prints for each command the first line with a figure and the worst one: seconds told and seconds that were
left. A line is right where what was left lies within its range or within a factor of two of its ends, and one figure
where it is right within a factor of two; what is wrong by less than the 5 s between two lines is over when the next
one is due. A command of several runs, such as `demo`, says of each how long it still takes: there what was left of the
run counts.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

FACTOR = 2.0
HARDLY = 5.0
FIGURES = re.compile(r"about (\d+)(?: to (\d+))? (s|min) left")


def record(out: Path, name: str, command: list[str]) -> int:
    """Run a command and append what it told."""
    from podeval.cli import main, progress_bar

    began = time.monotonic()
    heard: list[Any] = []
    steps: list[Any] = []
    lines: list[Any] = []
    ends: list[float] = []

    def passed() -> float:
        return round(time.monotonic() - began, 2)

    # What it prints is looked at where it is made up, before a terminal or a file shortens it.
    score_line: Any = progress_bar._ScoreLine
    tell, end, step, say = score_line.tell, score_line.__exit__, progress_bar.Steps.step, progress_bar.Steps.say

    def tell_and_note(line: Any, title: str, progress: Any) -> None:
        heard.append([passed(), title, round(progress.done, 4), progress.left, progress.between, progress.whole])
        tell(line, title, progress)

    def step_and_note(bars: Any, title: str, done: int, total: int) -> None:
        steps.append([passed(), title, done, total])
        step(bars, title, done, total)

    def say_and_note(bars: Any, line: str) -> None:
        lines.append([passed(), line])
        say(bars, line)

    def end_and_note(line: Any, *error: Any) -> None:
        ends.append(passed())
        end(line, *error)

    score_line.tell = tell_and_note
    score_line.__exit__ = end_and_note
    progress_bar.Steps.step = step_and_note  # type: ignore[method-assign]
    progress_bar.Steps.say = say_and_note  # type: ignore[method-assign]
    load = os.getloadavg()[0]
    sys.argv = ["podeval", *command]
    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    entry = {
        "name": name,
        "command": command,
        "took": passed(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "code": code,
        "heard": heard,
        "steps": steps,
        "lines": lines,
        "ends": ends,
    }
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, separators=(",", ":")) + "\n")
    return int(code or 0)


def read_line(line: str) -> tuple[float, float] | None:
    """The least and the most seconds that a line tells; None where it tells no figure."""
    if (match := FIGURES.search(line)) is None:
        return None
    unit = 60.0 if match[3] == "min" else 1.0
    return unit * int(match[1]), unit * int(match[2] or match[1])


def judge(low: float, high: float, rest: float) -> float:
    """By how many times what was left lies outside of what was told; 1 within it."""
    if low - HARDLY <= rest <= high + HARDLY:
        return 1.0
    return max(low / max(rest, 0.1), rest / max(high, 0.1), 1.0)


def print_table(entries: list[dict[str, Any]]) -> None:
    """Print how right each command was."""
    print("| command | took | lines with a figure | first figure | worst figure | outside its range by |")
    print("| --- | --- | --- | --- | --- | --- |")
    wrong = count = inside = 0
    for entry in entries:
        told = [(at, line, range_) for at, line in entry["lines"] if (range_ := read_line(line))]
        ends = entry.get("ends", [])
        rests = [(min(end for end in ends if end >= at) if len(ends) > 1 else entry["took"]) - at for at, *_ in told]
        judged = [
            (judge(low, high, rest), at, low, high, rest)
            for (at, _, (low, high)), rest in zip(told, rests, strict=True)
        ]
        wrong += sum(times > FACTOR for times, *_ in judged)
        inside += sum(times == 1 for times, *_ in judged)
        count += len(judged)
        first, worst = (judged[0], max(judged)) if judged else (None, None)
        texts = [
            "none" if one is None else f"at {one[1]:.0f} s: {one[2]:.0f} to {one[3]:.0f} s ({one[4]:.0f})"
            for one in (first, worst)
        ]
        by = f"{worst[0]:.1f}" if worst else ""
        print(f"| {entry['name']} | {entry['took']:.0f} s | {len(judged)} | {texts[0]} | {texts[1]} | {by} |")
    print(f"{count} figures, {inside} within what was told, {wrong} outside a factor of two of it")


if __name__ == "__main__":
    if sys.argv[1] == "record":
        sys.exit(record(Path(sys.argv[2]), sys.argv[3], sys.argv[5:]))
    print_table([json.loads(line) for path in sys.argv[2:] for line in Path(path).read_text().splitlines()])
