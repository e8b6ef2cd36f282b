"""All English sentences of the engine that pages show to people, by code, with placeholders.

A page in another language identifies a sentence by its code, or by its words if only those were stored, and finds the
translation in its catalogue (`space/locale`).
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from podeval.errors import CodedSentence

SENTENCES: Mapping[str, str] = {
    "kind-not-run": "sources of kind {kind} are not run: their figures are shown as printed; "
    "put the folder under submissions/",
    "paper-figures-not-run": "figures from papers are not run: "
    "put the folder under submissions/ and open a pull request",
    "no-adapter-repo": "{repo} is not an adapter; leave source.base out",
    "no-config": "{repo} has no config.json; save it with save_pretrained",
    "beside-weights-too-large": "the configs, tokenizers and voices next to the weights take {size} GB, "
    "more than {most} GB; remove some",
    "base-not-named": "adapter_config.json names no repo as base_model_name_or_path; write it as owner/name",
    "base-differs": "adapter_config.json names {stated} as its base, but source.base names {named}; make them the same",
    "base-unusable": "the base {repo} cannot be used: {problem}",
    "base-is-adapter": "it is an adapter itself; merge it first",
    "base-does-not-pass": "{repo}, which it adapts, does not pass ({rule}: {problem})",
    "still-the-template": "unchanged from the template: {fields}; write what is true of your system",
    "outputs-from-folder": "outputs come from a dataset repo or an upload here, not from a folder; "
    "name repo and revision",
    "repo-not-there": "{problem}; check source.repo and source.revision",
    "repo-not-readable": "{problem}; make the repo accessible, or grant podeval access and submit again",
    "no-such-repo": "the {kind} repo {repo} does not exist or is private",
    "no-such-commit": "{repo} has no commit {revision}",
    "is-gated": "{repo} is gated",
    "repo-private": "{repo} is private; make it public",
    "repo-gated": "{repo} is gated; anyone must be able to check a result, so remove the gate",
    "commit-off-main": "{revision} is not in the history of main (it may come from someone else's pull request); "
    "name a commit of the main branch of {repo}",
    "too-many-files": "{repo} contains {count} files, more than {most}; remove some",
    "too-many-configs": "{repo} contains {count} configs, more than {most}; remove some",
    "repo-holds-code": "{repo} contains {files}; remove all code, or publish the model without code in a "
    "different repo",
    "consent-not-stated": "{repo} contains {files}, which look like reference voices; state under source.consent "
    "whether voices other than the benchmark's are cloned (clones: true or false), and whose they are",
    "consent-incomplete": "reference voices other than the benchmark's are cloned; list their owners under "
    "source.consent.whose, and state under source.consent.permission what they permitted and where it can be read",
    "card-too-short": "{repo} has no usable card (README.md with at least {least} characters); "
    "say what it is, what it was trained on and how it is used",
    "card-without-licence": "the card of {repo} states no licence; add `license: …` to its header",
    "licences-differ": "the card of {repo} states {stated}, but system.licence states {licence}; make them the same",
    "unsafe-weights": "{repo} contains {files}, which can run code when read; "
    "save with save_pretrained(safe_serialization=True) and remove the rest",
    "no-weights": "{repo} has no .safetensors file; save it with save_pretrained",
    "too-many-shards": "{repo} contains {count} files of weights, more than {most}; save the weights in larger shards",
    "weights-header-unreadable": "the header of {file} cannot be read; upload the file again, in several shards if its "
    "header is larger than {most} MiB",
    "weights-of-other-size": "{file} is {size} bytes, but its header states {claimed}; upload the whole file",
    "config-asks-for-code": "{file} of {repo} has {fields}, which asks to run the repo's own code; "
    "remove it, because only classes of transformers are run",
    "weights-too-large": "the weights take {size} GB, and this board runs up to {most} GB; "
    "submit a smaller model, or the outputs (kind: outputs)",
    "too-many-parameters": "the model has {count} billion parameters, and this board runs up to {most} billion; "
    "submit a smaller model, or the outputs (kind: outputs)",
    "no-adapter-for-task": "{problem}; submit the outputs (kind: outputs)",
    "no-adapter-for": "there is no adapter for {task}; there are adapters for {tasks}",
    "task-does-not-fit": "a {task} model cannot do the track {tracks} of {benchmark}, but {fitting} can; "
    "change source.task or the tracks",
    "tracks-share-a-split": "the tracks {tracks} share the run {folder}; enter one of them here, and the other as a "
    "separate system",
    "class-does-not-run": "{repo} is a model {kind}; models for {task} that run here are {classes}",
    "folder-missing": "there is no folder {folder} next to the document; check source.folder",
    "file-is-link": "{file} is a link or not a regular file; put the file itself there",
    "name-not-plain": "{file} is not a plain path (letters, digits, dot, dash, underscore; no ..); rename it",
    "names-not-plain": "{file} is not a plain path (letters, digits, dot, dash, underscore; no ..); "
    "rename it, and {more} more",
    "outputs-too-large": "the files take {size} GB in total, and the limit is {most} GB; "
    "send FLAC, and only the outputs",
    "output-too-large": "{file} is {size} GB, and the limit for one file is {most} GB; send it as FLAC",
    "items-not-known": "the items of {run} are not known here ({problem})",
    "manifest-too-large": "{file} is larger than {most} MiB; shorten it",
    "outputs-missing": "{count} of {total} outputs of {run} are missing, such as {file}; "
    "name each file after its item, as docs/submitting.md explains",
    "output-twice": "{file} exists in more than one format; keep only one of the files",
    "output-empty": "{file} is empty; upload it again",
    "manifest-unreadable": "{problem}; fix the line",
    "manifest-incomplete": "{file} has no entry for {count} of {total} outputs, such as {item}",
    "manifest-leads-out": "{manifest} names {file} for {item}, which is outside the folder; name a file in it",
    "manifest-names-missing": "{manifest} names {file} for {item}, which is missing or empty; upload it",
    "too-many-entries": "the folder contains more than {most} files; send outputs only",
    "builtin-for-operators": "systems that come with podeval are entered by the operators of this board; "
    "submit a model or outputs",
    "id-on-board": "{system} is already on the board, measured by its operators; choose another system.id",
    "same-folder-submitted": "the same content is already {state} as {id}; change what is in the folder",
    "same-submitted": "the same content is already {state} as {id}; submit another revision",
    "same-taken-down": "the operators of this board took the same content down: {why}; submit a revision that fixes it",
    "id-of-another": "the system id {system} belongs to {owner}; choose another system.id",
    "system-under-way": "{id} of the same system is {state}; cancel it, or wait until it ends",
    "too-many-under-way": "{owner} has {count} submissions in progress; wait until one ends, or cancel one",
    "too-many-today": "{owner} submitted {count} times in 24 hours; try again tomorrow",
    "queue-full": "{count} submissions are waiting; try again when there are fewer",
    "content-taken-down": "its content for the item {item} was taken down from this board: {why}; "
    "leave it out, or contact the operators if it is yours",
    "upload-gone": "the uploaded recordings were deleted a week after the submission ended; "
    "upload them and submit again",
    "folder-changed": "the folder {folder} was changed after it was submitted; "
    "submit it again, because only the submitted version is measured",
    "not-taken": "this submission is not accepted:\n  {problems}",
    "nothing-to-cancel": "{id} is {state}, so there is nothing to cancel",
    "not-tried-again": "{id} is {state}; only failed and cancelled submissions can be tried again",
    "never-checked": "{id} was cancelled before it was checked; submit it again",
    "no-such-change": "a submission that is {before} cannot become {after}",
    "changed-meanwhile": "{id} is now {state}, no longer {before}; look at it again",
    "submission-unknown": "there is no submission {id}; `podeval submissions list` shows all",
    "cancelled-by-because": "cancelled by {who}: {why}",
    "cancelled-by": "cancelled by {who}",
    "withdrawn-by-because": "withdrawn by {who}: {why}",
    "withdrawn-by": "withdrawn by {who}",
    "no-repo-name": "{repo} is not a repo on the Hub; write owner/name",
    "unpacking-others": "other recordings are being unpacked at the moment; upload yours again in a minute",
    "uploads-too-large": "your uploads take more than {most} GiB of this board's disk; an upload is removed a week "
    "after its submission ends, so wait, or submit the next one from a dataset repo",
    "no-room-for-uploads": "this board's disk has too little space for more uploads at present; "
    "try again later, or use a dataset repo",
    "cannot-store": "this board cannot store the upload at present; try again later",
    "zip-not-unpacked": "the zip cannot be unpacked here; create it again",
    "zip-not-unpacked-because": "the zip cannot be unpacked here ({problem}); create it again, or a smaller one",
    "zip-names-not-utf8": "the names in the zip are not UTF-8; name each recording after its item",
    "zip-unreadable": "the zip cannot be read ({problem}); create it again",
    "zip-too-large": "the zip is {size}, and the limit is {most}; send FLAC or Opus",
    "zip-is-none": "this is not a zip, or part of it is missing; zip the recordings again",
    "zip-too-many-files": "the zip lists {count} files, and the limit is {most}; leave out everything but recordings",
    "zip-leads-out": "{file} points outside the zip or is not a plain path; zip the folder of recordings itself",
    "zip-encrypted": "{file} is encrypted; zip the recordings without a password",
    "zip-without-recording": "the zip contains no recordings ({endings}); "
    "add them, each named after its item as in the zip of scripts",
    "zip-unpacks-too-large": "the recordings unpack to {size}, and the limit is {most}; send FLAC",
    "zip-name-of-no-item": "{file} is not the name of an item (letters, digits, dot, dash, underscore); "
    "name each recording after its item, as in the zip of scripts",
    "zip-name-twice": "{file} is in the zip twice; keep only one copy",
    "zip-file-and-folder": "{file} is both a file and a folder in the zip; create it again",
    "upload-first": "upload the file first, and use the name from the answer to the upload",
    "recording-too-long": "the recording is longer than {most} s; choose a part of it",
    "recording-not-decoded": "{file} cannot be decoded here; export it again",
    "measuring-over-limit": "measuring was stopped, because {why}, the limit of this board for one recording: "
    "choose fewer metrics or a shorter part, or measure on your own machine",
    "measuring-no-room": "measuring was stopped, because {why}: this is not your recording's fault; try again later",
    "measuring-failed": "measuring failed because of a fault of this board, not of your recording; "
    "try again, and tell its operator",
    "nothing-measured": "nothing has been measured here yet",
    "no-such-choice": "there is no {what} {value} here; the board's page lists what exists",
    "no-such-recording": "there is no such recording",
    "no-such-listener": "nobody with that name took this test",
    "no-such-example": "there is no such example",
    "no-such-scripts": "there are no scripts of this name here; the form links to the existing ones",
    "name-is-ours": "nobody can submit under the name {name} here",
    "cancelled-by-operator": "an operator of this board cancelled the submission; ask the operators",
    "no-such-state": "there is no such state; choose from {choices}",
    "submission-of-another": "this submission belongs to someone else",
    "form-not-unicode": "the form contains text that is not Unicode, or is nested too deeply; correct it",
    "metric-not-measured": "{metric} cannot be measured here from this input; choose from {choices}",
    "no-such-metric-here": "there is no metric {metric} here; choose from {choices}",
    "metrics-named-often": "{count} metrics are named, but there are only {most} here: name each once",
    "no-such-value": "there is no {what} {value} here; choose from {choices}",
    "hub-not-signed-in": "you are not signed in to the Hub; run `hf auth login`",
    "sign-in-to-check": "only model repos can be checked without signing in; sign in first, in a browser at /sign-in",
    "takes-no-recordings": "no recordings are accepted here at present",
    "no-such-protocol": "{value} is not a protocol; choose from {choices}",
    "not-a-token": "this is not a token of this arena; take a new battle",
    "battle-unknown": "this battle is no longer known; take a new one",
    "battle-of-another": "this battle was made for another voter; take one of your own",
    "battle-judged": "this battle has already been judged; each battle is judged only once",
    "battle-lapsed": "this battle has expired because it was open for too long; take a new one",
    "vote-id-form": "a vote's id must be 8 to 64 letters, digits, - or _, chosen at random by the sender",
    "no-such-outcome": "{value} is not an outcome; choose from {choices}",
    "no-such-preference": "{value} is not a preference; with A or B, choose from {choices}",
    "comment-unreadable": "this comment cannot be read; write up to 2,000 characters",
    "vote-id-taken": "this vote's id belongs to another battle; choose a new one at random",
    "heard-too-soon": "both sides cannot have been heard in {seconds} s; it takes at least {needed} s",
    "too-many-stretches": "side {side} reports {count} played stretches, more than a person can play",
    "cannot-have-played": "side {side} cannot have been playing for {seconds} seconds",
    "comment-needed": "please say why in a few words; a judgement needs a reason here",
    "listen-to-more": "please listen to more of side {side}: {seconds} s of it were played, "
    "and {needed} s are required",
    "never-fetched": "less of side {side} was downloaded than the {heard} % reported as heard; please play it again",
    "stretch-impossible": "side {side} of {length} s cannot have been played from {stretch}",
    "nothing-to-compare": "there is nothing to compare here yet; come back later",
    "all-judged": "you have judged every comparison available at present; thank you, come back later",
    "voter-forgotten": "this voter asked to be forgotten; come back as a new voter",
    "too-much-listening": "you have reached the hourly limit; please take a break and come back later",
    "battle-recording-taken-down": "a recording of this battle was taken down; take a new one",
    "not-a-name-of-audio": "this is not the name of an audio file in this arena",
    "battle-over": "this battle is over, and its audio can no longer be played",
    "recording-not-played": "this recording cannot be played at present; skip this pair",
    "stimulus-is-text": "{side} of page {page} is a text",
    "no-such-session": "there is no such listening session; begin again from the link you were given",
    "no-such-page": "there is no page {page}; this session has {count}",
    "share-heard-form": "page {page}: the share of {side} heard must be a number from 0 to 1",
    "listen-to-share-first": "page {page}: please listen to at least {share} of {side} first",
    "page-has-no-recording": "page {page} has no recording {side}; it has {choices}",
    "answer-form": "the answer to page {page} must be one object with an entry for each question",
    "reason-form": "a reason must be text, not {kind}",
    "page-needs-reason": "page {page} needs a reason for your judgement, in a few words",
    "page-asks-for": "page {page} still asks for {names}",
    "page-does-not-ask-for": "page {page} does not ask for {names}",
    "value-out-of-range": "page {page}: {name} must be {kind} from {low} to {high}, not {value}",
    "reason-for-mark": "page {page}: please say in a few words why you marked {name} {value}",
    "abx-decision": "page {page} asks for a decision: X is A (-1) or X is B (1)",
    "no-tie-here": "page {page} asks for a decision; no difference cannot be chosen in this test",
    "headphone-check-asks": "the headphone check asks for {names}",
    "headphone-check-form": "the headphone check: {name} must be a whole number from 1 to {most}",
    "say-why": "give a reason; it is stored with the session",
    "session-finished": "this session is finished; its answers cannot be changed",
    "pages-not-answered": "pages {pages} of {count} are not answered yet",
    "listening-test-unknown": "there is no listening test {test}; `podeval listening list` shows them",
    "only-questionnaires": "{test} is a {kind} test; only a questionnaire has answers with reasons",
    "listener-unknown": "no listener called {listener} took the test {test}",
    "never-measured-together": "the two systems were not both measured there, so they cannot be compared",
    "not-with-itself": "choose two different systems",
    "no-such-system": "there is no such system on this board; choose two from the list",
    "benchmark-not-measured": "nothing was measured on {benchmark}; there are results on {choices}",
    "no-such-metric": "there is no metric {metric}; choose from {choices}",
    "system-unknown": "there is no system {system} on this board; search for it by a part of its name",
    "kind-without-files": "a source of kind {kind} has no files",
    "hub-did-not-hand-out": "the Hub did not return {repo} ({problem}); try again later",
    "not-done-after-jobs": "it is not finished after {count} jobs; it needs another machine",
    "kind-is-no-model": "a source of kind {kind} is not a model, so it is not run",
    "system-made-nothing": "the system produced nothing for any of {count} items; on the first: {problem}",
    "given-up": "given up after {count} attempts without a finished item; the last problem: {why}",
    "worker-silent": "the worker {worker} stopped responding",
    "worker-stopped": "the worker was stopped",
    "folder-in-use": "another process is still working in its folder",
    "ours-failed": "the board's machine could not do it, through no fault of the submission: {why}",
    "ours-waits": "waits for the board's machine, through no fault of its own: {why}",
    "model-cannot-run": "the model cannot be run: {why}",
    "outputs-unreadable": "the outputs cannot be read: {why}",
    "job-too-expensive": "a job for {id} could cost {cost} USD on {machine} for {minutes} minutes, and the budget "
    "for all jobs is {budget}; use a cheaper machine or fewer minutes, or raise the budget",
    "field-missing-about": "is missing; add {name} ({about})",
    "field-missing": "is missing; add {name}",
    "must-be-text": "must be text, not {value}; put it in quotes",
    "must-be-one-of": "must be one of {choices}, not {value}",
    "kind-missing": "is missing; write outputs, model, human, builtin or reported",
    "must-be-block": "must be a block of fields, not {value}",
    "too-few-entries": "needs at least {count} entry",
    "must-be-list": "must be a list, not {value}; write it as [one, two]",
    "more-mistakes": "there are {count} more mistakes",
    "no-such-track": "{benchmark} has no track {tracks}; choose among {names}",
    "repo-or-folder": "give either repo (with revision) or folder, but not both",
    "repo-with-revision": "give both repo and revision, so that the measured files cannot change later",
    "benchmark-twice": "the same benchmark is listed twice; put its tracks in one entry",
    "rule-slug": "2 to 64 lower-case letters, digits and underscores, starting with a letter, as in my_voice_2",
    "rule-repo": "a Hub repo as owner/name",
    "rule-revision": "a full commit hash of 40 characters, as the repo's history shows it; a branch can move",
    "rule-https": "a link that starts with https://",
    "rule-language": "a language code such as en or zh",
    "rule-licence": "an SPDX licence id such as Apache-2.0, or proprietary, or unknown",
    "rule-line": "one line of at most 200 characters, without control characters",
    "rule-paragraph": "at most 2000 characters, without control characters",
    "item-has-no": "item {item} has no {name}",
    "field-unknown": "is not a field here; {hint}",
    "did-you-mean": "did you mean {name}?",
    "there-are": "choose from {names}",
    "must-match": "is {value}, but must be {rule}",
    "must-be": "must be {choices}, not {value}",
    "value-is-not": "{problem}; it is {value}",
    "listeners-came": "listeners who finished: {finished}; who did not (their marks do not count): {unfinished}; "
    "left out by hand or by a headphone check: {excluded}",
    "marks-hurried": "{count} marks were given in less than 10 s and do not count",
    "listener-left-out": "left out: {rater}: {reasons}",
    "marks-agree": "Krippendorff's alpha {alpha} over {count} rated units",
    "headphones-passed": "headphone check: {passed} of {count} listeners passed; of those who did not, {fate}",
    "headphones-do-not-count": "their marks do not count",
    "headphones-count": "they count",
    "headphones-ended": "the test ended for them",
    "headphones-failed": "headphone check not passed: {listener}: {right} of {trials} right",
    "scale-of-test": "scale: {standard}: {labels}",
    "scale-as-in": "scale {name}: {labels} (1 to 5), as in {source}",
    "listeners-by": "listeners, {name}: {counts}",
    "listeners-screened": "{excluded} of {count} listeners were excluded by the screening: {rules}",
    "rule-low": "low anchor not last {count}",
    "rule-high": "high anchor not among the top {count}",
    "rule-alike": "equal marks for all but the low anchor {count}",
    "screened-agree": "SRCC of the stimuli's means by the excluded listeners with those by the rest: {value}",
    "screened-too-few": "there are too few listeners to test whether the excluded listeners disagree with the rest",
    "screened-disagree": "WARNING: the excluded listeners disagree about {first} and {second}: the mean difference is "
    "{theirs} according to them and {ours} according to the rest (p {p}); read the results without screening too",
    "raters-correlate": "PLCC of two raters: {mean} on average of {count} pairs, {low} to {high}",
    "rater-correlates": "PLCC of {rater} with {others}",
    "left-out-low": "the low anchor is worst on {share} of {pages} pages, not on more than {least}",
    "left-out-high": "the high anchor is among the top {top} on {share} of {pages} pages, not on more than {least}",
    "left-out-alike": "all but the low anchor have the same mark on {share} of {pages} pages",
    "left-out-fast": "half of the pages took less than {seconds} s",
    "left-out-speakers": "heard {mark} speakers in {clip}, where {speakers} speak",
    "left-out-music": "marked music {mark} in {clip}, where there is none",
    "left-out-no-reasons": "gave no reason for {bare} of {marks} marks",
    "left-out-one-reason": "gave the reason {reason} for {count} of {marks} marks",
    "left-out-one-mark": "gave one mark on all scales of {flat} of {samples} samples",
    "left-out-same-mark": "gave {mark} to all of {samples} samples",
    "missed-speakers": "heard {count} speakers instead of {speakers}",
    "missed-music": "marked music {mark}, but there is none",
    "judge-trial": "it is declared a trial model",
    "judge-unusable": "none of its answers can be used",
    "judge-few-pairs": "its agreement between orders is not shown: {pairs} pairs without ties, but {least} are needed",
    "judge-by-order": "the order may decide as much as the judge: agreement between orders {agreement}, "
    "whose lower bound is not above 0.5",
}
"""Every sentence by its code; `{name}` is a parameter."""

CAUSES: Mapping[str, Any] = {
    "by us": "by us",
    "by the system": "by the system",
    "both": "{} by the system, {} by us",
    "unknown": "no reason recorded",
    "one": "{} ({}: {})",
    "between": "; ",
}
"""The words that surround reasons, which a page may show in another language; `sentences` contains the reasons by
code.
"""

REASONS: Mapping[str, str] = {
    "recording-silent": "the recording is silent",
    "recording-digital-silence": "the recording is digital silence from beginning to end; check how it was exported",
    "no-speech-heard": "the recording contains no speech",
    "only-music": "the recording contains no speech, only {0} s of music",
    "no-speech-no-room": "no speech is heard, and reverberation is measured on speech",
    "too-little-speech": "{0} s of speech were found; at least {1} s are needed",
    "recording-too-short": "the recording lasts {0} s; at least {1} s are needed",
    "half-the-words": "less than half of the script's words were recognised, so it is unknown who speaks when",
    "nothing-left-recording": "the recording is silent once its channels are averaged, because they cancel each "
    "other out",
    "one-speaker": "needs at least two speakers, found one speaker",
    "no-speaker": "needs at least two speakers, found no speaker",
    "too-few-speakers": "needs at least two speakers, found {0}",
    "other-number-of-speakers": "there should be {0} speakers, but {1} are heard",
    "no-speaker-found": "no speaker is found in the recording; check that it contains speech",
    "no-words-are": "no words are heard in the recording",
    "no-words-are-heard": "no words were recognised in {0}; check that it contains speech",
    "no-speaker-found-0": "no speaker was found in {0}; check that it contains speech",
    "no-speaker-has": "no speaker has the two windows of {0} s of speech that a comparison needs",
    "no-window-0": "no window of {0} s of the recording has enough speech (at least 40 %)",
    "no-speech-0": "no speech is heard from {0}, for whom there is a reference voice",
    "no-music-heard": "no music is heard under speech",
    "no-music-heard-recording": "no music is heard in the recording, so there is nothing to compare with its speech",
    "no-music-after": "no music: after separation, the sound without speech is below {0} LUFS",
    "speech-music-are": "speech and music are never heard within the same 10 s ({0} s of speech, {1} s of music)",
    "no-speech-lasts": "no speech lasts {0} s without a pause of more than {1} s",
    "somebody-else-begins": "the speaker changes {0} times; below {1} changes the distance from "
    "people is mostly chance",
    "two-voices-are": "two voices are heard, but no turn change between them",
    "script-has-one": "the script has one speaker; attribution needs at least two",
    "no-stretch-speaker": "no stretch of speech by one speaker is long enough to recognise a voice",
    "text-has-0": "the text has {0} tokens; parts of {1} are compared, so at least two of them are needed",
    "text-neither-english": "the text is in neither English nor Chinese, and no sentence encoder here reads others",
    "text-has-no": "the text has no words besides stop words; information density needs at least one",
    "text-has-no-tokens": "the text has no tokens; MATTR needs at least one",
    "text-holds-no": "the text contains no words, only punctuation; give the words of the script",
    "syllables-are-counted": "syllables are counted only in English and Chinese, but {0} is heard",
    "silent-no-0": "Silent: no 0.4 s block in {0} s of audio is louder than -70 LUFS.",
    "loudness-needs-at": "Loudness needs at least 0.4 s of audio; there are only {0} s.",
    "recording-has-0": "the recording's sampling rate is {0} Hz, below the {1} Hz required; {2}",
    "no-judge-named": "no judge is named: {0}",
    "neither-script-nor": "neither a script nor a number of speakers says whose voice should stay the same: {0}",
    "no-audio-was": "no audio was generated",
    "system-produced-no": "the system produced no audio: {0}",
    "model-not-installed-run": "the model {0} is not installed; run `{1}`",
    "model-0-not": "the model {0} is not installed; {1}",
    "0-was-no": "{0} was not in any battle",
    "no-answer-0": "no answer in {0} calls; the last: {1}",
    "not-ranked-wer": "not ranked: its WER is not known",
    "not-ranked-split": "not ranked: the {0} items of its split are too few for ranks",
    "not-ranked-guard-unknown": "not ranked: it is unknown which of its items pass {0}",
    "not-ranked-guard": "not ranked: {0} of its items pass {1}, but {2} are needed",
    "not-ranked-low-rate": "its sampling rate is lower than the models need, so the higher frequencies are missing",
    "not-ranked-0": "not ranked: its {0} of {1} is above the ceiling of {2}",
    "not-ranked-cancelled": "channels cancel each other in more than 5 % of the recording, and what is cancelled is "
    "not scored",
    "not-ranked-repeated": "most of what is said is said more than once, which evens out any pace",
    "not-ranked-joined": "podeval joined its turns, so the pauses between them are not the system's",
    "not-ranked-loudness": "the loudness range of less than a minute is not that of a programme",
    "not-ranked-music": "there is music, and a louder bed evens out the reverberation that is measured",
    "not-ranked-short": "the text is shorter than a window, of 100 tokens by default",
    "not-ranked-senseless": "hardly any of its words are function words, unlike in any text that a person would say",
    "not-ranked-played": "the recording plays its reference voice back",
    "not-ranked-alone": "not ranked: there is no other system to compare it with",
    "not-ranked-battles": "not ranked: {0} more battles, {1} more opponents and {2} more dialogues are needed",
    "not-ranked-trial": "not ranked: its judge is declared a trial model",
    "not-ranked-lonely": "not ranked: it shares {0} of {1} independent items with another system, but {2} are "
    "needed; the others are missing from {3} results",
    "key-without-value": "{0} has no value",
    "log-lacks-times": "the generation log does not state for every piece what {0} needs",
    "unheard-answers": "a judge that reads plain words cannot tell how an answer sounds, which {0} dialogues are "
    "about; choose a judge that hears and modality=audio, or give every answer answer_tags, the sounds and tones that "
    "a listener noted",
    "note-voices": "{0} voices are heard and there should be {1}, so the most similar are merged",
    "note-language": "the language of the text is {0}",
    "note-languages": "the text is in several languages: {0}",
    "note-brackets": "{0} of the reference is in brackets and was not compared",
    "note-upsampled": "the recording was resampled, because its {0} Hz are less than the models need",
    "note-short": "the text is shorter than one window of this metric",
    "note-windows": "{0} windows with hardly any speech were left out",
    "note-without": "{0} has no value: {1}",
    "note-stem": "the recording contains {0} s of music, and its speech is scored without it",
    "note-both": "the recording contains {0} s of music, and its speech is scored without it, in addition to the "
    "whole recording",
    "note-silence": "{0} s of silence at the beginning and {1} s of silence at the end",
    "note-silence-begin": "{0} s of silence at the beginning",
    "note-silence-end": "{0} s of silence at the end",
    "note-not-ranked": "not ranked ({0}): {1}",
    "not-ranked-items": "not ranked: {0} ({1} of {2})",
}
"""Reasons why an item is unscored or a system unranked, by code; `{0}`, `{1}` … are placeholders."""

LONGEST = 4_000
"""Maximum number of characters of a text that are searched for a sentence."""
_PLACE = re.compile(r"\{(\w+)\}")


def write_sentence(code: str, /, **parameters: Any) -> CodedSentence:
    """Return a sentence with its code; parameters may themselves be sentences.

    Args:
        code: one of `SENTENCES`.
        parameters: the value for each of its placeholders.
    """
    return CodedSentence(SENTENCES[code].format(**parameters), code=code, **parameters)


def parse_sentence(text: str) -> CodedSentence | None:
    """Return the sentence for a text that was stored without its code; None if it is not one of `SENTENCES`.

    The running time is linear in the length of the text.
    """
    if len(text) > LONGEST:
        return None
    for code in SENTENCES:
        values = _match(SENTENCES[code], text)
        if values is not None:
            return CodedSentence(text, code=code, **values)
    return None


def translate_reason(reason: str, words: Mapping[str, Any]) -> str:
    """Translate a reason with the given words; an unknown reason stays unchanged.

    Args:
        reason: the reason in the engine's English.
        words: a mapping like `CAUSES`; its `sentences` contains translations of some of `REASONS`, under the same
            codes.
    """
    for code, translation in words.get("sentences", {}).items():
        if (values := _match(REASONS[code], reason)) is not None:
            # A reason may be part of a longer sentence.
            return str(translation).format(*(translate_reason(part, words) for part in values.values()))
    return reason


_VARYING = re.compile(r"\d+(?:[.,:]\d+)*|'[^']*'|\"[^\"]*\"")
"""Pattern for the parts that may differ between sentences of the same kind: numbers and quotations."""


def find_kinds(sentences: Iterable[str]) -> dict[str, str]:
    """Map each sentence to the first one of its kind; sentences of a kind differ only in numbers and quotations."""
    examples: dict[str, str] = {}
    return {sentence: examples.setdefault(_VARYING.sub("", sentence), sentence) for sentence in sentences}


def _match(template: str, text: str) -> dict[str, str] | None:
    """Return the content of a template's placeholders, each up to the first occurrence of the following text."""
    literals, names = _split(template)
    if not text.startswith(literals[0]) or not text.endswith(literals[-1]):
        return None
    if len(text) < sum(map(len, literals)) + len(names) or (not names and text != literals[0]):
        return None
    values: dict[str, str] = {}
    at, end = len(literals[0]), len(text) - len(literals[-1])
    for name, literal in zip(names[:-1], literals[1:-1], strict=True):
        here = text.find(literal, at + 1, end)
        if here < 0:
            return None
        values[name], at = text[at:here], here + len(literal)
    if names:
        if at >= end:
            return None
        values[names[-1]] = text[at:end]
    return values


@cache
def _split(template: str) -> tuple[list[str], list[str]]:
    """Return the fixed parts of a template and the names of the placeholders between them."""
    parts = _PLACE.split(template)
    return parts[::2], parts[1::2]
