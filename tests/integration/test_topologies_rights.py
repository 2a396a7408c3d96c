"""The rights that the documentation grants are enough, and none of them is too many.

The lines are taken out of the page itself, and the commands out of the scripts.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from celery_redlock_beat.errors import LedgerUnavailable
from support.cluster import Cluster, slot_of
from support.every_second import FIVE, RECORD, RUNS, every_second
from support.node_here import NodeHere, ledger_at
from support.nodes import WorkerNode
from support.servers import KINDS, SentinelTrio, Server, binary_of
from support.trial import Trial

PAGE = Path(__file__).parents[2] / "docs" / "redis.md"
LINES = dict(re.findall(r"^ACL SETUSER (\w+) (.+)$", PAGE.read_text("utf-8"), re.MULTILINE))
CALL = re.compile(r"redis\.p?call\(\s*'([A-Z]+)'")
LUA = resources.files("celery_redlock_beat.ledger") / "lua"
IN_SCRIPTS = {
    each.name: {name.lower() for name in CALL.findall(each.read_text("utf-8"))}
    for folder in (LUA, LUA / "parts")
    for each in folder.iterdir()
    if each.is_file()
}
# Tried with pcall: without them the verb goes on.
BORNE = {"info", "hincrby", "xadd", "hlen"}
# enqueue.lua calls what was recorded by the name that it is given: see its head.
RECORDED = {"lpush", "publish", "pexpire"}
TO_RUN_SCRIPTS = {"eval", "evalsha"}
# What kombu's declarations and routing call; which of them, its versions disagree on.
OF_KOMBU = {"exec", "llen", "multi", "ping", "sadd", "smembers"}
SECRET = "s3cr3t"
SHORT = {
    "redlock_beat_namespace": "shop",
    "redlock_beat_socket_timeout": 0.2,
    "redlock_beat_poll": 0.02,
    "redlock_beat_hold_down": 0.3,
}
NOT_GRANTED = {"config|get", "client|setinfo", "info"}  # asked, and done without


def commands(user):
    """The commands that a line grants, INFO without its argument."""
    words = [word for word in LINES[user].split() if word.startswith("+")]
    assert words == sorted(words), f"the rights of {user} are not in their order"
    assert "+info|replication" in words or user == "worker"
    return {word[1:].removesuffix("|replication") for word in words}


@pytest.fixture(scope="module", params=KINDS)
def server(request):
    with Server(binary=binary_of(request.param)) as server:
        yield server


@pytest.fixture
def admin(server):
    with server.client() as client:
        client.flushall()
        client.execute_command("ACL LOG RESET")
        client.config_resetstat()
        yield client


def entered_by(server, user):
    return server.url.replace("redis://", f"redis://{user}:{SECRET}@")


def let_in(admin, user, *changes):
    """Make the user as the page does, and change their rights."""
    line = LINES[user].replace("PASSWORD", SECRET)
    admin.execute_command(*f"ACL SETUSER {user} {line}".split(), *changes)


def refused(admin):
    return {each["object"] for each in admin.acl_log()} - NOT_GRANTED


def used(admin):
    return {name.removeprefix("cmdstat_") for name in admin.info("commandstats")}


def test_the_page_names_the_commands_of_the_scripts_and_no_other():
    all_verbs = set().union(TO_RUN_SCRIPTS, *IN_SCRIPTS.values())
    but_enqueue = (names for script, names in IN_SCRIPTS.items() if script != "enqueue.lua")
    wanted = {
        "ticks": set().union(TO_RUN_SCRIPTS, *but_enqueue),
        "beat": all_verbs | RECORDED | OF_KOMBU,
    }
    for user, names in wanted.items():
        granted = commands(user)
        assert sorted(names - granted) == [], f"the rights of {user} lack these"
        assert sorted(granted - names) == [], f"the rights of {user} have these in excess"


def test_the_ledger_alone_needs_what_the_page_says(server, admin):
    let_in(admin, "ticks")
    with NodeHere(*places(server, "ticks"), **SHORT) as node:
        node.go_on()
    assert refused(admin) == set()


def test_the_ledger_and_the_broker_need_what_the_page_says(server, admin):
    let_in(admin, "beat")
    with NodeHere(*places(server, "beat"), **SHORT) as node:
        node.go_on()
    assert admin.llen("celery") == 2
    assert refused(admin) == set()


def without(server, admin, user, change, caplog):
    """Run a node without some rights until the server has refused it; return what it said."""
    admin.flushall()
    admin.script_flush()
    admin.execute_command("ACL LOG RESET")
    caplog.clear()
    caplog.set_level("DEBUG", "celery_redlock_beat")  # where another trouble was told first
    let_in(admin, user, *change)
    with NodeHere(*places(server, user), **SHORT) as node:
        node.pass_until(lambda: node.sent > 5 or refused(admin))
        node.pass_for(0.05)  # until it has told
    assert refused(admin), f"{user} can do without {change}"
    assert SECRET not in caplog.text
    return caplog.text


def places(server, user):
    """The ledger's URL and the broker's, for a user of the ledger alone or of both."""
    url = entered_by(server, user)
    return (url, "memory://") if user == "ticks" else (None, url)


@pytest.mark.slow
@pytest.mark.parametrize("user", ["ticks", "beat"])
def test_each_of_the_commands_is_needed_and_the_log_says_what_is_missing(
    server, admin, user, caplog
):
    let_in(admin, user)
    with NodeHere(*places(server, user), **SHORT) as node:
        node.go_on()
    known = commands("ticks") if user == "beat" else {"info"}
    reached = (commands(user) & used(admin)) - known
    assert len(reached) >= (5 if user == "beat" else 15)
    for name in sorted(reached):
        said = without(server, admin, user, [f"-{name}"], caplog)
        if name not in OF_KOMBU | BORNE:
            assert "the server forbids our user a command or a key" in said
            assert "+evalsha" in said
        if "has no permissions" in said:
            assert f"'{name}'" in said, "the server names it, and so do we"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "keys"),
    [
        ("ticks", []),
        ("beat", ["~celery*", "~_kombu*"]),
        ("beat", ["~{redlock:shop}:*", "~_kombu*"]),
    ],
)
def test_each_of_the_keys_is_needed_and_the_log_says_what_is_missing(
    server, admin, user, keys, caplog
):
    said = without(server, admin, user, ["resetkeys", *keys], caplog)
    assert "forbids our user" in said or "ermission" in said


def test_without_info_it_goes_on(server, admin):
    let_in(admin, "ticks", "-info")
    with NodeHere(*places(server, "ticks"), **SHORT) as node:
        node.go_on()
    assert refused(admin) <= {"info"}


def also(what):
    """The rights that the page adds in a sentence."""
    (words,) = re.findall(rf"{what}[^`]*needs `([^`]+)`", PAGE.read_text("utf-8"))
    return words.split()


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_cluster_the_user_of_the_ledger_needs_what_the_page_adds(kind):
    with Cluster(binary_of(kind), replicas=False) as cluster:
        for node in cluster.masters:
            with node.client() as admin:
                let_in(admin, "ticks", *also("In a Cluster"))
        url = f"redis+cluster://ticks:{SECRET}@{cluster.hosts}"
        with NodeHere(url, **SHORT) as node:
            node.go_on()
        slot, ledger = slot_of("shop"), ledger_at(url, **SHORT)
        owner = cluster.owner(slot)
        target = next(each for each in cluster.masters if each is not owner)
        source = cluster.begin_move(slot, target)
        cluster.move_keys(slot, source, target)
        with pytest.raises(LedgerUnavailable, match="is moving our keys"):
            ledger.claim([])
        for node in cluster.masters:
            with node.client() as admin:
                assert refused(admin) == set()
                let_in(admin, "ticks")
        with pytest.raises(LedgerUnavailable, match="forbids our user"):
            ledger_at(url, **SHORT).claim([])


def test_the_sentinels_want_the_right_that_the_page_names():
    with SentinelTrio() as trio:
        url = f"redis+sentinel://{trio.hosts}/mymaster?sentinel_username=w&sentinel_password=x"
        for sentinel in trio.sentinels:
            with sentinel.client() as admin:
                admin.execute_command("ACL", "SETUSER", "w", "on", ">x", *also("Sentinel's own"))
        with NodeHere(url, **SHORT) as node:
            node.go_on()
        for sentinel in trio.sentinels:
            with sentinel.client() as admin:
                admin.execute_command("ACL", "SETUSER", "w", "reset", "on", ">x")
        with pytest.raises(LedgerUnavailable, match=r"sentinel\|masters"):
            ledger_at(url, **SHORT).claim([])


@pytest.mark.slow
def test_beat_and_a_worker_have_users_of_their_own_and_recover(server, admin, tmp_path):
    for user in ("beat", "worker"):
        let_in(admin, user, "~{redlock:proj}:*" if user == "beat" else f"~{RUNS}")
    own = 'import os\napp.conf.broker_url = os.environ.get("BROKER") or app.conf.broker_url\n'
    config = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2}
    recorded = {"schedule": every_second(FIVE, "proj.record"), "queue": RUNS}
    trial = Trial(
        tmp_path,
        server,
        url=entered_by(server, "beat"),
        config=config,
        extra=RECORD + own,
        nodes=1,
        **recorded,
    )
    worker = WorkerNode(tmp_path, env={"BROKER": entered_by(server, "worker")})
    with trial, worker:
        trial.go_on(1)
        trial.wait_for_quiet()
        admin.flushall()
        trial.resumed_after(trial.now())
        trial.go_on(1)
        account = trial.conclude(law=False, exact=False, patience=2)
        assert worker.alive
    assert account.faults_but("lost") == {}
    assert refused(admin) == set()
