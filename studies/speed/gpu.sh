#!/bin/sh
# The reference profile on a GPU, in at most ten minutes on one H100:
#
#     podeval models install --profile reference
#     studies/speed/gpu.sh [FOLDER]
#
# Values on the CPU and on the GPU, the hour with music, Whisper in batches of 32 to 128, several processes. Everything
# is printed, and nothing that fails ends the rest. PROFILE=embedded MINUTES=1 METRICS=loudness tries it without a GPU.
set -u
here=$(dirname "$0")
folder=${1:-$(mktemp -d)}
profile=${PROFILE:-reference}
metrics=${METRICS:-}
failed=0

run() {
    echo "== $*"
    timeout "${LIMIT:-300}" "${PYTHON:-python}" "$@" || failed=1
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "no GPU here"
git -C "$here" log -1 --format='commit %h' || echo "no checkout"
cat /proc/loadavg
run "$here/podcast.py" make "$folder/speech.wav" --minutes "${MINUTES:-60}"
run "$here/reference_gpu.py" make "$folder/speech.wav" "$folder/podcast.wav"
run "$here/reference_gpu.py" equal "$folder/podcast.wav" --profile "$profile" --metrics "$metrics"
run "$here/reference_gpu.py" hour "$folder/podcast.wav" --profile "$profile" --metrics "$metrics"
for batch in ${BATCHES:-32 64 128}; do
    run "$here/reference_gpu.py" hour "$folder/podcast.wav" --profile "$profile" --metrics wer --batch "$batch"
done
run "$here/reference_gpu.py" several "$folder/podcast.wav" --profile "$profile" --metrics "$metrics" \
    --workers "${WORKERS:-0}" --clips "${CLIPS:-12}" --seconds "${SECONDS_EACH:-600}"
exit $failed
