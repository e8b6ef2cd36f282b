"""`podeval data items|list|info|build|verify|push|fetch|construct`: the benchmarks' datasets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_benchmark, complete_dataset, complete_split, complete_track
from podeval.cli.data_tools import data
from podeval.cli.output import AsJson, emit, say, show_progress
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.systems.speech import Ask

__all__ = ["data"]

# `podeval data construct`: make material for the benchmarks step by step, with reviews by people between the steps.


@data.command()
def construct(
    benchmark: Annotated[str, typer.Argument(metavar="NAME", help="real_pod, lfs_bench, podbench or mtalk_bench")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="files or folders to import, for steps that import any")
    ] = None,
    step: Annotated[str, typer.Option(help="the step to run; by default, all steps are described")] = "",
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="working folder; created if missing")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="a setting of the step (repeatable); separate the entries of a list with commas",
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            help="language model to ask: MODEL@https://host/v1 (key in the environment as PODEVAL_JUDGE_KEY), "
            "gguf:FILE, transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
        ),
    ] = "",
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="also keep the entries that have no decision in the review")
    ] = False,
    profile: Annotated[str, typer.Option(help=f"models to use: {CHOICES}")] = "embedded",
    workers: Annotated[int, typer.Option(min=1, help="maximum number of questions at a time")] = 4,
    most_tokens: Annotated[
        int | None, typer.Option(min=1, help="stop before more than this number of tokens is used")
    ] = None,
    most_cost: Annotated[
        float | None, typer.Option(help="stop before spending more than this amount; needs prices in a YAML file")
    ] = None,
) -> None:
    """Make new material for a benchmark, in steps whose files people review. The exit code is 1 while rows await
    review.

    A stopped step resumes without asking answered questions again.

    Example: podeval data construct lfs_bench

    Example: podeval data construct lfs_bench --step write --set each=2 --into my_texts --judge MODEL@https://host/v1

    Example: podeval data construct podbench articles/*.txt --step take --into my_requests

    Example: podeval data construct lfs_bench --step finish --into my_texts && podeval data build lfs_bench --source
    my_texts/finished
    """
    from podeval.construction.steps import describe_steps, find_step, read_settings, run_step
    from podeval.construction.workshop import Workshop
    from podeval.datasets.dataset_record import BrokenRules
    from podeval.judges.budget import Budget

    if not step:
        print(describe_steps(benchmark))
        return
    if into is None:
        raise typer.BadParameter("specify the working folder with --into DIR")
    function = find_step(benchmark, step)
    workshop = Workshop(into)
    try:
        with show_progress(into.name):
            run_step(
                workshop,
                function,
                read_settings(function, settings or ()),
                files=files or (),
                accept_all=accept_all,
                profile=profile,
                judge=judge,
                workers=workers,
                budget=Budget(most_cost, most_tokens),
            )
    except BrokenRules as broken:
        print(f"podeval: {broken}", file=sys.stderr)
        raise typer.Exit(1) from None
    for sentence in workshop.sentences:
        print(sentence)
    waiting = [f"{row.id} is waiting: {row.reason}" for row in workshop.waiting]
    more = [f"and {len(waiting) - 20} more are waiting"] if len(waiting) > 20 else []
    for line in (*waiting[:20], *more):
        print(line, file=sys.stderr)
    raise typer.Exit(1 if waiting else 0)


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="name of the dataset; `podeval data list` shows all", autocompletion=complete_dataset
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="a folder made by `podeval data build`")]
Source = Annotated[
    str | None,
    typer.Option(help="sample, another source's name, a folder, https://…, or hub:owner/name@revision"),
]
Configs = Annotated[list[str] | None, typer.Option("--config", help="only this configuration (repeatable)")]


@data.command()
def items(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="which benchmark", autocompletion=complete_benchmark)
    ] = "real_pod",
    split: Annotated[
        str,
        typer.Option(
            help="split of the benchmark; by default the one that ships with podeval", autocompletion=complete_split
        ),
    ] = "",
    track: Annotated[
        str,
        typer.Option(help="track of the benchmark; by default the split's first track", autocompletion=complete_track),
    ] = "",
    data: Annotated[
        Path | None, typer.Option(help="folder of the dataset, made by `podeval data build`; ./NAME by default")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the tasks for a system (to speak, write or answer), with the names that its output files should have.

    Make these files with your system, and measure them with `podeval run --outputs FOLDER`.

    Example: podeval data items real_pod --split demo

    Example: podeval data items lfs_bench --json > items.jsonl
    """
    from podeval import benchmarks
    from podeval.runs.item_inputs import ask_of
    from podeval.runs.run import RunRequest, read_items
    from podeval.text.terminal_safe import make_printable

    chosen = benchmarks.get(benchmark)
    part = chosen.split(split) if split else chosen.first_split
    track = track or part.tracks[0]
    for item in read_items(RunRequest(chosen, part.name, track, Path(), data=data)).items:
        ask = ask_of(track, item)
        print(ask.model_dump_json(exclude_none=True) if as_json else make_printable(_describe_ask(ask)))


@data.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """List every dataset with its content, configurations, sources and licence.

    Example: podeval data list
    """
    from podeval.datasets import catalogue

    for name in catalogue.NAMES:
        record = catalogue.get(name).RECORD
        if as_json:
            emit(record)
        else:
            configs = ", ".join(config.name for config in record.configs)
            print(f"{name:12} {record.summary}\n{'':12} configs {configs}; licence {record.licence}")


@data.command()
def info(name: Name, as_json: AsJson = False) -> None:
    """Show a dataset's card: columns, provenance, known errors, licence and the source of its rows.

    Example: podeval data info lfs_bench
    """
    from podeval.datasets import card, catalogue

    kind = catalogue.get(name)
    if as_json:
        emit(kind.RECORD)
    else:
        print(card.render_body(kind, {}), end="")


@data.command()
def build(
    name: Name,
    config: Configs = None,
    source: Source = None,
    out: Annotated[Path | None, typer.Option(help="folder to write to; ./NAME by default")] = None,
) -> None:
    """Make a dataset folder that `datasets.load_dataset` can read: Parquet files and the card.

    Rows are checked first; if any row breaks a rule, all such rows are listed and nothing is written.

    Example: podeval data build lfs_bench --source ~/SwanBench-Speech/test_dataset/text_data

    Example: podeval data build real_pod --source sample --out /tmp/real_pod_sample

    Example: podeval data build real_pod --source ./real_pod_episodes --out ./episodes
    """
    from podeval.datasets.build import build as build_dataset
    from podeval.datasets.dataset_record import BrokenRules
    from podeval.recording.cache import open_default_cache

    to = out or Path(name)
    downloads = open_default_cache().folder.parent / "downloads"
    try:
        with show_progress(name):
            lock = build_dataset(name, to, source=source, configs=config or (), cache=downloads, progress=say)
    except BrokenRules as broken:
        print(f"podeval: {broken}", file=sys.stderr)
        raise typer.Exit(1) from None
    if lock["sample"]:
        say("these rows are a sample made for podeval, not the benchmark")
    print(to)


@data.command()
def verify(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FOLDER", help="name of a dataset, or a folder that contains a dataset")
    ],
    on_hub: Annotated[
        bool, typer.Option("--on-hub", help="instead, list podeval's rows on the Hub's leaderboard of OWNER/NAME")
    ] = False,
) -> None:
    """Check a built folder: hashes, columns, number of rows, and the rules for every row. The exit code is 1 if a check
    fails.

    A dataset's name means the folder of that name in the current directory. With --on-hub, the command reads the Hub's
    own leaderboard for the dataset, and the exit code is 1 if this leaderboard does not show a row from podeval.

    Example: podeval data verify ./lfs_bench
    """
    from podeval.datasets.build import verify as wrong_with

    if on_hub:
        from podeval.hub.eval_results import list_rows

        rows = list_rows(name if "/" in name else f"podeval/{name}")
        for row in rows:
            print(f"#{row.rank} {row.model_id}: {row.value:g}{' (verified)' if row.verified else ''}")
        say(f"the Hub's leaderboard shows {len(rows)} rows from podeval")
        raise typer.Exit(0 if rows else 1)

    count = 0
    for count, line in enumerate(wrong_with(Path(name)), 1):  # noqa: B007 - counted
        print(line)
    say(f"{name}: " + (f"{count} problems" if count else "all right"))
    raise typer.Exit(1 if count else 0)


@data.command()
def push(
    folder: Folder,
    repo: Annotated[str | None, typer.Option(help="owner/name; podeval/<dataset> by default")] = None,
    private: Annotated[bool, typer.Option("--private", help="make the repo private")] = False,
) -> None:
    """Push a built dataset to the Hub: the Parquet files and card in one commit, and the benchmark's tasks in a second.

    If the Hub does not accept the tasks, a message says so, but the exit code is 0 because the data was pushed.

    Example: podeval data push ./mtalk_bench --repo my-lab/mtalk_bench --private
    """
    from podeval.datasets.build import read_lock
    from podeval.datasets.push import push as push_dataset

    print(push_dataset(folder, repo or f"podeval/{read_lock(folder)['dataset']}", private=private, progress=say))


@data.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="name of the dataset, or `ratings`", autocompletion=complete_dataset),
    ],
    corpus: Annotated[
        str | None,
        typer.Argument(metavar="[CORPUS]", help="the corpus of ratings; by default, all corpora are listed"),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="only this topic, by id or number (repeatable)")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder to write to; ./NAME_episodes or ./CORPUS by default")
    ] = None,
    most_megabytes: Annotated[
        int | None,
        typer.Option(min=1, help="skip files larger than this, in MB; 1024 for an episode, 8192 for ratings"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the published episodes of a benchmark, and list those that are no longer available. The exit code is 1 if
    any episode is missing.

    Apple's lookup gives the address of the audio or of the show's feed. Requests are sent one at a time, with pauses.
    Audio files are written to DIR, and the findings to DIR/episodes.jsonl; a second call resumes. Episodes belong to
    their producers: use them for your own evaluation only, and do not redistribute them.

    With `ratings`, the command fetches a public corpus of human ratings for `podeval report agreement`, or lists the
    available corpora.

    Example: podeval data fetch real_pod --topic 4 --topic Arts_20 --into episodes

    Example: podeval data fetch ratings somos --into somos
    """
    if name == "ratings":
        _fetch_ratings(corpus, into, most_megabytes or 8192, as_json)
        return
    from podeval.datasets.fetch_episodes import fetch_episodes, make_web, render_table, select_episodes

    episodes = select_episodes(name, topic or ())
    to = into or Path(f"{name}_episodes")
    with show_progress(name):
        attempts = fetch_episodes(episodes, to, make_web(), most_bytes=(most_megabytes or 1024) << 20)
    if as_json:
        for one in attempts:
            emit(one)
    else:
        print("\n".join(render_table(attempts)))
    raise typer.Exit(0 if all(one.status == "found" for one in attempts) else 1)


def _fetch_ratings(corpus: str | None, into: Path | None, most_megabytes: int, as_json: bool) -> None:
    """Fetch a corpus of human ratings; without a name, list the layouts with the sources of their data."""
    from podeval.datasets.fetch_episodes import make_web
    from podeval.validation.rating_files import LAYOUTS, fetch_ratings

    if corpus is not None:
        with show_progress(corpus):
            print(fetch_ratings(corpus, into or Path(corpus), make_web(), most_megabytes << 20))
        return
    for layout in LAYOUTS.values():
        columns = [sorted(names) for names in layout.columns]
        if as_json:
            emit({"name": layout.name, "title": layout.title, "where": layout.where, "columns": columns})
        else:
            print(f"{layout.name:12} {layout.title}\n{'':12} {layout.where}")
            print(f"{'':12} columns: {'; or '.join(', '.join(names) for names in columns)}")


def _describe_ask(ask: "Ask") -> str:
    """Describe a task for a person: the names of the files, and the intended content of each."""
    voices = [f"  voice of {speaker}: {voice.audio}" for speaker, voice in ask.voices.items()]
    if ask.script is not None:
        return "\n".join([f"{ask.id}.wav", *voices, *(f"  {turn.speaker}: {turn.text}" for turn in ask.script), ""])
    if ask.prompt is not None:
        return "\n".join([f"{ask.id}.json", *(f"  {line}" for line in ask.prompt.splitlines()), ""])
    if ask.topic is not None:
        return f"{ask.id}.wav\n  a whole podcast ({ask.language}), with its own words, on: {ask.topic}\n"
    turns = (
        line
        for turn in ask.user or ()
        for line in (f"{ask.id}/{turn.id}.wav", f"  answers {turn.audio}" if turn.audio else "", f"  {turn.words}")
    )
    return "\n".join([*(line for line in turns if line.strip()), ""])


@data.command("likeness-reference")
def make_likeness_reference(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="recordings of people, preferably one per person")],
    out: Annotated[Path, typer.Option(help="file to write")] = Path("likeness_reference.npz"),
    about: Annotated[str, typer.Option(help="speakers and style of the recordings; stored with the reference")] = "",
) -> None:
    """Make a reference for the metric human_likeness from recordings of people.

    The reference contains statistics of the recordings, and of damage planted in some of them, but no audio.

    Example: podeval data likeness-reference people --out people.npz --about "talk shows, 30 people"

    Example: podeval measure human_likeness my_system --set reference=people.npz
    """
    from podeval.measuring.inputs import read_input
    from podeval.metrics.speech.human_likeness import make_reference

    with show_progress(folder.name):
        reference = make_reference(read_input("recordings", folder), about or folder.name)
    reference.save(out)
    for name, reason in reference.about["left_out"].items():
        say(f"{name} was left out: {reason}")
    say("{recordings} recordings, {minutes} minutes, {windows} windows".format_map(reference.about))
    print(out)
