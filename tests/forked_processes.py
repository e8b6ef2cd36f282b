"""Run the tests in several processes, which are forked after collection; each process takes one room after another.

The processes share everything that collection has imported. The workers of pytest-xdist each collect the tests for
themselves, which takes half a minute of processor time and a gigabyte per worker. A room (a folder in `tests/`) is
never divided, because its tests share what is created once per process: a model, a site, a browser.
"""

import atexit
import io
import os
import signal
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from typing import NoReturn

import pytest

Rooms = list[list[pytest.Item]]
Running = dict[Connection, tuple[int, dict[str, pytest.Item]]]
"""The id of each process and the tests that it has taken but not reported, by the connection on which it reports."""

LARGEST = ("space", "metrics", "models", "arena", "security", "cli", "submissions", "audio", "runs", "board")
"""The largest rooms, which are started first, so that no long room remains at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="number of processes among which the rooms are divided")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Fork the processes and report the results that they send."""
    count, hook = session.config.getoption("processes"), session.config.hook
    if count == 1 or session.testsfailed or session.config.getoption("collectonly"):
        return None
    by_name: dict[str, list[pytest.Item]] = {name: [] for name in LARGEST}
    for item in session.items:
        by_name.setdefault(item.path.relative_to(session.config.rootpath).parts[1], []).append(item)
    rooms = [tests for tests in by_name.values() if tests]
    # The pipe contains the numbers of the rooms; each number is read by only one process.
    numbers, written = os.pipe()
    os.write(written, bytes(range(len(rooms))))
    os.close(written)
    session.config._tmp_path_factory.getbasetemp()
    running: Running = {}
    for _ in range(count):
        _fork(session, rooms, numbers, running, [])
    try:
        while running:
            for receiver in wait(list(running)):
                pid, left = running[receiver]
                try:
                    sent = receiver.recv()
                except EOFError:
                    del running[receiver]
                    _, status = os.waitpid(pid, 0)
                    if left:
                        # The test that was running has failed; a new process continues with the remaining tests.
                        item, *rest = left.values()
                        why = f"its process ended with status {status}"
                        hook.pytest_runtest_logreport(
                            report=pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
                        )
                        _fork(session, rooms, numbers, running, rest)
                    elif status:
                        pytest.exit(f"a process ended with status {status}")
                    continue
                if isinstance(sent, int):
                    left.update((item.nodeid, item) for item in rooms[sent])
                elif isinstance(sent, str):
                    pytest.exit(sent)
                else:
                    report = hook.pytest_report_from_serializable(config=session.config, data=sent)
                    hook.pytest_runtest_logreport(report=report)
                    if report.when == "teardown" and left.pop(report.nodeid, None):
                        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    finally:
        for pid, _ in running.values():
            os.kill(pid, signal.SIGINT)
    return True


def _fork(session: pytest.Session, rooms: Rooms, numbers: int, running: Running, tests: list[pytest.Item]) -> None:
    """Start a process that runs these tests and then takes rooms."""
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        for end in (receiver, *running):
            end.close()  # Otherwise a process would not notice that its parent was killed.
        _run(session, rooms, numbers, sender, tests)
    sender.close()
    running[receiver] = pid, {item.nodeid: item for item in tests}


def _run(session: pytest.Session, rooms: Rooms, numbers: int, sender: Connection, tests: list[pytest.Item]) -> NoReturn:
    """Run these tests, then the rooms that are left, and end the process."""
    config, hook, item = session.config, session.config.hook, session.items[0]

    class Sends:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            sender.send(hook.pytest_report_to_serializable(config=config, report=report))

    status = 1
    try:
        try:
            config.get_terminal_writer()._file = io.StringIO()
            capture = config.pluginmanager.getplugin("capturemanager")
            capture.stop_global_capturing()
            capture.start_global_capturing()
            temporary = config._tmp_path_factory
            temporary._basetemp = temporary.getbasetemp() / f"process-{os.getpid()}"
            temporary._basetemp.mkdir()
            config.pluginmanager.register(Sends())
            while True:
                # Fixtures of the session are kept after the last test of a room.
                for item, following in zip(tests, [*tests[1:], session], strict=False):
                    hook.pytest_runtest_protocol(item=item, nextitem=following)
                if not (number := os.read(numbers, 1)):
                    break
                tests = rooms[number[0]]
                sender.send(number[0])
        except (KeyboardInterrupt, pytest.exit.Exception) as stop:
            sender.send(repr(stop))
        ending = pytest.CallInfo.from_call(partial(session._setupstate.teardown_exact, None), "teardown")
        if ending.excinfo:
            hook.pytest_runtest_logreport(report=pytest.TestReport.from_item_and_call(item, ending))
        status = 0
    finally:
        atexit._run_exitfuncs()
        os._exit(status)
