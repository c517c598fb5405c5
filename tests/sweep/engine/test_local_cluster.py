import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from cubes import COMMAND
from distributed import Client, LocalCluster
from distributed.security import Security

import paradl
from paradl.sweep.engine.dask_executor import local_cluster
from paradl.sweep.errors import RunError

PAGES = ("health", "status", "metrics", "json/identity.json", "info/main/workers.html")


def test_what_killed_workers_leave_is_removed_in_silence():
    code = (
        "import os; from multiprocessing import resource_tracker as tracker;"
        "from paradl.sweep.engine.dask_executor import start_tracker; start_tracker();"
        "tracker.register('/paradl-left', 'semaphore'); print(os.environ.get('PYTHONWARNINGS'))"
    )
    environment = os.environ | {"PYTHONWARNINGS": "ignore:nothing"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ignore:nothing\n", "")


@pytest.fixture(scope="module")
def ours() -> Iterator[LocalCluster]:
    """Local workers as --workers starts them."""
    with local_cluster(1) as running:
        yield running


def scheduler_of(cluster: LocalCluster) -> Any:
    """The scheduler, which runs in this process; its own types lack the port of its pages."""
    assert cluster.scheduler is not None
    return cluster.scheduler


def listening(cluster: LocalCluster) -> set[tuple[str, int]]:
    """The addresses of the scheduler and the workers."""
    with Client(cluster, set_as_default=False) as client:
        workers = client.run(os.getpid).values()
    sockets = [
        connection for pid in workers for connection in psutil.Process(pid).net_connections("tcp")
    ]
    scheduler = scheduler_of(cluster)
    own = {scheduler.port, scheduler.http_server.port}
    sockets += [
        connection
        for connection in psutil.Process().net_connections("tcp")
        if connection.laddr.port in own
    ]
    return {
        tuple(connection.laddr) for connection in sockets if connection.status == psutil.CONN_LISTEN
    }


def answer(host: str, port: int, page: str) -> int | None:
    """The code that a page is answered with, None where nobody speaks HTTP."""
    try:
        return int(urlopen(f"http://{host}:{port}/{page}", timeout=5).status)
    except HTTPError as error:
        return error.code
    except OSError:
        return None


def first_byte(cluster: LocalCluster, context: ssl.SSLContext) -> bytes:
    """What the scheduler says first to who comes with `context`, and trusts it blindly."""
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", scheduler_of(cluster).port), timeout=5)
    with plain, context.wrap_socket(plain) as encrypted:
        return encrypted.recv(1)


def test_who_has_not_the_certificate_is_turned_away(ours):
    def context(security: Security) -> ssl.SSLContext:
        return security.get_connection_args("client")["ssl_context"]

    assert first_byte(ours, context(ours.security))
    with pytest.raises(OSError, match=r"CERTIFICATE_REQUIRED|reset"):
        first_byte(ours, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    with pytest.raises(OSError, match=r"UNKNOWN_CA|reset"):
        first_byte(ours, context(Security.temporary()))
    with pytest.raises(OSError, match="closed"):
        Client(f"tcp://127.0.0.1:{ours.scheduler.port}", timeout=1, set_as_default=False)


def test_no_page_is_served_and_no_port_is_seen_from_elsewhere(ours):
    addresses = listening(ours)
    assert len(addresses) == 4  # the scheduler's and the worker's, each with one for pages
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    answers = [answer(*address, page) for address in addresses for page in PAGES]
    assert sorted(filter(None, answers)) == [404] * 2 * len(PAGES)


def test_workers_that_die_as_they_start(small, tmp_path, monkeypatch, capfd):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if '--multiprocessing-fork' in sys.orig_argv: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    store = tmp_path / "cube.zarr"
    paths = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", paths)
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    with pytest.raises(RunError, match=r"^local workers did not start \(.*use fewer workers$"):
        paradl.run(small, store, workers=1)
    assert capfd.readouterr() == ("", "")
    assert "PYTHONWARNINGS" not in os.environ
    assert not store.exists()


def test_an_interrupt_while_workers_start_is_heard(spec_file, small, tmp_path):
    store = tmp_path / "cube.zarr"
    command = [*COMMAND, "sweep", spec_file(small), str(store), "--workers", "1"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not any("--multiprocessing-fork" in process for process in processes_under(run.pid)):
        assert run.poll() is None
        time.sleep(0.2)  # to look through all processes takes 0.02 s
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: workers get it, too
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert (
        said == "paradl: interrupted; finished blocks are kept: rerun the same command to resume\n"
    )
    assert not store.exists()


def processes_under(pid: int) -> list[list[str]]:
    """The commands of a process' children."""
    commands = []
    for child in psutil.Process(pid).children(recursive=True):
        try:
            commands.append(child.cmdline())
        except psutil.Error:  # gone, or not there yet
            continue
    return commands
