"""The gate on real speech and a real metric: noise at 15 dB in all items, and in one item of six."""

from pathlib import Path

import numpy as np
import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.runs.compare import Watched, compare_runs
from podeval.runs.executor import Executor, Workers
from podeval.runs.own_system import OwnSystem, run_own_system
from podeval.runs.run import RunRequest
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.speech import Ask, Speech

# Minutes of processor time: more than ten on a machine that others use too.
pytestmark = [pytest.mark.long, pytest.mark.models, pytest.mark.timeout(3600)]
SNR = 15.0


class Noisy:
    """Hibari and Piper, with white noise in some items; each seed has noise and voice of its own."""

    at_once = 1

    def __init__(self, noisy: frozenset[str], first_seed: int) -> None:
        self._reader, self._noisy, self._first_seed = HibariPiper(), noisy, first_seed

    @property
    def generation(self) -> dict[str, object]:
        return {"system": "noisy", "noisy": sorted(self._noisy), "first_seed": self._first_seed}

    def make(self, asks: list[Ask], seed: int) -> list[Speech]:
        (ask,) = asks
        script = ask.spoken()
        # The first turns only: about ten seconds an item, so that the test takes minutes and not an hour.
        short = type(script)(script.turns[:4])
        speech = self._reader.speak(short, seed=self._first_seed + seed)
        if ask.id not in self._noisy:
            return [speech]
        generator = np.random.default_rng([seed, self._first_seed])
        level = np.sqrt(np.mean(np.square(speech.samples))) * 10 ** (-SNR / 20)
        noise = generator.normal(0, level, speech.samples.shape).astype(np.float32)
        return [Speech(speech.samples + noise, speech.rate, speech.turns, speech.wall_seconds)]


def run(executor: Executor, runs: Path, name: str, noisy: frozenset[str], first_seed: int, seeds: int) -> Path:
    benchmark = keep_metrics(benchmarks.get("real_pod"), ["dnsmos"], "voice")
    system = OwnSystem(Noisy(noisy, first_seed), name, name)
    for seed in range(seeds):
        request = RunRequest(benchmark, "demo", "voice", runs, seed=seed, repeats=seed > 0, executor=executor)
        run_own_system(system, request)
    return runs / "real_pod" / "demo" / name


def test_noise_is_caught_and_equal_systems_are_not_told_apart(tmp_path: Path) -> None:
    items = [item.id for item in benchmarks.get("real_pod").items("demo")]
    with Workers(2) as executor:
        plain = run(executor, tmp_path, "plain", frozenset(), 0, 5)
        again = run(executor, tmp_path, "again", frozenset(), 100, 5)
        every = run(executor, tmp_path, "every", frozenset(items), 200, 1)
        one = run(executor, tmp_path, "one", frozenset(items[2:3]), 300, 5)
    watched = [Watched("dnsmos.ovrl")]
    equal = compare_runs(plain, again, watched)
    assert not equal.failed
    assert equal.tested_items
    noisy = next(column for column in compare_runs(plain, every, watched).columns if column.verdict)
    assert noisy.verdict == "worse", "six items with one seed each are enough where all agree"
    single = next(column for column in compare_runs(plain, one, watched).columns if column.verdict)
    assert [item.item for item in single.worse_items] == items[2:3]
