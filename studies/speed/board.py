"""Measure how quickly a large board starts and answers: 300 systems, 40 figures, every breakdown of LFS-Bench.

`python studies/speed/board.py` writes the tables, serves the real site in a separate process and sends it one request
after another, as readers do; then a real Chromium opens it. The times of the server are from the first byte of a
request to the last byte of its answer, on the loopback interface. Wall-clock time depends on the machine's other work,
so the load and the processor time of the server's process are printed next to it.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT))
SPACE = CHECKOUT / "space"
CHROMIUM = "/usr/bin/chromium"

SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import app
app.serve(Path(sys.argv[2]), port=int(sys.argv[3]))
"""
ASKED = {
    "overview": "",
    "the same again": "",
    "sorted by another column": "?sort=wer.wer",
    "search": "?q=system+17",
    "two filters": "?size=below_1b,1b_to_4b&licence=MIT",
    "another slice": "?slice=scenario=news",
    "another slice again": "?slice=scenario=news",
    "all columns": "?dimension=all",
    "all columns, sorted": "?dimension=all&sort=-dnsmos.ovrl",
    "all columns, all rows": "?dimension=all&rows=all",
    "radar": "?plot=radar&dimension=all",
    "against size": "?plot=size&of=wer.wer",
    "over time": "?plot=time&of=wer.wer",
    "distribution": "?plot=distribution&of=wer.wer",
    "in Chinese": "?lang=zh",
    "CSV of all columns": "board.csv?dimension=all",
}
WATCH = """
window.moved = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.moved += entry.value;
}).observe({ type: "layout-shift", buffered: true });
new MutationObserver(() => {
  if (!window.firstRow && document.querySelector("table.board tbody tr"))
    requestAnimationFrame(() => setTimeout(() => { window.firstRow = window.firstRow || performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
"""Script that records when the first row of the table was painted, and the total layout shift of the page."""


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, over all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(runs: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Serve a folder of runs with the real site; return once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(SPACE), str(runs), str(port)])
    address = f"http://127.0.0.1:{port}/"
    for _ in range(1_200):
        try:
            httpx.get(f"{address}health")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return process, address
    raise SystemExit("the site did not start within a minute")


def open_first(address: str, process: subprocess.Popen[bytes], begun: float) -> None:
    """Print the cost of the start, and the cost to the server of the first and the second reader in each language."""
    print(f"ready after {time.perf_counter() - begun:.2f} s, {processor_seconds(process.pid):.2f} s of processor")
    for language in ("en", "zh"):
        costs = []
        for _ in range(2):
            before, begun = processor_seconds(process.pid), time.perf_counter()
            httpx.get(address, headers={"accept-language": language}, timeout=60).raise_for_status()
            # Work that continues in the background also belongs to the request.
            time.sleep(0.5)
            taken = time.perf_counter() - begun - 0.5
            costs.append(f"{processor_seconds(process.pid) - before:.2f} s of processor ({taken:.2f} s)")
        print(f"front page in {language}: first {costs[0]}, second {costs[1]}")


def ask(address: str, pid: int, times: int) -> None:
    """Print the cost of every interaction to the server: the first time, and later."""
    print(f"{'':28} {'first ms':>9} {'median ms':>10} {'worst ms':>9} {'cpu ms':>7} {'kB sent':>8}")
    with httpx.Client(base_url=address, headers={"accept-encoding": "gzip"}, timeout=120) as client:
        for name, query in ASKED.items():
            asked = query if query.startswith("board.") else f"board.json{query}"
            taken, sent, before = [], 0, 0.0
            for number in range(times + 1):
                if number == 1:
                    before = processor_seconds(pid)
                begun = time.perf_counter()
                with client.stream("GET", asked) as answer:
                    sent = sum(len(chunk) for chunk in answer.iter_raw())
                    answer.raise_for_status()
                taken.append(1e3 * (time.perf_counter() - begun))
            cpu = 1e3 * (processor_seconds(pid) - before) / times
            later = taken[1:]
            middle, worst = statistics.median(later), max(later)
            print(f"{name:28} {taken[0]:9.0f} {middle:10.0f} {worst:9.0f} {cpu:7.0f} {sent / 1e3:8.0f}")


def look(address: str, times: int) -> None:
    """Print when Chromium first shows anything, and the first row, with an empty cache."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, query in (
            ("overview", ""),
            ("all columns", "?dimension=all"),
            ("everything", "?dimension=all&rows=all"),
        ):
            found = [_opened(browser, address + query) for _ in range(times)]
            paint, row, moved = (statistics.median(values) for values in zip(*found, strict=True))
            print(
                f"{name:28} first paint {paint:5.0f} ms, first row {row:5.0f} ms"
                f" (worst {max(row for _, row, _ in found):.0f}), layout shift {moved:.3f}"
            )
        browser.close()


def _opened(browser: Any, address: str) -> tuple[float, float, float]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    told = "[performance.getEntriesByName('first-contentful-paint')[0]?.startTime, window.firstRow]"
    while None in (found := page.evaluate(told)):
        page.wait_for_timeout(20)
    page.wait_for_load_state("networkidle")
    paint, row, moved = (float(value) for value in (*found, page.evaluate("window.moved")))
    context.close()
    return paint, row, moved


def main() -> None:
    """Measure the board, and print the figures."""
    from tests.board.large_board import write_large_board

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=300)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--times", type=int, default=9, help="how often each interaction is asked for")
    parser.add_argument("--runs", type=Path, help="a folder of runs already written")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="podeval-board-") as scratch:
        runs = asked.runs or write_large_board(Path(scratch) / "runs", asked.systems, asked.keys)
        begun = time.perf_counter()
        from podeval.board.runs_folder import RunsFolder

        index = RunsFolder(runs).index()
        print(f"tables read and arranged in {time.perf_counter() - begun:.2f} s; load {os.getloadavg()[0]:.1f}")
        del index
        begun = time.perf_counter()
        process, address = serve(runs)
        try:
            open_first(address, process, begun)
            ask(address, process.pid, asked.times)
            look(address, min(asked.times, 5))
        finally:
            process.terminate()
            process.wait(30)
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
