"""Recordings for systems that cannot be run as a model: the scripts as a zip, and the upload of the recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio_addresses import LARGEST_ARCHIVE, get_uploaded_path
from pages.submit import get_submitter
from tab_parts import TabPart, answer_part
from website import find_recordings_sender

from podeval import benchmarks
from podeval.board.words import write_board_name
from podeval.errors import BadInput, PodevalError
from podeval.submissions.author_kit import list_spoken
from podeval.submissions.benchmark_entries import (
    RunEntry,
    find_outputs_folder,
    list_expected_names,
    list_runs_of_tracks,
)
from podeval.submissions.uploads import Upload, Uploads
from podeval.texts import write_sentence

EVENT: dict[str, Any] = {"api_visibility": "private", "preprocess": False, "show_progress": "minimal"}
RATE, SHOW_RATE = "20/hour", "60/minute"
MOST_NAMED = 12
"""Maximum number of missing or superfluous recordings that are named; any further ones are only counted."""


class RecordingsUpload(TabPart):
    """The part of the Submit tab's form that handles recordings."""

    TEXTS = "submit"

    @property
    def uploads(self) -> Uploads:
        """The uploads of all people."""
        return Uploads(self._site.services.runs)

    def list_kits(self) -> str:
        """List the addresses of scripts and notebooks for the default runs, for systems that cannot be run here."""
        entered = list_runs_of_tracks((name, "voice") for name in benchmarks.list_benchmarks())
        kits = [
            f"{write_board_name(entry.folder)}: [{self._texts['scripts_zip']}](/submit/scripts/{entry.folder}.zip), "
            f"[{self._texts['notebook']}](/submit/outputs/{entry.folder}.ipynb)"
            for entry, _ in list_spoken(self._desk.gate.data)
            if entry in entered
        ]
        return "\n".join([self._texts["kits"], "", *(f"- {kit}" for kit in kits)])

    def build(self) -> None:
        """Place the components."""
        gr.Markdown(self._texts["upload_about"].format(LARGEST_ARCHIVE // 2**20))
        self._file = gr.File(label=self._texts["upload"], file_types=[".zip"], elem_id="submit-zip", height=150)
        self._answer = answer_part("submit-recordings")

    def connect(self, tracks: gr.CheckboxGroup) -> None:
        """Connect the events to their functions.

        Args:
            tracks: the component in which the tracks are chosen.
        """
        quick = {**EVENT, "queue": False, "show_progress": "hidden"}
        self._file.upload(self.receive, [self._file, tracks], [self._answer, self._file], trigger_mode="once", **EVENT)
        tracks.change(self.show, tracks, self._answer, **quick)

    def token_of(self, owner: str) -> str:
        """Return the folder of a person's upload that has not been submitted yet; empty without an upload."""
        upload = self.uploads.waiting(owner, self._desk.queue)
        return upload.token if upload is not None else ""

    def receive(self, request: gr.Request, file: Any, tracks: Any) -> tuple[str, Any]:
        """Unpack an upload, and list its recordings; the file itself is deleted in any case."""
        path = None
        try:
            path = get_uploaded_path(file)
            person = self._site.require_person(request.request)
            self._limit(request, RATE, "recordings")
            if not find_recordings_sender(self._site, request.request):
                raise BadInput(write_sentence("takes-no-recordings"))
            upload = self.uploads.take(path, get_submitter(person).name, self._desk.queue)
            return self._describe(request, upload, tracks), None
        except PodevalError as error:
            return self._show(request, sentence=self._explain(error)), None
        finally:
            if path is not None:
                path.unlink(missing_ok=True)

    def show(self, request: gr.Request, tracks: Any) -> str:
        """Compare an earlier upload with the chosen tracks whenever these change."""
        try:
            self._limit(request, SHOW_RATE, "recordings shown")
            person = self._site.person(request.request)
            upload = self.uploads.waiting(get_submitter(person).name, self._desk.queue) if person else None
        except PodevalError as error:
            return self._show(request, sentence=self._explain(error))
        return self._describe(request, upload, tracks) if upload is not None else ""

    def _describe(self, request: gr.Request, upload: Upload, tracks: Any) -> str:
        chosen = [str(each).partition(".")[::2] for each in tracks] if isinstance(tracks, list) else []
        entries = list_runs_of_tracks(chosen) or tuple(entry for entry, _ in list_spoken(self._desk.gate.data))
        runs = [self._compare(entry, upload, alone=len(entries) == 1) for entry in entries]
        of_no_item = sorted(set(upload.recordings) - {name for run in runs for name in run["names"]})
        # If no tracks are chosen, runs without recordings are not listed.
        listing = [run for run in runs if run["names"]] or runs[:1] if not chosen else runs
        return self._show(request, upload=upload, runs=listing, of_no_item=of_no_item)

    def _compare(self, entry: RunEntry, upload: Upload, *, alone: bool) -> dict[str, Any]:
        """Describe the existing and the missing recordings of a run."""
        try:
            choices = list_expected_names(entry, entry.items(self._desk.gate.data))
        except BadInput:
            return {"title": entry.folder, "names": [], "count": None, "missing": [], "more": 0}
        folder = find_outputs_folder(entry, dict.fromkeys(upload.recordings, 1), alone)
        expected = [[f"{folder}{name}" for name in each] for each in choices.values()]
        names = [name for each in expected for name in each if name in upload.recordings]
        missing = [each[0] for each in expected if not set(each) & set(names)]
        listed = missing[:MOST_NAMED]
        counts = {"count": len(choices), "more": len(missing) - len(listed)}
        return {"title": entry.folder, "names": names, "missing": listed, **counts}

    def _show(self, request: gr.Request, of_no_item: Sequence[str] = (), **values: Any) -> str:
        few = of_no_item[:MOST_NAMED]
        content = {"of_no_item": few, "more_of_no_item": len(of_no_item) - len(few), "sentence": "", "upload": None}
        return self._render(request, "submit_recordings.html", **content | {"runs": []} | values)
