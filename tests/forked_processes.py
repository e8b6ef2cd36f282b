"""Tests side by side, in processes that are forked once all tests are known: each takes a room after another.

They find imported what the tests import, which is done once: processes that collect for themselves, as those of
pytest-xdist do, take half a minute of processor time each, and a gigabyte. Rooms are not divided, because what is made
once in a process (a model, a site, a browser) is for the tests of a room.
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
"""The id of each process, and what it took and has not reported, by the connection on which it reports."""

LARGEST = ("space", "metrics", "models", "arena", "security", "cli", "submissions", "audio", "runs", "board")
"""Rooms that are begun first, so that none of them is left for the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="processes that take the rooms of the tests in turn")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Fork the processes, and report what they send."""
    count, hook = session.config.getoption("processes"), session.config.hook
    if count == 1 or session.testsfailed or session.config.getoption("collectonly"):
        return None
    by_name: dict[str, list[pytest.Item]] = {name: [] for name in LARGEST}
    for item in session.items:
        by_name.setdefault(item.path.relative_to(session.config.rootpath).parts[1], []).append(item)
    rooms = [tests for tests in by_name.values() if tests]
    # A pipe with the numbers of the rooms: each is read by one process.
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
                        # What it was at has failed; another process goes on with the rest.
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
    """Begin a process that runs these tests, and then takes rooms."""
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        for end in (receiver, *running):
            end.close()  # A process whose parent was killed cannot report, and ends.
        _run(session, rooms, numbers, sender, tests)
    sender.close()
    running[receiver] = pid, {item.nodeid: item for item in tests}


def _run(session: pytest.Session, rooms: Rooms, numbers: int, sender: Connection, tests: list[pytest.Item]) -> NoReturn:
    """Be one of the processes."""
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
                # After the last one what is of the session is kept.
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
