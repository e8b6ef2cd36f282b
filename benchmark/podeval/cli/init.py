"""`podeval init`: the submission document of a run that is finished."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def init(
    name: Annotated[
        str, typer.Argument(help="name of the system: lower-case letters, digits and underscores; it never changes")
    ],
    run: Annotated[Path, typer.Option("--from", help="folder of the run, such as runs/real_pod/topics/my_tts")],
    title: Annotated[str, typer.Option(help="title shown on the leaderboard; the run's by default")] = "",
    folder: Annotated[Path | None, typer.Option(help="folder to write to; ./NAME by default")] = None,
) -> None:
    """Write the submission document of a finished run and place its outputs beside it, ready for `podeval submit`.

    Example: podeval init my_tts --from runs/real_pod/topics/my_tts
    """
    from podeval.runs.submission_draft import draft_submission

    draft = draft_submission(run, folder or Path(name), name, title)
    print(draft.document)
    target = draft.document.parent
    print(
        f"{draft.outputs} outputs are beside it; describe the system, then run: podeval submit {target} --check",
        file=sys.stderr,
    )
    for note in draft.notes:
        print(f"Not ready to be submitted: {note}.", file=sys.stderr)
