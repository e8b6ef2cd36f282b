"""Options that limit the use of a judge, and messages about its usage: during the work, after it, and in a pilot."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.output import say
from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from podeval.judges.budget import Account
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.metrics.pairwise_judge import JudgedBattle
    from podeval.runs.run_folder import KeyAggregate, RunSummary
    from podeval.stats.intervals import Interval

PAUSE = 10.0
"""Number of seconds between two lines about the usage so far."""

MaxCost = Annotated[
    float | None,
    typer.Option(
        help="highest amount that this command may spend on the judge, in the currency of the price in its YAML "
        "file; repeat the command to ask the remaining questions"
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(min=1, help="maximum number of calls to the judge in this command, including unanswered ones"),
]
JudgeWorkers = Annotated[
    int, typer.Option(min=1, help="maximum number of calls to the judge at a time; fewer if the judge is busy")
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1, help="maximum number of items: the first ones or, with --pilot, a sample; a later command adds more"
    ),
]
Pilot = Annotated[
    bool,
    typer.Option(
        "--pilot",
        help="judge only a stratified sample (20 items, or --limit), and predict the cost and intervals for all items",
    ),
]


def make_bench(
    judge: str,
    records: Path | None,
    refresh: str = "",
    workers: int = 4,
    max_cost: float | None = None,
    max_calls: int | None = None,
    prompts: Path | None = None,
) -> "JudgeConfig":
    """Return the choice of a judge, with a budget that reports the usage so far.

    Raises:
        BadInput: there is nothing to limit, a limit is invalid, the judge has no price, or the prompts are unusable.
    """
    from podeval.metrics.judge_use import JudgeConfig

    if not judge:
        if max_cost is not None or max_calls is not None:
            raise BadInput("--max-cost and --max-calls need a judge: add --judge, or leave them out")
        if prompts is not None:
            raise BadInput("--prompts rewords the prompts of a judge: add --judge, or leave --prompts out")
        return JudgeConfig(judge, records, workers, refresh)  # type: ignore[arg-type]
    from podeval.judges.budget import Budget, require_price
    from podeval.judges.judge import find_judge
    from podeval.metrics.prompts import read_wordings

    budget = Budget(max_cost, None, max_calls, _Watch())
    if max_cost is not None:
        require_price(find_judge(judge), budget)
    return JudgeConfig(judge, records, workers, refresh, budget, read_wordings(prompts))  # type: ignore[arg-type]


class _Watch:
    """Reports the usage so far at intervals."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, account: "Account") -> None:
        if time.monotonic() - self._last >= PAUSE:
            self._last = time.monotonic()
            say(f"judge, so far: {account.sentence()}")


def tell_usage(bench: "JudgeConfig") -> None:
    """Report the judge's usage, if the judge or its records were used."""
    account = bench.budget.account if bench.budget else None
    if account and (account.calls or account.from_records or account.busy):
        say(f"judge: {account.sentence()}")


def tell_pilot(
    usage: "Sequence[tuple[Account, int]]",
    done: int,
    total: int,
    means: "Iterable[tuple[str, Interval | KeyAggregate | None, int]]",
    seeds: int = 1,
) -> None:
    """Report the expected cost of all items, and the expected width of the intervals of their means.

    Args:
        usage: the pilot's usage with the number of its items, for each judged metric.
        done: number of items in the pilot.
        total: number of all items.
        means: the name, the mean with its 95 % interval, and the number of values on which the mean is based, for each
            mean.
        seeds: number of outputs per item.
    """
    from podeval.judges.budget import Account
    from podeval.stats.sequential import project_half_width

    say(f"the pilot used {done} of {total} items; all {total} would take:")
    whole = Account()
    for account, judged in usage:
        if account.calls and judged:
            # Calls that were answered from records count as well, because a run without these records must make the
            # calls.
            saved = (account.calls + account.from_records) / account.calls
            whole.add(account.scaled(seeds * total / judged * saved))
    if whole.calls:
        say(f"  judge, about: {whole.sentence().partition(';')[0]}")
    elif any(account.from_records for account, _ in usage):
        say("  judge: unknown, because every answer came from records")
    if unasked := max((seeds * done - judged for _, judged in usage), default=0):
        say(
            f"  the budget was used up before {unasked} items of the pilot were judged; the figures describe "
            f"the other items"
        )
    for name, mean, count in means:
        if mean and mean.low is not None and mean.high is not None and 1 < count < total:
            values = round(total * count / done) if count < done else total
            half = project_half_width((mean.high - mean.low) / 2, count, values)
            interval = f"{mean.mean:.4g} [{mean.low:.4g}, {mean.high:.4g}]"
            say(f"  {name} {interval} with {count}, about ±{half:.2g} with all")


def tell_pilot_run(summaries: "Sequence[RunSummary]") -> None:
    """Report a pilot's predictions for a whole run, for the judged metrics or, if there are none, for all metrics.

    Args:
        summaries: the measurements by seed.
    """
    from podeval.judges.budget import Account
    from podeval.runs.aggregate import NOT_MEASURED

    rows = [row for row in summaries[-1].metrics if not row.slice]
    total = max(row.scored + row.unscored_system + row.unscored_ours for row in rows)
    done = total - min(row.reasons.get(NOT_MEASURED.reason, 0) for row in rows)
    accounts: dict[str, Account] = {}
    judged: Counter[str] = Counter()
    for summary in summaries:
        for metric, used in summary.provenance.get("judge_usage", {}).items():
            account = accounts.setdefault(metric, Account())
            account.add(Account(**{name: used[name] for name in vars(account)}))
        for row in summary.metrics:
            judged[row.metric] += 0 if row.slice else done - count_unasked(Counter(row.reasons).elements())
    means = [
        (f"{row.metric}.{key}", one, row.scored)
        for row in rows
        for key, one in row.keys.items()
        if row.metric in accounts or not accounts
    ]
    usage = [(account, judged[metric]) for metric, account in accounts.items()]
    tell_pilot(usage, done, total, means, len(summaries))


def count_unasked(reasons: Iterable[str]) -> int:
    """Count, from the reasons for missing values, the questions that the budget did not allow."""
    from podeval.judges.budget import USED_UP

    return sum(USED_UP in reason for reason in reasons)


def list_shares(battles: "Sequence[JudgedBattle | PodevalError]") -> "list[tuple[str, Interval, int]]":
    """List, for each pair of systems, the share of battles that one won against the other, with its interval; ties
    count half.
    """
    from podeval.stats.intervals import mean_ci

    points: dict[str, list[float]] = {}
    for battle in battles:
        if not isinstance(battle, PodevalError):
            pair = f"{battle.system_a} over {battle.system_b}"
            points.setdefault(pair, []).append({"a": 1.0, "tie": 0.5, "b": 0.0}[battle.outcome])
    return [(pair, mean_ci(values, bounds=(0.0, 1.0)), len(values)) for pair, values in points.items()]
