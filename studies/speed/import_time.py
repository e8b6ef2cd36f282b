"""What `import podeval` adds to starting Python, and what commands take on a clip of 9 s: medians of 10 warm starts.

Run `python studies/speed/import_time.py [speech.wav]`; the bound of the import is 0.3 s, and commands need the speech.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import soundfile
from timing import keep

COMMANDS = ("--help", "measure loudness CLIP", "measure dnsmos CLIP")
RUN = "import sys; sys.argv[1:] = {!r}; from podeval.cli import main; main()"
STARTS, CLIP_SECONDS, STEP_SECONDS = 10, 9, 4
BOUND = 0.3


def seconds(programs: list[str]) -> float:
    """Median time of Python processes that run these one after the other, after the first, which warms the disk."""
    taken = []
    for program in programs:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def write_clips(speech: Path, folder: Path) -> list[Path]:
    """A clip for each start, so that none finds results of another."""
    rate = soundfile.info(speech).samplerate
    clips = [folder / f"{number}.wav" for number in range(STARTS + 1)]
    for number, clip in enumerate(clips):
        begin = number * STEP_SECONDS * rate
        soundfile.write(clip, soundfile.read(speech, start=begin, frames=CLIP_SECONDS * rate)[0], rate)
    return clips


def main() -> None:
    """Print bare Python, with podeval, and the difference; then the commands."""
    bare, with_podeval = (seconds([program] * (STARTS + 1)) for program in ("pass", "import podeval"))
    print(f"bare Python        {bare:.3f} s")
    print(f"with import podeval {with_podeval:.3f} s")
    print(f"difference         {with_podeval - bare:.3f} s (bound {BOUND} s)")
    with tempfile.TemporaryDirectory() as folder:
        clips = write_clips(Path(sys.argv[1]), Path(folder)) if sys.argv[1:] else []
        for command in COMMANDS if clips else ():
            took = seconds([RUN.format(command.replace("CLIP", str(clip)).split()) for clip in clips])
            print(f"podeval {command:24} {took:.2f} s")
            keep(f"`podeval {command}`, {CLIP_SECONDS} s (wall)", "bare Python", took, bare, bare / took, None, STARTS)


if __name__ == "__main__":
    main()
