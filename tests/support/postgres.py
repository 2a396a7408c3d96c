"""A PostgreSQL server of our own, on a port of 127.0.0.1, as an account that may not be root.

It never touches a server that it did not start.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from celery_redlock_beat.testing.server import Child, ServerNotStarted, free_port, wait_until

START_LIMIT = 60.0
ACCOUNTS = ("postgres", "nobody")
# It survives its own end, not that of the machine.
OPTIONS = ("fsync=off", "full_page_writes=off", "max_connections=60")


def find_binaries() -> Path | None:
    """Return the folder of ``initdb`` and ``postgres``, also where Debian hides it."""
    on_path = shutil.which("initdb")
    hidden = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = [*hidden, *([Path(on_path).resolve()] if on_path else [])]
    return found[-1].parent if found else None


class PostgreSQL(Child):
    """A server with the database ``postgres`` and its superuser ``proj``; a context manager.

    Port and data survive ``stop``, ``kill`` and ``start``; ``close`` removes them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.port = 0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def directory(self) -> Path:
        """Where it keeps everything, known once it has started."""
        if self._temporary is None:
            raise ServerNotStarted("it was never started")
        return Path(self._temporary.name)

    def database(self, name: str = "postgres") -> dict[str, Any]:
        """Return a database of it as Django's ``DATABASES`` has one."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": "proj",
            "HOST": "127.0.0.1",
            "PORT": self.port,
            "OPTIONS": {"connect_timeout": 5},
        }

    def connect(self) -> psycopg.Connection[Any]:
        """Return a connection that commits each statement."""
        place = f"host=127.0.0.1 port={self.port} user=proj dbname=postgres connect_timeout=5"
        return psycopg.connect(place, autocommit=True)

    def create(self, name: str) -> dict[str, Any]:
        """Create an empty database; return it as Django's ``DATABASES`` has one."""
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.database(name)

    def start(self) -> Self:
        """Start it where it does not run, and wait until *this* server answers."""
        if self._temporary is None:
            self._make()
        if self.alive:
            return self
        place = ("-D", str(self._data), "-p", str(self.port), "-h", "127.0.0.1", "-k", "")
        options = [part for option in OPTIONS for part in ("-c", option)]
        self.launch(self._as_other(self._binary("postgres"), *place, *options), cwd=self.directory)
        try:
            wait_until(lambda: not self.alive or self._is_ours(), START_LIMIT, "PostgreSQL")
        except TimeoutError as error:
            self.kill()
            raise ServerNotStarted(f"{error}; its log ends:\n{self.log[-2000:]}") from None
        if not self.alive:
            raise ServerNotStarted(f"PostgreSQL ended at its start:\n{self.log[-2000:]}")
        return self

    def ask_to_end(self) -> None:
        """Send SIGINT, its fast shutdown: it waits for no client."""
        if self.process is not None:
            self.process.send_signal(2)

    def stop(self, limit: float = 30.0) -> float:
        """Shut it down fast; return how many seconds it took."""
        self.thaw()
        self.ask_to_end()
        return super().stop(limit)

    def close(self) -> None:
        """Stop it, and remove its directory."""
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = self.log_path = None

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _make(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(
            prefix="redlock-postgres-", ignore_cleanup_errors=True
        )
        self.port = free_port()
        self._data.mkdir(mode=0o700)
        if account := _other():
            for path in (self.directory, self._data):
                os.chown(path, account.pw_uid, account.pw_gid)
        words = ("-D", str(self._data), "-U", "proj", "-A", "trust", "-E", "UTF8", "--no-sync")
        done = subprocess.run(
            self._as_other(self._binary("initdb"), *words, "--locale=C"),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_LIMIT,
        )
        if done.returncode:
            raise ServerNotStarted(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _binary(self, name: str) -> str:
        folder = find_binaries()
        if folder is None:
            raise ServerNotStarted("PostgreSQL is not installed")
        return str(folder / name)

    def _as_other(self, *command: str) -> list[str]:
        """Return a command line that runs as somebody else where we are root, and dies with us.

        A change of the account clears the parent-death signal, which is why it is set after it.
        """
        account = _other()
        if account is None:
            return list(command)
        ids = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
        return ["setpriv", *ids, "--pdeathsig=KILL", "--", *command]

    def _is_ours(self) -> bool:
        with suppress(psycopg.Error), self.connect() as connection:
            row = connection.execute("SHOW data_directory").fetchone()
            return row is not None and row[0] == str(self._data)
        return False

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def _other() -> pwd.struct_passwd | None:
    """Return the account that runs it: nobody of note where we are root, else ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerNotStarted(f"initdb refuses root, and there is no account of {ACCOUNTS}")
