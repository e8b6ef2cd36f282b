"""A certificate tells what seed, normaliser and averaging make of an error rate, from kept transcripts alone.

The runs written here are also compared with people, by the command.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.metrics.score import Score
from podeval.runs.aggregate import summarise
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.text.comparison.word_errors import count_word_errors
from podeval.validation.certificate import Certificate, certify, explain

BENCHMARK = benchmarks.get("real_pod")
ITEMS = BENCHMARK.items("demo")[:2]
WRITTEN = (
    "Doctor Smith has ten cats.",
    "He feeds them twice each day, at noon and at night, he says, or so they think.",
)
HEARD = ("doctor smith has ten cats", "he feeds them twice each day at noon and at night he says or so they drink")


def write(runs: Path, system: str, heard: tuple[str, str] = HEARD, seed: int = 0) -> RunFolder:
    """Write a run of two items with what a recogniser heard in them."""
    folder = RunFolder(runs, "real_pod", "demo", system)
    folder = folder.repeat(seed) if seed else folder
    plan = RunPlan(
        benchmark="real_pod", split="demo", dataset="podeval/real_pod@sha256:0", track="voice", system=system,
        system_title=system, system_kind="system", generation={}, seed=seed,
    )  # fmt: skip
    folder.begin(plan)
    folder.write_items(ITEMS)
    wer = next(p for p in make_protocols(BENCHMARK, plan, "embedded", CONDITIONS).values() if p.metric == "wer")
    for item, written, words in zip(ITEMS, WRITTEN, heard, strict=True):
        folder.write_output(Output(item=item.id, script=({"speaker": "A", "text": written},)))
        errors = count_word_errors(written, words)
        notes = {"language": "en", "transcript": words}
        folder.append_results("embedded", item.id, [(wer, Score({"wer": errors.wer, "cer": errors.cer}, notes))])
    if not seed:
        folder.write_summary(summarise(folder, "embedded", BENCHMARK, ITEMS))
    return folder


def figure(certificate: Certificate, normaliser: str, averaging: str) -> float:
    (value,) = (v for choice, v in certificate.choices.items() if normaliser in choice and averaging in choice)
    return value


def test_choices_are_computed_anew_from_kept_transcripts(tmp_path: Path) -> None:
    """One word of 17 wrong in the second text, none of 5 in the first."""
    found = certify(write(tmp_path, "aria"))
    assert figure(found, "Whisper", "items") == pytest.approx((0 + 1 / 17) / 2)
    assert figure(found, "Whisper", "pooled") == pytest.approx(1 / 22)
    # As they stand: "Doctor", "Smith", "cats." of the first; "He", "day,", "night,", "says,", "think." of the second.
    assert figure(found, "none", "items") == pytest.approx((3 / 5 + 5 / 17) / 2)
    assert found.value.mean == pytest.approx(1 / 34)


@pytest.mark.parametrize(("printed", "inside"), [(0.04, True), (0.013, False), (0.9, False)])
def test_a_printed_figure_lies_inside_or_outside(tmp_path: Path, printed: float, inside: bool) -> None:
    found = certify(write(tmp_path, "aria"), printed=printed)
    assert found.is_inside is inside
    (sentence,) = (line for line in explain(found, 100) if line.startswith("The paper's"))
    assert sentence.startswith(
        f"The paper's {printed * 100:g} is {'inside' if inside else 'outside'} the range that seed"
    )


def test_seeds_widen_what_a_figure_may_be(tmp_path: Path) -> None:
    run = write(tmp_path, "aria")
    write(tmp_path, "aria", (HEARD[0], "nothing"), seed=1)
    found = certify(run)
    assert set(found.seeds) == {0, 1}
    assert found.seeds[1] == pytest.approx(0.5)
    assert found.seed_spread == pytest.approx((0.5 - 1 / 34) / 2**0.5)
    assert any(line.startswith("Over 2 seeds") for line in explain(found, 100))


def test_ranks_that_flip_with_the_choice_are_named(tmp_path: Path) -> None:
    """One wrong word of few, or two of many: by the mean over items the second is better, by words the first."""
    one = write(tmp_path, "aria", ("doctor smith has ten hats", HEARD[1].replace("drink", "think")))
    other = write(tmp_path, "basso", (HEARD[0], HEARD[1].replace("noon", "moon")))
    found = certify(one, others=[other])
    assert found.compared == 1
    assert {(flip["better"], flip["worse"]) for flip in found.flips} == {("basso", "aria")}
    assert all("pooled" in flip["choice"] for flip in found.flips if "Whisper" in flip["choice"])


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    run = write(tmp_path, "aria")
    people = write(tmp_path, "people", (WRITTEN[0], WRITTEN[1]))
    assert "the spread over seeds" in " ".join(certify(run).missing)
    found = certify(run, people=people)
    assert found.floor == 0.0
    assert not any("floor" in what for what in found.missing)
    with pytest.raises(BadInput, match="no values of dnsmos"):
        certify(run, "dnsmos.ovrl")


def test_the_command_prints_the_sentence(tmp_path: Path) -> None:
    from podeval.cli import app

    run = write(tmp_path, "aria")
    result = CliRunner().invoke(app, ["report", "certificate", str(run.path), "--printed", "1.30"])
    assert result.exit_code == 0, result.output
    assert "The paper's 1.3 is outside" in result.output


def test_the_error_rates_of_runs_are_compared_with_people(tmp_path: Path) -> None:
    """People who dislike errors agree with it, on three systems with two items each."""
    from podeval.cli import app

    lines = ["system,item,score"]
    for system, words in (("aria", HEARD), ("basso", ("doctor smith", HEARD[1])), ("canto", ("ten", "he feeds them"))):
        run = write(tmp_path / "runs", system, words)
        results = [(item, result) for (item, _), result in run.results("embedded").items()]
        lines += [f"{system},{item},{-result.values['wer']}" for item, result in results]
    (tmp_path / "listeners.csv").write_text("\n".join(lines), encoding="utf-8")
    asked = ["report", "agreement", "--runs", str(tmp_path / "runs"), "--ratings", str(tmp_path / "listeners.csv")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "listeners: the evidence is thin, with 3 systems" in result.output
    assert "wer.wer (turned: lower is better) with listeners: SRCC 1.00" in result.output
