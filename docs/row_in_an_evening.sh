#!/usr/bin/env bash
# A row in an evening: from an open model behind a server to a submitted row, step by step; each step can be repeated.
#
#   export MODEL=OpenMOSS-Team/MOSS-TTSD-v1.0
#   docs/row_in_an_evening.sh serve                      # here, in a separate terminal; or on a rented GPU:
#   docs/row_in_an_evening.sh rent                       # prints the address for SERVER and how to end the job
#   docs/row_in_an_evening.sh check run load look submit
#
# docs/row-in-an-evening.md says what each step does, and how long it takes.
set -euo pipefail

: "${MODEL:?set MODEL to the name of the model on the server, such as OpenMOSS-Team/MOSS-TTSD-v1.0}"
SERVER=${SERVER:-http://localhost:8000/v1}                      # ends in /v1
KIND=${KIND-vllm-omni}                                          # kind of server; empty: podeval asks it
SPEAK=${SPEAK---clone --dialogue whole --stream}                # options of the requests, such as: --voice anna --voice ben
BENCHMARK=${BENCHMARK:-real_pod}
SPLIT=${SPLIT:-topics}                                          # the split that counts on the board
RUNS=${RUNS:-runs}
NAME=${NAME:-$(basename "$MODEL" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9\n' '_' | cut -c1-40)}
METRICS=${METRICS:-}                                            # only these; empty: all of the benchmark's
LOADS=${LOADS:-1 4 16}                                          # requests at once, for the speed figures
LICENCE=${LICENCE:-unknown}                                     # of the model, as stated on its card
DESCRIPTION=${DESCRIPTION:-}                                    # two sentences for readers who do not know the model
REPO=${REPO:-}                                                  # dataset repo for the recordings, OWNER/NAME
FLAVOR=${FLAVOR:-a100-large}                                    # GPU to rent; `hf jobs hardware` lists them
IMAGE=${IMAGE:-vllm/vllm-omni:v0.30.0}
# PODEVAL_SERVER_KEY: the key of the server; on a rented GPU, your Hub token.

read -ra how <<< "${KIND:+--server-kind $KIND} $SPEAK"
system=(--server "$SERVER" --model "$MODEL" "${how[@]}" --benchmark "$BENCHMARK" --out "$RUNS")

# podeval exits with 1 if something is unscored; it has printed what, and the next call resumes.
try() {
    local code=0
    "$@" || code=$?
    ((code <= 1)) || exit "$code"
}

serve() { vllm serve "$MODEL" --omni --trust-remote-code --port 8000; }

rent() {
    hf jobs run --detach --expose 8000 --flavor "$FLAVOR" --timeout 6h -s HF_TOKEN "$IMAGE" \
        vllm serve "$MODEL" --omni --trust-remote-code --host 0.0.0.0 --port 8000
    echo "With the job's ID, run: export SERVER=https://ID--8000.hf.jobs/v1 PODEVAL_SERVER_KEY=\$(hf auth token)" >&2
    echo "When 'hf jobs logs ID' says 'Application startup complete', continue; 'hf jobs cancel ID' ends the costs." >&2
}

check() { # a few minutes: one script of the split that counts, or the small split for models with their own voices
    local some=(--split demo)
    [[ "$SPEAK" == *--clone* ]] && some=(--split "$SPLIT" --limit 1)
    try podeval run "${system[@]}" "${some[@]}" --name "${NAME}_check" --metrics "${CHECK_METRICS:-wer,loudness}"
}

run() { try podeval run "${system[@]}" --split "$SPLIT" --name "$NAME" --metrics "$METRICS"; }

load() { # the same scripts under load: each number of requests at once is a separate run
    local at
    for at in $LOADS; do
        ((at == 1)) && continue
        try podeval run "${system[@]}" --split "$SPLIT" --name "${NAME}_at_$at" --at-once "$at" --metrics loudness
    done
}

look() {
    podeval report show --runs "$RUNS"
    podeval report system "$RUNS/$BENCHMARK/$SPLIT/$NAME" --out "$NAME.html"
}

submit() {
    [ -e "$NAME/submission.yaml" ] || podeval prepare-submission "$NAME" --from "$RUNS/$BENCHMARK/$SPLIT/$NAME" \
        --licence "$LICENCE" --description "$DESCRIPTION" --push "$REPO"
    podeval submit "$NAME" --check --runs "$RUNS"
    podeval submit "$NAME" --runs "$RUNS"
}

(($#)) || set -- check run load look submit
for step in "$@"; do
    case $step in
        serve | rent | check | run | load | look | submit) "$step" ;;
        *) echo "there is no step $step; choose serve, rent, check, run, load, look or submit" >&2 && exit 2 ;;
    esac
done
