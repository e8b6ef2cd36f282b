"""The dataset card, generated from the record: YAML for the Hub and `datasets`, and text for people."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from datasets import Audio, DatasetInfo
from podeval.benchmarks.presets import PRESETS
from podeval.datasets.builder import Builder
from podeval.datasets.dataset_record import SAMPLE, Config, DatasetRecord, Source
from podeval.datasets.source_files import find_package_folder

LONGEST_TEXT, LONGEST_LIST = 160, 2
"""Maximum number of characters of a text, and of entries of a list, in a sample row."""

SAMPLE_NOTICE = (
    "> **This is a sample written by podeval** in the schema of the dataset, for trying things out. It is not the "
    "benchmark: figures computed on it say nothing about a system."
)


def render_card(kind: type[Builder], lock: Mapping[str, Any]) -> str:
    """Render the card of a build or, if `lock` has no configs, of the repo before the first build."""
    yaml_text = yaml.safe_dump(render_front_matter(kind, lock), sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{yaml_text}---\n\n{render_body(kind, lock)}"


def render_front_matter(kind: type[Builder], lock: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata at the top of the card, between lines of dashes."""
    record = kind.RECORD
    metadata: dict[str, Any] = {
        "pretty_name": record.full_title,
        "license": record.licence,
        "language": list(record.languages),
        "task_categories": list(record.tasks),
        "size_categories": [record.size],
        "tags": ["podeval", "benchmark", *record.tags],
        **_describe_responsible_use(record),
        "configs": [
            {
                "config_name": config.name,
                "data_files": [{"split": split, "path": f"{config.name}/{split}-*.parquet"} for split in config.splits],
                **({"default": True} if number == 0 else {}),
            }
            for number, config in enumerate(record.configs)
            if not lock.get("configs") or config.name in lock["configs"]
        ],
        "dataset_info": [
            _describe_config(kind, name, lock) for name in lock.get("configs") or [one.name for one in record.configs]
        ],
    }
    if record.gated:
        metadata |= {"extra_gated_prompt": record.gate_prompt, "extra_gated_fields": {"I agree": "checkbox"}}
    return metadata


def _describe_responsible_use(record: DatasetRecord) -> dict[str, Any]:
    """Describe responsible use in Croissant's vocabulary; every fact comes from the record."""
    use = record.responsible_use
    facts = {
        "rai:dataCollection": record.provenance,
        "rai:dataLimitations": " ".join(record.known_errors),
        "rai:dataBiases": use.biases,
        "rai:dataUseCases": use.use_cases,
        "rai:personalSensitiveInformation": use.personal_information,
        "rai:hasSyntheticData": use.synthetic,
    }
    return {name: fact for name, fact in facts.items() if fact != ""}


def _describe_config(kind: type[Builder], config: str, lock: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the features and sizes of one config in the form that `datasets` writes."""
    info = DatasetInfo(features=kind.TABLES[config].features, config_name=config)
    splits = (lock.get("configs") or {}).get(config, {})
    return {
        "config_name": config,
        "features": info._to_yaml_dict()["features"],
        **(
            {
                "splits": [
                    {"name": name, "num_bytes": facts["bytes"], "num_examples": facts["rows"]}
                    for name, facts in splits.items()
                ]
            }
            if splits
            else {}
        ),
    }


def render_body(kind: type[Builder], lock: Mapping[str, Any]) -> str:
    """Render the text of the card, without its metadata."""
    record, use = kind.RECORD, kind.RECORD.responsible_use
    samples = [(config.name, _show_sample_row(kind, config.name)) for config in record.configs]
    parts = [
        f"# {record.full_title}",
        SAMPLE_NOTICE if lock.get("sample") else "",
        record.summary,
        _describe_use(kind),
        "## Configs\n\n" + "\n".join(f"- `{c.name}` ({_describe_splits(c)}): {c.description}" for c in record.configs),
        "## Columns\n\n" + "\n\n".join(_describe_columns(kind, config.name) for config in record.configs),
        "## Sample rows\n\nThe first row of each table that ships with podeval, long texts and lists shortened.\n\n"
        + "\n\n".join(f"`{name}`\n\n```json\n{row}\n```" for name, row in samples if row),
        f"## Provenance\n\n{record.provenance}\n\n{_describe_sources(record)}",
        _describe_build(record, lock),
        *lock.get("notes", []),
        f"## Intended use\n\n- For: {use.use_cases}\n- Not for: {use.out_of_scope}\n\n"
        f"## Limitations and bias\n\n{use.biases}\n\n"
        f"## Personal and sensitive content\n\n- Personal information: {use.personal_information}\n"
        f"- Sensitive content: {use.sensitive_content}\n"
        f"- Machine-generated: {'partly or entirely' if use.synthetic else 'no'}",
        "## Known errors of the source\n\n" + "\n".join(f"- {error}" for error in record.known_errors)
        if record.known_errors
        else "",
        f"## Licence\n\n{record.licence_details}",
        f"## Curation\n\n{record.curator}",
        f"## Citation\n\nPaper: {record.paper}\n\n```bibtex\n{record.citation}\n```",
    ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _describe_build(record: DatasetRecord, lock: Mapping[str, Any]) -> str:
    """Describe the sources of a build; empty before the first build."""
    source = lock.get("source")
    if not source:
        return ""
    built = f"Built by podeval {lock['podeval']} from `{source['name']}` at `{source['revision']}`"
    if source["pinned"]:
        return f"{built}."
    if record.sources[0].revision:
        return f"{built}, which is not the revision that podeval pins."
    return f"{built}; podeval pins no revision of this source."


def _describe_use(kind: type[Builder]) -> str:
    record = kind.RECORD
    config = record.configs[0]
    passed_on = record.sources[0].redistributable
    location = f"podeval/{record.name}" if passed_on else f"./{record.name}"
    call = f'load_dataset("{location}", "{config.name}", split="{config.splits[0]}")'
    build = f"`podeval data build {record.name}`"
    origin = (
        f"{build} builds it from its source."
        if passed_on
        else f"Its rows are not redistributed: {build} creates ./{record.name}."
    )
    more = _describe_audio(kind, location)
    more += "".join(f"\n\n{one.reproduction}" for one in PRESETS.values() if one.benchmark == record.name)
    return f"```python\nfrom datasets import load_dataset\n\nrows = {call}\n```\n\n{origin}{more}"


def _describe_audio(kind: type[Builder], location: str) -> str:
    """Explain how to read rows with audio without torchcodec; "" if no config has audio."""
    record = kind.RECORD
    columns = {
        config: [name for name, feature in kind.TABLES[config.name].features.items() if isinstance(feature, Audio)]
        for config in record.configs
    }
    config = next((config for config, names in columns.items() if names), None)
    if config is None:
        return ""
    cast = "".join(f'.cast_column("{name}", Audio(decode=False))' for name in columns[config])
    names = ", ".join(f"`{one.name}`" for one, of_one in columns.items() if of_one)
    return (
        f"\n\nRows with audio ({names}): `datasets` decodes audio with torchcodec; without it, reading a row fails. "
        "If you cast the column, each row contains the bytes of a file, which soundfile and podeval can read:\n\n"
        "```python\nimport io\n\nimport soundfile\nfrom datasets import Audio, load_dataset\n\n"
        f'rows = load_dataset("{location}", "{config.name}", split="{config.splits[0]}"){cast}\n'
        f'samples, rate = soundfile.read(io.BytesIO(rows[0]["{columns[config][0]}"]["bytes"]))\n```'
    )


def _describe_splits(config: Config) -> str:
    rows = [f"{config.rows} rows"] if config.rows is not None else []
    return ", ".join([*config.splits, *rows])


def _describe_columns(kind: type[Builder], config: str) -> str:
    lines = [f"`{config}`", "", "| column | type |", "| --- | --- |"]
    lines += [f"| `{name}` | {_describe_type(feature)} |" for name, feature in kind.TABLES[config].features.items()]
    return "\n".join(lines)


def _describe_type(feature: Any) -> str:
    name = type(feature).__name__
    match name:
        case "Value":
            return str(feature.dtype)
        case "ClassLabel":
            return f"one of {len(feature.names)} labels"
        case "Audio":
            return f"audio, {feature.sampling_rate} Hz" if feature.sampling_rate else "audio"
        case "List" | "LargeList":
            return f"list of {_describe_type(feature.feature)}"
        case "dict":
            return "{" + ", ".join(f"{key}: {_describe_type(inner)}" for key, inner in feature.items()) + "}"
    return name


def _describe_sources(record: DatasetRecord) -> str:
    lines = ["| source | where | revision | licence |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {s.name}: {s.about} | `{s.location}` | `{s.revision[:12] or '–'}` | {s.licence} |" for s in record.sources
    ]
    return "\n".join(lines)


def _show_sample_row(kind: type[Builder], config: str) -> str:
    """Return the first row of a table as JSON, with long texts and lists shortened; "" if no rows ship with podeval."""
    source = _find_source(kind.RECORD, config)
    if source is None:
        return ""
    from podeval.datasets import catalogue

    at_builder = catalogue.locate_folder(kind.RECORD.name) / source.location
    folder = find_package_folder(source.location) if ":" in source.location else at_builder
    split = kind.RECORD.config(config).splits[0]
    row = next(iter(kind.TABLES[config].rows(split, folder)), None)
    return json.dumps(_cut(row), ensure_ascii=False, indent=1) if row else ""


def _find_source(record: DatasetRecord, config: str) -> Source | None:
    """Return the sample, or another source that is part of the package."""
    shipped = [s for s in record.sources if s.kind == "package" and config in record.configs_of(s.name)]
    return next((source for source in shipped if source.name == SAMPLE), shipped[0] if shipped else None)


def _cut(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…"
    if isinstance(value, Mapping):
        return {name: _cut(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        more = len(value) - LONGEST_LIST
        return [*(_cut(inner) for inner in value[:LONGEST_LIST]), *([f"… and {more} more"] if more > 0 else [])]
    return value
