"""A RabbitMQ broker of our own, with its own epmd, names, ports and directories.

It never touches a broker or an epmd that it did not start, nor the account's Erlang cookie.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

import amqp  # type: ignore[import-untyped]
from kombu import Connection

from celery_redlock_beat.testing.server import (
    Child,
    ServerNotStarted,
    free_port,
    wait_until,
)

START_LIMIT = 90.0
# The scripts on PATH are wrappers that insist on an account; these are the ones behind them.
SCRIPTS = (Path("/usr/lib/rabbitmq/bin/rabbitmq-server"),)
ERL_ARGS = "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"


def find_rabbitmq() -> Path | None:
    """Return the start script of RabbitMQ, or ``None`` where it, Erlang or epmd is missing."""
    on_path = shutil.which("rabbitmq-server")
    candidates = (*SCRIPTS, *([Path(on_path)] if on_path else []))
    script = next((each for each in candidates if os.access(each, os.X_OK)), None)
    return script if shutil.which("epmd") and shutil.which("erl") else None


class RabbitMQ(Child):
    """A broker on 127.0.0.1 with the account ``guest``; a context manager.

    Ports and data survive ``stop``, ``kill`` and ``restart``; ``close`` removes them. Starting
    takes about ten seconds, so share one and give each test queues of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.port = 0
        self.nodename = ""
        self._epmd = Child()
        self._epmd_port = 0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def url(self) -> str:
        """Its URL for kombu and Celery."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    @property
    def directory(self) -> Path:
        """Where it keeps everything, known once it has started."""
        if self._temporary is None:
            raise ServerNotStarted("it was never started")
        return Path(self._temporary.name)

    def connection(self) -> Connection:
        """Return a connection, not yet open, that gives up soon."""
        return Connection(self.url, connect_timeout=2, transport_options={"confirm_publish": True})

    def start(self) -> Self:
        """Start epmd and the broker where they do not run; wait until *this* broker answers."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(
                prefix="redlock-rabbitmq-", ignore_cleanup_errors=True
            )
            self.port, self._epmd_port = free_port(), free_port()
            self.nodename = f"redlock{self.port}@localhost"
            (self.directory / "plugins").write_text("[].\n")
        if not self._epmd.alive:
            arguments = ("-port", str(self._epmd_port), "-address", "127.0.0.1")
            self._epmd.log_path = self.directory / "epmd.log"
            self._epmd.launch(["epmd", *arguments], cwd=self.directory)
        if not self.alive:
            self._launch_broker()
        return self

    def restart(self) -> Self:
        """Stop the broker if it runs, and start it on the same ports and data."""
        self.stop()
        return self.start()

    def stop(self, limit: float = 30.0) -> float:
        """Shut the broker down in good order; return how many seconds it took."""
        return super().stop(limit)

    def delete_queues(self, *names: str) -> None:
        """Delete queues with all they hold; those that are not there are passed over."""
        with self.connection() as connection, connection.channel() as channel:
            for name in names:
                channel.queue_delete(name)

    def close(self) -> None:
        """Stop broker and epmd, and remove the directory."""
        try:
            self.stop()
        finally:
            self._epmd.kill()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = self.log_path = None

    def _launch_broker(self) -> None:
        script = find_rabbitmq()
        if script is None:
            raise ServerNotStarted("RabbitMQ, Erlang or epmd is not installed")
        self.launch([script], cwd=self.directory, env=self._environment())
        try:
            wait_until(
                lambda: not self.alive or self._is_ours(), START_LIMIT, "RabbitMQ", interval=0.2
            )
        except TimeoutError as error:
            self.kill()
            raise ServerNotStarted(f"{error}; its log ends:\n{self.log[-2000:]}") from None
        if not self.alive:
            raise ServerNotStarted(f"RabbitMQ ended at its start:\n{self.log[-2000:]}")

    def _environment(self) -> dict[str, str]:
        home = str(self.directory)
        return {
            "HOME": home,  # its own cookie, not the account's
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_CRASH_DUMP": f"{home}/erl_crash.dump",
            "RUNNING_UNDER_SYSTEMD": "true",  # exec: our child is the broker, not a shell
            "RABBITMQ_NODENAME": self.nodename,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": f"{home}/mnesia",
            "RABBITMQ_LOG_BASE": f"{home}/log",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": f"{home}/pid",
            "RABBITMQ_CONFIG_FILE": f"{home}/rabbitmq",
            "RABBITMQ_CONF_ENV_FILE": f"{home}/rabbitmq-env.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{home}/advanced",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/plugins",
            "RABBITMQ_GENERATED_CONFIG_DIR": f"{home}/generated",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERL_ARGS,
        }

    def _is_ours(self) -> bool:
        address = f"127.0.0.1:{self.port}"
        with (
            suppress(OSError, amqp.AMQPError),
            amqp.Connection(address, connect_timeout=2, read_timeout=2) as connection,
        ):
            # The cluster is called after the node, at the host's full name.
            cluster = str(connection.server_properties["cluster_name"])
            return cluster.partition("@")[0] == self.nodename.partition("@")[0]
        return False

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
