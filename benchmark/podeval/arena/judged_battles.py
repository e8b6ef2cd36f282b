"""Battles that a judge decides: which systems meet on which dialogue, in which order, and what the outcome is.

`all`: every pair of systems meets on every dialogue that both answered. `mtalk`: in each dimension separately, one of
    the three pairs of systems with the closest Elo ratings so far meets, until there are enough battles. MTalk-Bench
    chooses pairs in the same way for its battles judged by people (appendix C.1); the paper's judges decided about 500
    battles per dimension. The ratings before a round determine the pairs of the round, which are then judged together.
    All choices follow from the seed, so a rerun asks the same questions and finds their answers in the records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from podeval import benchmarks
from podeval.arena.pairing import Meeting, MetBefore, Pair, PairingField, PairingPool, choose_next_meeting
from podeval.datasets.items import load_items
from podeval.errors import BadInput, PodevalError
from podeval.judges.budget import USED_UP
from podeval.judges.rounds import Conversation
from podeval.metrics.pairwise_judge import JudgedBattle, Variant
from podeval.metrics.spoken_dialogue import SpokenDialogue, read_dialogue
from podeval.runs.item_inputs import read_dialogues
from podeval.runs.run_folder import open_run
from podeval.stats.battles import INITIAL, Battles, elo

Pairing = Literal["all", "mtalk"]

PER_DIMENSION = 500
"""Number of battles per dimension that the paper's judges decided."""
ROUND = 4
"""Number of battles per dimension that are judged together."""

Outcome = JudgedBattle | PodevalError
Fought = tuple[SpokenDialogue, SpokenDialogue, Outcome]
"""The two sides of a battle, and its outcome or the reason why it has no outcome."""
Sides = tuple[SpokenDialogue, SpokenDialogue]
Hold = Callable[[list[Conversation[JudgedBattle]]], Sequence[Outcome]]
"""The type of a function that conducts conversations with the judge, such as `podeval.judges.rounds.hold`."""


def hold_battles(
    dialogues: Sequence[SpokenDialogue],
    ask: Callable[[SpokenDialogue, SpokenDialogue], Conversation[JudgedBattle]],
    hold: Hold,
    *,
    pairing: Pairing = "all",
    variant: Variant = "default",
    most: int = PER_DIMENSION,
    seed: int = 0,
    choose: Callable[[list[Sides]], Sequence[Sides]] = list,
) -> Iterator[Fought]:
    """Hold the battles on all dialogues, and yield the battles of each round when the round ends.

    Args:
        dialogues: dialogues, each naming its system; two systems can meet on dialogues with the same id.
        ask: the function that starts the conversation in which the judge compares two sides.
        hold: the function that holds the conversations of a round.
        pairing: the rule that pairs systems.
        variant: the variant of the Elo ratings in `mtalk`: ties count 0 in the paper's variant, otherwise one half.
        most: maximum number of battles per dimension, for `mtalk`.
        seed: seed for the choices of `mtalk`.
        choose: the function that selects the pairs to judge under `all`.

    Raises:
        BadInput: no two systems answered the same dialogue, or a system answered a dialogue twice.
    """
    pools: dict[str, dict[str, dict[str, SpokenDialogue]]] = defaultdict(lambda: defaultdict(dict))
    for one in dialogues:
        systems = pools[one.dimension][one.id]
        if str(one.system) in systems:
            raise BadInput(
                f"{one.system} answered {one.id} twice; keep one of its runs, or give the runs different names"
            )
        systems[str(one.system)] = one
    if not any(len(systems) > 1 for items in pools.values() for systems in items.values()):
        raise BadInput(
            "no two systems answered the same dialogue; provide dialogues that at least two systems answered"
        )
    if pairing == "all":
        every = [
            pair for items in pools.values() for systems in items.values() for pair in combinations(systems.values(), 2)
        ]
        sides = choose(every)
        outcomes = hold([ask(*pair) for pair in sides])
        yield from ((one, other, outcome) for (one, other), outcome in zip(sides, outcomes, strict=True))
        return
    fields = {name: _Field(name, items, variant, most, seed) for name, items in pools.items()}
    while meetings := [(field, met) for field in fields.values() for met in field.choose()]:
        sides = [(field.items[met.item][met.a], field.items[met.item][met.b]) for field, met in meetings]
        outcomes = hold([ask(*pair) for pair in sides])
        for (field, met), pair, outcome in zip(meetings, sides, outcomes, strict=True):
            field.rate(met, outcome)
            yield *pair, outcome
        if all(USED_UP in str(outcome) for outcome in outcomes):
            return


def read_sides(
    sources: Sequence[Path], data: Path | None = None, tell: Callable[[str], None] = lambda _: None
) -> Iterator[SpokenDialogue]:
    """Read dialogues from folders of runs and from JSON files.

    Args:
        sources: the folders and files.
        data: folder of the runs' dataset; by default the folder named `data` in the working directory.
        tell: function that is called with a sentence about the items that a run's system did not answer.

    Raises:
        BadInput: a source contains no dialogues, a dialogue does not name its system, or a run answered items that are
            not in the dataset.
    """
    for path in sources:
        if not path.is_dir():
            one = read_dialogue(path)
            if not one.system:
                raise BadInput(f"{path} does not say which system gave these answers; add the field `system`")
            yield one
            continue
        run = open_run(path)
        plan = run.plan()
        benchmark = benchmarks.get(plan.benchmark)
        dataset = load_items(benchmark, plan.split, data)
        if plan.dataset != f"{benchmark.dataset.path}@{dataset.revision}":
            raise BadInput(
                f"the run in {path} answered items that are not in the dataset here; "
                "specify the run's own dataset with --data"
            )
        answered = list(read_dialogues(run, dataset.items))
        if missing := len(dataset.items) - len(answered):
            tell(
                f"{plan.system} gave no answer to {missing} of {len(dataset.items)} dialogues, so it has no "
                f"battles on them"
            )
        yield from answered


class _Field:
    """The battles on one dimension, and the ratings based on them."""

    def __init__(
        self, name: str, items: dict[str, dict[str, SpokenDialogue]], variant: Variant, most: int, seed: int
    ) -> None:
        self.items = items
        self._pool = PairingPool(items)
        self._name, self._variant, self._most, self._seed = name, variant, most, seed
        self._meetings: list[tuple[Pair, str]] = []
        self._rows: list[tuple[str, str, str]] = []

    def choose(self) -> list[Meeting]:
        """Choose the next meetings; return none if there are enough battles or no pair is left."""
        systems = {system for systems in self.items.values() for system in systems}
        ratings = dict.fromkeys(systems, INITIAL)
        if self._rows:
            first, second, outcomes = zip(*self._rows, strict=True)
            rated = elo(Battles.of(first, second, outcomes), self._variant)
            ratings |= {name: row.rating for name, row in rated.items()}
        field = PairingField(self._pool, ratings, {}, {})
        chosen: list[Meeting] = []
        while len(chosen) < ROUND and (number := len(self._meetings)) < self._most:
            seed = f"{self._seed}:{self._name}:{number}"
            # A pair never meets twice on the same item, so all its remaining items are equivalent.
            met = choose_next_meeting(field, MetBefore(self._meetings), lambda _: {}, seed=seed, rule="mtalk")
            if met is None:
                break
            self._meetings.append((met.pair, met.item))
            chosen.append(met)
        return chosen

    def rate(self, met: Meeting, outcome: Outcome) -> None:
        """Record an outcome; a battle without an outcome does not change the ratings."""
        if isinstance(outcome, JudgedBattle):
            self._rows.append((met.a, met.b, outcome.outcome))
