"""Tests side by side in processes that are forked once all tests are known, each of which takes file after file.

They find imported what the tests import, which is done once: processes that collect for themselves, as those of
pytest-xdist do, take half a minute of processor time each, and a gigabyte.
"""

import atexit
import io
import os
import signal
from collections.abc import Iterable
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import NoReturn

import pytest

Files = list[list[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="processes that take the files of the tests in turn")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Fork the processes, and report what they send."""
    count = session.config.getoption("processes")
    if count == 1 or session.testsfailed or session.config.getoption("collectonly"):
        return None
    by_path: dict[Path, list[pytest.Item]] = {}
    for item in session.items:
        by_path.setdefault(item.path, []).append(item)
    files = list(by_path.values())
    # A pipe with the numbers of the files: each is read by one process.
    numbers, written = os.pipe()
    os.write(written, b"".join(number.to_bytes(2) for number in range(len(files))))
    os.close(written)
    session.config._tmp_path_factory.getbasetemp()
    processes: dict[Connection, int] = {}
    for place in range(count):
        receiver, sender = Pipe(duplex=False)
        pid = os.fork()
        if not pid:
            for end in (receiver, *processes):
                end.close()  # A process whose parent was killed cannot report, and ends.
            _run(session, f"process-{place}", files, numbers, sender)
        sender.close()
        processes[receiver] = pid
    try:
        _report(session, files, processes)
    finally:
        for pid in processes.values():
            os.kill(pid, signal.SIGINT)
    while number := os.read(numbers, 2):
        _fail(session, files[int.from_bytes(number)], "no process was left to run it")
    return True


def _run(session: pytest.Session, name: str, files: Files, numbers: int, sender: Connection) -> NoReturn:
    """Be one of the processes."""
    config, hook, item = session.config, session.config.hook, None

    class Sends:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            sender.send(hook.pytest_report_to_serializable(config=config, report=report))

    try:
        config.get_terminal_writer()._file = io.StringIO()
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        temporary = config._tmp_path_factory
        temporary._basetemp = temporary.getbasetemp() / name
        temporary._basetemp.mkdir()
        config.pluginmanager.register(Sends())
        while number := os.read(numbers, 2):
            tests = files[int.from_bytes(number)]
            sender.send(int.from_bytes(number))
            # After the last one what is of the session is kept.
            for item, following in zip(tests, [*tests[1:], session], strict=True):
                hook.pytest_runtest_protocol(item=item, nextitem=following)
    except (KeyboardInterrupt, pytest.exit.Exception) as stop:
        sender.send(repr(stop))
    finally:
        ending = pytest.CallInfo.from_call(partial(session._setupstate.teardown_exact, None), "teardown")
        if ending.excinfo:
            hook.pytest_runtest_logreport(report=pytest.TestReport.from_item_and_call(item, ending))
        atexit._run_exitfuncs()
        os._exit(0)


def _report(session: pytest.Session, files: Files, processes: dict[Connection, int]) -> None:
    """Report what the processes send until each has ended; those that have are taken out."""
    hook = session.config.hook
    left: dict[Connection, dict[str, pytest.Item]] = {receiver: {} for receiver in processes}
    while processes:
        for receiver in wait(list(processes)):
            try:
                sent = receiver.recv()
            except EOFError:
                _, status = os.waitpid(processes.pop(receiver), 0)
                _fail(session, left[receiver].values(), f"its process ended with status {status}")
                continue
            if isinstance(sent, int):
                left[receiver] = {item.nodeid: item for item in files[sent]}
            elif isinstance(sent, str):
                pytest.exit(sent)
            else:
                report = hook.pytest_report_from_serializable(config=session.config, data=sent)
                hook.pytest_runtest_logreport(report=report)
                if report.when == "teardown" and left[receiver].pop(report.nodeid, None):
                    hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)


def _fail(session: pytest.Session, items: Iterable[pytest.Item], why: str) -> None:
    """Report tests that ended with no report of their own."""
    for item in items:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
