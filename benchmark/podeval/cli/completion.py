"""Shell completions: names of metrics and their keys, benchmarks, splits, tracks, profiles and other values."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.benchmarks import Benchmark

INSTALLING = {"--install-completion", "--show-completion"}
"""Options that install or print a script for a shell."""
_BASH = """
%(complete_func)s() {
  local line="${COMP_LINE:0:$COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" entry
  local word="${line##*[[:space:]]}"
  [[ "$current" == [=:] ]] && current=""
  local before="${word%%"$current"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r entry _; do
    [[ -n "$entry" ]] && COMPREPLY+=("${entry#"$before"}")
  done < <(env _TYPER_COMPLETE_ARGS="$line" _TYPER_COMPLETE_FISH_ACTION=get-args \\
           %(autocomplete_var)s=complete_fish %(prog_name)s)
}

complete -o default -F %(complete_func)s %(prog_name)s
"""
_ZSH = """
#compdef %(prog_name)s

%(complete_func)s() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" %(autocomplete_var)s=complete_zsh %(prog_name)s)
}

if [[ "${funcstack[1]}" = _%(prog_name)s ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
"""


def use_scripts_that_complete_everything() -> None:
    """Replace Typer's completion scripts for bash and zsh with scripts that cover two more cases.

    Bash ends a word at `=`, and Typer's script requests completions only for the part after it; this script requests
    them for the whole word, and removes the part before `=` from the answers. Zsh loads the script at the first press
    of the tab key. Typer's script then only defines its function, so the first tab in each shell does nothing; this
    script also completes at that first press.
    """
    from typer import _completion_shared

    _completion_shared._completion_scripts.update(bash=_BASH, zsh=_ZSH)


def complete_metric(incomplete: str) -> list[str]:
    """Return the metrics whose names begin with the typed text."""
    from podeval.metrics.catalogue import NAMES

    return _choose(NAMES, incomplete)


def complete_metrics(incomplete: str) -> list[str]:
    """Return the possible continuations of a comma-separated list of metrics."""
    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    return [f"{before}{comma}{name}" for name in complete_metric(last) if name not in chosen]


def complete_key(incomplete: str) -> list[str]:
    """Return the matching figures as metric.key; before the dot is typed, return the metrics that have figures."""
    from podeval.metrics.catalogue import NAMES, get

    name, dot, _ = incomplete.partition(".")
    if not dot:
        names = _choose(NAMES, incomplete)
        return [f"{name}." for name in names] if len(names) > 1 else [each for name in names for each in _keys(name)]
    return _choose(_keys(get(name).name), incomplete) if name in NAMES else []


def complete_metric_or_key(incomplete: str) -> list[str]:
    """Return the matching metrics, or their matching keys after a dot."""
    return complete_key(incomplete) if "." in incomplete else complete_metric(incomplete)


def complete_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return the parameters of the metric named earlier, with the possible values if these are limited."""
    from podeval.metrics.catalogue import NAMES, get

    # After an option without a value, the arguments are not assigned yet.
    name = str(context.params.get("name") or next(iter(context.args), ""))
    if name not in NAMES:
        return []
    settings = [
        f"{parameter.name}={choice}"
        for parameter in get(name).parameters
        for choice in (parameter.choices or (("true", "false") if parameter.kind is bool else ("",)))
    ]
    return _choose(settings, incomplete)


def complete_benchmark(incomplete: str) -> list[str]:
    """Return the benchmarks whose names begin with the typed text."""
    from podeval import benchmarks

    return _choose(benchmarks.list_benchmarks(), incomplete)


def complete_split(context: typer.Context, incomplete: str) -> list[str]:
    """Return the splits of the benchmark named earlier, or of the default benchmark."""
    return _choose((split.name for one in _named_benchmarks(context) for split in one.splits), incomplete)


def complete_track(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tracks of the benchmark named earlier, or of the default benchmark."""
    return _choose((track.name for one in _named_benchmarks(context) for track in one.tracks), incomplete)


def complete_profile(incomplete: str) -> list[str]:
    """Return the profiles with which podeval can measure."""
    from podeval.models.profiles import MEASURING

    return _choose(MEASURING, incomplete)


def complete_dataset(incomplete: str) -> list[str]:
    """Return the datasets whose names begin with the typed text."""
    from podeval.datasets.catalogue import NAMES

    return _choose(NAMES, incomplete)


def complete_form(incomplete: str) -> list[str]:
    """Return the export formats whose names begin with the typed text."""
    from podeval.board.exports.result_forms import FORMS

    return _choose(FORMS, incomplete)


def complete_system(incomplete: str) -> list[str]:
    """Return the systems that come with podeval."""
    from podeval.systems.registry import NAMES

    return _choose(NAMES, incomplete)


def _named_benchmarks(context: typer.Context) -> "list[Benchmark]":
    from podeval import benchmarks

    name = context.params.get("benchmark")
    try:
        return [benchmarks.get(str(name))] if name else [benchmarks.get(each) for each in benchmarks.list_benchmarks()]
    except BadInput:
        return []


def _keys(metric: str) -> list[str]:
    from podeval.metrics.catalogue import get

    return [f"{metric}.{key.name}" for key in get(metric).keys]


def _choose(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with the typed text, each once."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
