"""MTalk-Bench as a dataset: a user's turns in dialogues with a system that answers in speech.

Rows are created from the authors' Parquet file. The builder adds ids, the order of the turns, the scenario, the
capability (`taxonomy.json`), and a transcript without its tags.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets
from podeval.benchmarks.mtalk_bench import BENCHMARK
from podeval.datasets.builder import Builder, DatasetTable
from podeval.datasets.data_files import read_parquet
from podeval.datasets.dataset_record import (
    Config,
    DatasetRecord,
    ResponsibleUse,
    Row,
    RowRule,
    Source,
    require_at_least,
    require_one_of,
    require_present,
    require_readable_audio,
)
from podeval.datasets.mtalk_turns import (
    TYPES,
    SourceTurn,
    Taxonomy,
    group_by_dialogue,
    sort_turns,
    split_tags,
)
from podeval.errors import BadInput

TAXONOMY = Taxonomy(Path(__file__).parent / "taxonomy.json")
TURNS, DIALOGUES = "turns", "dialogues"
_FILES = {"data/test-*.parquet": ""}
_PROMPTS = {
    "arena_prompt": "arena_prompt",
    "rubric_general": "rubric_prompt_general",
    "rubric_specific": "rubric_prompt_specific",
}
_PLACES = ("type", "number", "turn", "source", "arena_prompt")
_COLUMNS = ("type", "number", "turn", "source", "audio", "transcription", *_PROMPTS.values())

_TEXT = datasets.Value("string")
_PLACED = {
    "type": datasets.ClassLabel(names=list(TYPES.values())),
    "scenario": datasets.ClassLabel(names=list(TAXONOMY.scenarios)),
    "capability": datasets.ClassLabel(names=list(TAXONOMY.capabilities)),
}
"""The columns that both tables have."""


class MTalkBench(Builder):
    """The builder of MTalk-Bench."""

    RECORD = DatasetRecord(
        name="mtalk_bench",
        title=BENCHMARK.title,
        summary="270 spoken dialogues of up to three turns in nine scenarios, to be answered in speech turn by turn.",
        version="1.0.0",
        paper=BENCHMARK.paper,
        citation=BENCHMARK.citation,
        licence="other",
        licence_details=(
            "The authors publish the recordings, transcripts and prompts for research only, so podeval does not "
            "redistribute the rows: you build this dataset on your machine from the authors' files. The builder, the "
            "columns that it adds and the sample are CC BY 4.0."
        ),
        languages=BENCHMARK.languages,
        tasks=("audio-to-audio",),
        tags=("modality:audio", "speech-to-speech", "dialogue"),
        size="n<1K",
        configs=(
            Config(name=TURNS, description="One turn of the user per row, with the prompts.", splits=("test",)),
            Config(
                name=DIALOGUES, description="One dialogue per row: the ids of its turns, in order.", splits=("test",)
            ),
        ),
        sources=(
            Source(
                name="mtalk",
                kind="hub",
                location="FreedomIntelligence/MTalk-Bench",
                files=_FILES,
                licence="research only",
                redistributable=False,
                about="the authors' recordings, 568 rows",
            ),
            Source(
                name="sample",
                kind="package",
                location="sample",
                revision="1",
                files=_FILES,
                licence="CC BY 4.0",
                redistributable=True,
                about="three dialogues written by podeval and spoken by espeak-ng",
            ),
        ),
        provenance=(
            "The authors wrote the dialogues with language models, had annotators refine them and native speakers read "
            "them, converted some to other voices, and mixed them with ambient sound (paper, section 4). The scenario "
            "is the first number of a dialogue, in the paper's order. A dialogue's capability is taken from the arena "
            f"prompt of its first turn, according to taxonomy.json {TAXONOMY.version}, which lists the 42 prompts in "
            "the authors' repository and reproduces the counts of the paper's Table 7, except for an error in it "
            "(below). Tags in parentheses are separated from the words of paralinguistic and ambient turns. No full "
            "commit id of the source was available when this was written (the newest on its card begins with 5ea10b2), "
            "so each build names its commit."
        ),
        responsible_use=ResponsibleUse(
            use_cases=(
                "Comparing systems that answer speech with speech over several turns; not training, and not judging "
                "speakers."
            ),
            out_of_scope=("Training; recognising or cloning the speakers; judging how people speak."),
            biases=(
                "Only English; scenarios and capabilities chosen by the authors; dialogues read by native speakers, "
                "some of them converted to other voices."
            ),
            personal_information=(
                "The voices are those of people who read dialogues written for the dataset; the dialogues are not "
                "about these people."
            ),
            sensitive_content=(
                "Some dialogues are about illness, grief and conflict, and some test whether a system refuses unsafe "
                "requests."
            ),
            synthetic=True,
        ),
        known_errors=(
            "No votes are published, and only a sample of the models' answers: three dialogues without audio.",
            "The audio column declares 24 kHz, but clips in the authors' repository are sampled at 22,050 Hz. The "
            "bytes are kept unchanged, and resampled when they are decoded.",
            "Table 7 counts one paralinguistic dialogue as educational that is service-oriented according to the "
            "prompts: the table prints 6 and 5 for paralinguistic generation, whereas the prompts give 5 and 6.",
            "Of the 37 dialogues on paralinguistic generation, the paper counts 11 on emotional speech and 11 on "
            "expressive modelling; 1 prompt asks about the first and 21 about the second.",
            "The prompt of semantic dialogue 6-1 has a placeholder for its main dimension; its sub-dimension and "
            "Table 7 indicate pragmatics and culture. Four semantic prompts have a placeholder for the sub-dimension.",
            "The prompts of ambient dialogue 4-1 and semantic dialogue 2-9 combine a main dimension with a criterion "
            "of another; the main dimension is used, as in Table 7.",
        ),
    )

    TABLES: ClassVar[Mapping[str, DatasetTable]] = {
        TURNS: DatasetTable(
            datasets.Features(
                {
                    "id": _TEXT,
                    "dialogue": _TEXT,
                    **_PLACED,
                    "turn": datasets.Value("int32"),
                    "audio": datasets.Audio(sampling_rate=24_000),
                    "transcript": _TEXT,
                    "words": _TEXT,
                    "tags": datasets.List(_TEXT),
                    "arena_prompt": _TEXT,
                    "rubric_general": _TEXT,
                    "rubric_specific": _TEXT,
                }
            ),
            lambda: (
                require_present("audio"),
                *_list_place_rules(),
                require_at_least("turn", 1),
                _turns_in_order(),
                RowRule("texts", _not_a_text),
                require_readable_audio("audio"),
            ),
            lambda split, folder: _make_turns(split, folder),
        ),
        DIALOGUES: DatasetTable(
            datasets.Features(
                {"id": _TEXT, **_PLACED, "turns": datasets.Value("int32"), "turn_ids": datasets.List(_TEXT)}
            ),
            lambda: (*_list_place_rules(), require_at_least("turns", 1), RowRule("turn_ids.order", _gap)),
            lambda split, folder: (
                _make_dialogue(dialogue, turns) for dialogue, turns in group_by_dialogue(_read_turns(folder)).items()
            ),
        ),
    }

    @classmethod
    def notes(cls, source: str, folder: Path) -> Sequence[str]:
        """Return a note on how many dialogues have a prompt that is not in the taxonomy."""
        dialogues = group_by_dialogue(_read_turns(folder))
        unknown = [dialogue for dialogue, turns in dialogues.items() if turns[0].capability is None]
        if not unknown:
            return ()
        return (
            f"{len(unknown)} of {len(dialogues)} dialogues have an arena prompt that taxonomy.json "
            f"{TAXONOMY.version} does not contain, so their capability is null: {', '.join(unknown[:10])}"
            + (" and others." if unknown[10:] else "."),
        )


def _read_turns(folder: Path) -> list[SourceTurn]:
    raw = read_parquet(folder, "data/test-*.parquet", _COLUMNS, _PLACES).to_pylist()
    if others := sorted({str(row["source"]) for row in raw} - {"question"}):
        raise BadInput(f"the column source must say question, not {', '.join(others[:5])}: answers do not belong here")
    return sort_turns(raw, TAXONOMY)


def _make_turns(split: str, folder: Path) -> Iterator[Row]:
    """Yield the rows ordered by type, scenario, dialogue and turn, regardless of the order in the source."""
    table = read_parquet(folder, f"data/{split}-*.parquet", _COLUMNS)
    for turn in _read_turns(folder):
        (raw,) = table.slice(turn.row, 1).to_pylist()
        yield _make_turn(turn, raw)


def _make_turn(turn: SourceTurn, raw: Mapping[str, Any]) -> Row:
    transcript = raw["transcription"]
    words, tags = transcript, list[str]()
    if isinstance(transcript, str) and turn.type != "semantic":
        words, tags = split_tags(transcript)
    return {
        "id": turn.id,
        "dialogue": turn.dialogue,
        "type": turn.type,
        "scenario": turn.scenario,
        "capability": turn.capability,
        "turn": turn.turn,
        "audio": raw["audio"],
        "transcript": transcript,
        "words": words,
        "tags": tags,
        **{name: "" if raw[column] is None else raw[column] for name, column in _PROMPTS.items()},
    }


def _make_dialogue(dialogue: str, turns: Sequence[SourceTurn]) -> Row:
    return {
        "id": dialogue,
        "type": turns[0].type,
        "scenario": turns[0].scenario,
        "capability": turns[0].capability,
        "turns": len(turns),
        "turn_ids": [turn.id for turn in turns],
    }


def _list_place_rules() -> tuple[RowRule, ...]:
    return (
        require_one_of("type", list(TYPES.values())),
        require_one_of("scenario", TAXONOMY.scenarios),
        RowRule("capability.fits", _foreign_capability),
    )


def _foreign_capability(row: Row) -> str | None:
    capability = row["capability"]
    home = TAXONOMY.capabilities.get(capability)
    if capability is None or home == row["type"] or row["type"] not in TYPES.values():
        return None
    return f"its arena prompt asks about {capability}, which is {home}, not {row['type']}"


def _gap(row: Row) -> str | None:
    expected = [f"{row['id']}-{turn}" for turn in range(1, row["turns"] + 1)]
    return (
        None
        if list(row["turn_ids"]) == expected
        else f"its turns are {', '.join(row['turn_ids'])}, not {', '.join(expected)}"
    )


def _turns_in_order() -> RowRule:
    """Create the rule that a dialogue's turns are 1, 2, … without gaps; each pass over the rows needs a new rule."""
    before: tuple[Any, Any] = (None, 0)

    def broken_by(row: Row) -> str | None:
        nonlocal before
        dialogue, turn = row["dialogue"], row["turn"]
        last = before[1] if before[0] == dialogue else 0
        expected, again = last + 1, before == (dialogue, turn)
        before = (dialogue, turn if isinstance(turn, int) else last)
        # A repeated turn violates the rule on ids; a turn that is not a number violates the rule on turns.
        if again or not isinstance(turn, int) or turn == expected:
            return None
        return f"is turn {turn} of {dialogue}, but turn {expected} should come next"

    return RowRule("turn.order", broken_by)


def _not_a_text(row: Row) -> str | None:
    odd = [name for name in ("transcript", *_PROMPTS) if not isinstance(row[name], str)]
    return f"{', '.join(odd)} must be text" if odd else None
