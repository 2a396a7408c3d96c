"""A server that refuses, or a bad line to it: nodes stay up, say what to do, and go on after it."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from redis.exceptions import ResponseError

from celery_redlock_beat.clock import wall_micros
from celery_redlock_beat.ticks import SECOND
from support.servers import Server, replica_of, wait_for_replica, wait_until
from support.trial import LIMIT, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

OUTAGE = 1.0  # counted from when the last node has noticed
HOLD_DOWN = 3.0
LOUD = re.compile(r"^\[\S+ \S+ (?:WARNING|ERROR|CRITICAL)/\S+ (.*)$", re.MULTILINE)
# Of a tick that was being sent just then, by us or by Celery, or that another node took over; it is
# not about the server.
OF_A_TICK = re.compile(
    r": no answer, the ledger knows|: sent [\d.]+ s after its instant, id \S+, attempt [2-9]"
    "|^Message Error: Couldn't apply scheduled task"
)
PROVIDER = """
from pathlib import Path

from redis import CredentialProvider


class Rotated(CredentialProvider):
    def get_credentials(self):
        return "beat", Path("password").read_text()
"""


def live_through(
    trial: Trial,
    fault: Callable[[], object],
    cure: Callable[[], object],
    problem: str,
    advice: str,
    *,
    within: float = 2.0,
    lasts: float = OUTAGE,
) -> None:
    """Break something in mid-work, and mend it a while after all nodes said what is wrong."""
    trial.next_burst()
    seen = {node: len(node.log) for node in trial.nodes}
    fault()
    for node in trial.nodes:
        said = node.wait_for_log(rf"The ledger is .*away.*{problem}.*", LIMIT, since=seen[node])[0]
        assert advice in said
    told = wall_micros()  # the server's clock is this machine's
    time.sleep(lasts)
    ends = wall_micros()
    cure()
    assert trial.resumed_after(trial.now()) < within
    for node in trial.nodes:
        node.wait_for_log("The ledger is back after", LIMIT, since=seen[node])
        loud = LOUD.findall(node.log[seen[node] :])
        # The connection for messages, which leads to the same server, may notice first.
        loud = [line for line in loud if not line.startswith("The broker is ")]
        first, *more, last = [line for line in loud if not OF_A_TICK.search(line)]
        assert first.startswith("The ledger is away, nothing is sent until it is back: ")
        assert last.startswith("The ledger is back after ")
        assert all(line.startswith("The ledger is still away, for another") for line in more)
        assert len(set(more)) == len(more), "each reason is told once"
    assert [each for each in trial.collector.arrivals if told < each.at < ends] == []


def test_a_refused_password_a_full_memory_and_a_changed_password_are_waited_out(
    redis_server, tmp_path
):
    url = redis_server.url.replace("redis://", "redis://beat:secret@")
    with (
        redis_server.client() as client,
        Trial(tmp_path, redis_server, url=url, start=False) as trial,
    ):
        for node in trial.nodes:
            node.start()
        for node in trial.nodes:
            said = node.wait_for_log("refuses our user or password.*", LIMIT)[0]
            assert "check the user and the password of redlock_beat_url or broker_url" in said
        client.execute_command("ACL SETUSER beat on >secret ~* &* +@all")
        trial.begin()
        live_through(
            trial,
            lambda: client.config_set("maxmemory", "1mb"),
            lambda: client.config_set("maxmemory", "0"),
            "has reached its maxmemory",
            "raise maxmemory",
        )
        live_through(
            trial,
            lambda: _change_password(client, "changed"),
            lambda: _change_password(client, "secret"),
            "refuses our user or password",
            "check the user and the password of redlock_beat_url or broker_url",
        )
        account = trial.conclude()
    assert account.faults == {}
    assert not re.search("secret|changed", "".join(node.log for node in trial.nodes))


def test_a_read_only_replica_is_named_as_one_and_used_once_promoted(redis_server, tmp_path):
    with replica_of(redis_server) as replica:
        wait_for_replica(replica)
        with Trial(tmp_path, replica, nodes=1, start=False) as trial:
            node = trial.nodes[0].start()
            said = node.wait_for_log("the server is a replica.*", LIMIT)[0]
            assert "point the URL at the primary" in said
            with replica.client() as client:
                client.replicaof("NO", "ONE")
            trial.begin()
            trial.go_on(2)
            account = trial.conclude()
    assert account.faults == {}


def test_a_primary_that_is_demoted_under_the_nodes_is_used_again_once_promoted(tmp_path):
    with (
        Server(extra=("--repl-diskless-sync-delay", "0")) as server,
        replica_of(server) as other,
        server.client() as client,
        other.client() as other_client,
    ):
        wait_for_replica(other)

        def hand_over(giving, to, taking):
            giving.execute_command("FAILOVER", "TO", "127.0.0.1", to.port)
            wait_until(lambda: taking.info("replication")["role"] == "master", LIMIT, "it")

        def demote():
            hand_over(client, other, other_client)
            wait_for_replica(server)

        with Trial(tmp_path, server, nodes=2) as trial:
            live_through(
                trial,
                demote,
                lambda: hand_over(other_client, server, client),
                "the server is a replica",
                "point the URL at the primary",
                within=2 + HOLD_DOWN,
            )
            account = trial.conclude()
    assert account.faults == {}


def test_what_a_server_refuses_for_a_while_is_waited_out(redis_server, tmp_path):
    with redis_server.client() as client, Trial(tmp_path, redis_server) as trial:
        dump = redis_server.directory / "dump.rdb"
        first_limit = client.config_get("maxclients")["maxclients"]

        def set_to(name, value):
            return lambda: client.config_set(name, value)

        def fail_to_save():
            client.config_set("save", "3600 1000000")
            dump.mkdir()
            client.bgsave()

        def save():
            dump.rmdir()
            client.bgsave()
            done = ("rdb_last_bgsave_status", "ok")
            wait_until(lambda: done in client.info("persistence").items(), LIMIT, "a save")

        def occupy():
            client.config_set("lua-time-limit", 10)
            threading.Thread(target=_loop, args=(redis_server,)).start()

        def leave_no_room():
            client.config_set("maxclients", 1)
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        few_replicas = set_to("min-replicas-to-write", 1), set_to("min-replicas-to-write", 0)
        live_through(trial, *few_replicas, "fewer replicas", "bring a replica back")
        live_through(trial, fail_to_save, save, "cannot save its data", "free its disk")
        live_through(trial, occupy, client.script_kill, "busy with a script", "SCRIPT KILL")
        room = set_to("maxclients", first_limit)
        live_through(trial, leave_no_room, room, "limit of clients", "raise maxclients")
        account = trial.conclude()
    assert account.faults == {}


def _loop(server: Server) -> None:
    with suppress(ResponseError), server.client(socket_timeout=60) as client:
        client.eval("while true do end", 0)


def test_a_server_that_is_killed_and_loads_its_data_for_long_is_waited_for(redis_server, tmp_path):
    with redis_server.client() as client:
        client.config_set("aof-use-rdb-preamble", "no")
        with client.pipeline(transaction=False) as pipe:
            for number in range(8000):  # it answers once per 1024 of them
                pipe.set(f"something else {number}", "")
            pipe.execute()
    with Trial(tmp_path, redis_server, nodes=2) as trial:
        redis_server._extra = ("--key-load-delay", "200")
        starting = threading.Thread(target=redis_server.start)

        def fault():
            redis_server.kill()
            starting.start()

        # Whoever had the connection says that it is gone, and then for what reason.
        live_through(
            trial,
            fault,
            starting.join,
            "is loading its data",
            "wait",
            within=2 + HOLD_DOWN,
            lasts=0,  # it ends by itself
        )
        account = trial.conclude()
    assert account.faults == {}


def test_a_password_that_a_provider_gives_is_followed_when_it_changes(redis_server, tmp_path):
    def give(password):
        (tmp_path / "password").write_text(password)

    give("secret")
    with redis_server.client() as client:
        client.execute_command("ACL SETUSER beat on >secret ~* &* +@all")
        url = f"{redis_server.url}?credential_provider=rotated.Rotated"
        (tmp_path / "rotated.py").write_text(PROVIDER)
        with Trial(tmp_path, redis_server, url=url, nodes=1) as trial:
            live_through(
                trial,
                lambda: _change_password(client, "changed"),
                lambda: give("changed"),
                "refuses our user or password",
                "check the user and the password",
            )
            account = trial.conclude()
    assert account.faults == {}
    assert not re.search("secret|changed", "".join(node.log for node in trial.nodes))


def _change_password(client, password: str) -> None:
    client.execute_command("ACL", "SETUSER", "beat", "resetpass", f">{password}")
    client.execute_command("CLIENT", "KILL", "USER", "beat")


def test_a_flush_of_the_scripts_is_not_even_noticed(redis_server, tmp_path):
    with redis_server.client() as client, Trial(tmp_path, redis_server, nodes=1) as trial:
        trial.next_burst()
        seen = {node: len(node.log) for node in trial.nodes}
        for _ in range(2):
            client.script_flush()
            trial.go_on(1)
        for node in trial.nodes:
            assert LOUD.findall(node.log[seen[node] :]) == []
        account = trial.conclude()
    assert account.faults == {}
    assert max(verdict.latest for verdict in account.verdicts.values()) < 2 * SECOND


def test_a_line_that_swallows_or_garbles_what_is_said_is_given_up_soon(
    redis_server, proxy, tmp_path
):
    page = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbye"
    silence = "did not answer in time", "redlock_beat_socket_timeout"
    noise = "does not speak the Redis protocol", "check host, port, and whether the port wants TLS"
    with Trial(tmp_path, redis_server, url=proxy.url) as trial:
        for fault, told in {
            proxy.half_open: silence,
            lambda: proxy.half_open(requests=False): silence,
            lambda: proxy.answer(page, ends=True): noise,
            lambda: proxy.answer(b"+OK\r\n"): noise,  # Redis, and no answer to what was asked
        }.items():
            live_through(trial, fault, proxy.restore, *told)
        account = trial.conclude()
    assert account.faults == {}
