#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs MPI programs over two hosts (tests/lib/two_hosts.py), and injects faults between them."""

import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from lib import mpi
from lib.slowness import within
from lib.two_hosts import TwoHosts

# FI_TCAM_NET_TIMEOUT in seconds; tests take the link down for longer.
TIMEOUT = 3


def far(hosts, place, host, *words, program="far", **variables):
    """Starts a client of tests/fabric on a host. Returns its process."""
    variables = {"FI_TCAM_NET": "tcp", "FI_TCAM_NET_TIMEOUT": str(TIMEOUT)} | variables
    provider = str(mpi.PROVIDER)
    settings = {"FI_PROVIDER_PATH": provider, "FI_PROVIDER": "tcam"} | variables
    settings = [f"{name}={value}" for name, value in settings.items()]
    command = ["env", *settings, place / program, place, *words]
    return subprocess.Popen(
        hosts.on(host, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def expect(client, text, code, limit):
    """Checks that the client ends in time, with this exit code and this text in its last line. Returns
    the seconds until its end, and its error output."""
    start = time.monotonic()
    try:
        out, err = client.communicate(timeout=within(limit))
    except subprocess.TimeoutExpired:
        client.kill()
        out, err = client.communicate()
        raise AssertionError(f"no end within {within(limit)} s: {out}{err}") from None
    client.out = out
    client.last = last = (out.splitlines() or [""])[-1]
    assert text in last and client.returncode == code, f"{client.returncode}: {out}{err}"
    return time.monotonic() - start, err


def met(client):
    line = client.stdout.readline()
    assert line.endswith(": met\n"), line + client.stderr.read()


def goes_on(hosts, place, seconds):
    """Starts two other clients, which the fault must not affect. Returns both."""
    one = far(hosts, place, 1, "third", "fourth", "lead", str(seconds))
    return one, far(hosts, place, 2, "fourth", "third", "follow")


def a_process_dies(hosts, place):
    others = goes_on(hosts, place, 3)
    dead, waits = (
        far(hosts, place, 2, "dead", "waits", "hold"),
        far(hosts, place, 1, "waits", "dead", "wait"),
    )
    met(waits)
    subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* dead waits"]), check=True)
    dead.wait()
    seconds, _ = expect(waits, "error 103", 3, 5)
    for other in others:
        expect(other, "messages", 0, 20)
    return f"noticed after {seconds:.1f} s"


def sends_to_the_dead_fail(hosts, place):
    """After a connection is lost, the next sends fail instead of completing."""
    dead = far(hosts, place, 2, "dead", "none", "sink")
    pours = far(hosts, place, 1, "pours", "dead", "pour")
    met(pours)
    time.sleep(0.3)
    subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* dead none"]), check=True)
    dead.wait()
    seconds, log = expect(pours, "after a send was taken", 3, 1)
    last = pours.last.split("error ")[1].split(", ")
    assert last[0] in ("103", "111"), pours.last + log
    return f"error {last[0]} after {seconds * 1e3:.0f} ms"


def long_messages_go_both_ways(hosts, place):
    told = []
    for seal in ("off", "on"):
        start = time.monotonic()
        ends = [
            far(hosts, place, host, f"{seal}{host}", f"{seal}{3 - host}", "both", FI_TCAM_NET_SEAL=seal)
            for host in (1, 2)
        ]
        for end in ends:
            expect(end, "40 messages", 0, 30)
        told.append(f"seal {seal} {time.monotonic() - start:.1f} s")
    return ", ".join(told)


DEATHS = 24


def many_die_in_the_midst_of_messages(hosts, place):
    sink = far(hosts, place, 1, "sink", "none", "sink")
    for death in range(0, DEATHS, 3):
        # Two senders of long messages, one of short messages.
        floods = [
            far(hosts, place, 2, f"flood{death + at}", "sink", "flood" if at else "pour")
            for at in range(3)
        ]
        for flood in floods:
            met(flood)
        time.sleep(0.1)
        subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* flood"]), check=True)
        for flood in floods:
            flood.wait()
    last = far(hosts, place, 2, "last", "sink", "last")
    expect(last, "messages", 0, 30)
    expect(sink, "messages", 0, 30)
    return f"{DEATHS} of them, others go on"


def a_host_dies(hosts, place):
    dead, waits = (
        far(hosts, place, 2, "dead", "waits", "hold"),
        far(hosts, place, 1, "waits", "dead", "wait"),
    )
    met(waits)
    hosts.link("down")
    subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* dead waits"]), check=True)
    dead.wait()
    seconds, _ = expect(waits, "error 103", 3, TIMEOUT + 6)
    hosts.link("up")
    return f"noticed after {seconds:.1f} s"


def messages_of_all_kinds_between_all(hosts, place):
    """Checks every byte and the order: one to four segments, injected or not, with reads and
    writes."""
    seed = int(time.time()) % 100_000
    for seal in ("off", "on"):
        directory = place / f"seal-{seal}"
        directory.mkdir()
        shutil.copy(place / "chaos", directory)
        ends = [
            far(hosts, directory, 1 + number % 2, str(number), "4", str(seed), "80", str(4 << 20),
                program="chaos", FI_TCAM_NET_SEAL=seal, FI_TCAM_NET_TIMEOUT="10")
            for number in range(4)
        ]  # fmt: skip
        for end in ends:
            expect(end, "messages", 0, 60)
    return f"seed {seed}"


def a_host_vanishes_while_it_sends(hosts, place):
    sink = far(hosts, place, 1, "sink", "none", "sink")
    floods = [far(hosts, place, 2, f"flood{at}", "sink", "flood") for at in range(12)]
    for flood in floods:
        met(flood)
    hosts.link("down")
    subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* flood"]), check=True)
    for flood in floods:
        flood.wait()
    time.sleep(TIMEOUT + 4)
    hosts.link("up")
    expect(far(hosts, place, 2, "last", "sink", "last"), "messages", 0, 30)
    expect(sink, "messages", 0, 30)
    return "others go on"


def they_stop_in_the_midst_of_messages(hosts, place):
    """Peers stop after they have begun to send, like ranks that compute. The receiver serves other peers
    meanwhile."""
    sink = far(hosts, place, 1, "sink", "none", "sink")
    floods = [far(hosts, place, 2, f"flood{at}", "sink", "flood") for at in range(12)]
    for flood in floods:
        met(flood)
    subprocess.run(hosts.on(2, ["pkill", "-STOP", "-f", "far .* flood"]), check=True)
    seconds, _ = expect(far(hosts, place, 2, "last", "sink", "last"), "messages", 0, 5)
    subprocess.run(hosts.on(2, ["pkill", "-KILL", "-f", "far .* flood"]), check=True)
    for flood in floods:
        flood.wait()
    expect(sink, "messages", 0, 30)
    return f"others take {seconds:.1f} s"


def a_transmit_context_closes_alone(hosts, place):
    one = far(hosts, place, 1, "one", "other", "scalable", program="closed_tx")
    other = far(hosts, place, 2, "other", "one", "plain", program="closed_tx")
    for end in (one, other):
        expect(end, "3 messages", 0, 30)
    return "the receive context goes on"


def a_child_that_is_forked_breaks_nothing(hosts, place):
    lead = far(hosts, place, 1, "lead", "follow", "forks", "1")
    follow = far(hosts, place, 2, "follow", "lead", "follow")
    for end in (lead, follow):
        expect(end, "messages", 0, 30)
    return "messages go on"


def the_link_is_down_for_a_while(hosts, place):
    lead = far(hosts, place, 1, "lead", "follow", "lead", str(within(1) + 6), FI_TCAM_NET_TIMEOUT="10")
    follow = far(hosts, place, 2, "follow", "lead", "follow", FI_TCAM_NET_TIMEOUT="10")
    time.sleep(within(1))
    hosts.link("down")
    time.sleep(3)
    hosts.link("up")
    for end in (lead, follow):
        expect(end, "messages", 0, 30)
    return "no error"


def the_link_is_down_for_good(hosts, place):
    lead = far(hosts, place, 1, "lead", "follow", "lead", str(within(60)))
    follow = far(hosts, place, 2, "follow", "lead", "follow")
    time.sleep(within(1))
    hosts.link("down")
    start = time.monotonic()
    for end in (lead, follow):
        expect(end, "error 103", 3, TIMEOUT + 8)
    hosts.link("up")
    return f"noticed after {time.monotonic() - start:.1f} s"


def a_process_that_is_stopped_lives(hosts, place):
    lead = far(hosts, place, 1, "lead", "follow", "lead", str(within(1) + 7))
    follow = far(hosts, place, 2, "follow", "lead", "follow")
    time.sleep(within(1))
    name = "far .* follow lead"
    subprocess.run(hosts.on(2, ["pkill", "-STOP", "-f", name]), check=True)
    time.sleep(TIMEOUT + 2)
    subprocess.run(hosts.on(2, ["pkill", "-CONT", "-f", name]), check=True)
    for end in (lead, follow):
        expect(end, "messages", 0, 30)
    return f"for {TIMEOUT + 2} s"


def who_waits_sleeps(hosts, place):
    """The waiting process sleeps until a message arrives over the network, and no longer."""
    # Only providers of libfabric 2.x have descriptors to sleep on.
    library = {"LD_LIBRARY_PATH": str(mpi.VENVS / "mpich" / "lib" / "mpich")}
    told = []
    for progress, settings in (("manual", {}), ("auto", {"AUTO_PROGRESS": "1"})):
        lead = far(hosts, place, 1, "lead", "doze", "slow", str(within(2)), **library)
        doze = far(hosts, place, 2, "doze", "lead", "doze", **settings, **library)
        expect(lead, "messages", 0, 30)
        expect(doze, "messages", 0, 30)
        messages = int(lead.last.split()[1])
        woke, busy = map(int, re.search(r"woke (\d+) times, busy for (\d+)", doze.out).groups())
        # A process that polls wakes about 10,000 times a second. Sleeps also end for periodic work,
        # so that fewer messages in the same time do not mean fewer wakeups.
        expected = max(messages, 48 * within(2))
        asleep = messages > 40 and woke < 20 * expected and busy < max(1000, 10 * messages)
        assert asleep, f"{progress}: {messages} messages, {doze.out}"
        told.append(f"{woke} times and {busy} ms for {messages} messages ({progress})")
        for name in ("lead", "doze"):
            (place / name).unlink()
    return ", ".join(told)


def refused(hosts, place, theirs, text, peer="other", **ours):
    """Checks that a client that connects to another one is refused, and logs `text` as the reason.
    Returns the log of the other client."""
    theirs |= {"FI_LOG_LEVEL": "warn"}
    other = far(hosts, place, 2, "other", "none", "sink", **theirs)
    _, log = expect(far(hosts, place, 1, "one", peer, "lead", "1", **ours), "error 13", 3, 10)
    assert text in log, log
    other.kill()
    return other.communicate()[1]


def another_job_is_refused(hosts, place):
    theirs = {"FI_TCAM_JOB_KEY": "that"}
    log = refused(hosts, place, theirs, "FI_TCAM_JOB_KEY", FI_TCAM_JOB_KEY="this")
    assert "FI_TCAM_JOB_KEY" in log, log
    return "EACCES"


def a_name_is_needed_to_connect(hosts, place):
    """Without a job key, the name of an endpoint contains the secret that a peer must present."""
    other = far(hosts, place, 2, "other", "none", "sink")
    while not (place / "other").exists():
        time.sleep(0.01)
    name = (place / "other").read_bytes()
    (place / "bare").write_bytes(name[:8] + bytes(8))
    (place / "guessed").write_bytes(name[:15] + bytes([name[15] ^ 1]))
    for peer, text in (("bare", "FI_TCAM_NET_OPEN"), ("guessed", "secret")):
        _, log = expect(far(hosts, place, 1, peer + "-one", peer, "lead"), "error 13", 3, 10)
        assert text in log, log
    expect(far(hosts, place, 1, "last", "other", "last"), "messages", 0, 30)
    expect(other, "messages", 0, 30)
    everybody = {"FI_TCAM_NET_OPEN": "yes"}
    other = far(hosts, place, 2, "open", "none", "sink", **everybody)
    while not (place / "open").exists():
        time.sleep(0.01)
    assert (place / "open").read_bytes()[8:] == bytes(8)
    expect(far(hosts, place, 1, "last", "open", "last", **everybody), "messages", 0, 30)
    expect(other, "messages", 0, 30)
    return "EACCES without it"


def an_impostor_is_found_when_the_name_comes(hosts, place):
    """A process that has only the name of the sink sends as the endpoint `real`, and stays or ends.
    Then the sink inserts the name of that endpoint, and receives only from it."""
    for how in ("stay", "end"):
        sink_file, real_file, named_file, door_file = (
            place / f"{end}-{how}" for end in ("sink", "real", "named", "door")
        )
        sink = far(hosts, place, 1, sink_file.name, named_file.name, "named")
        real = far(hosts, place, 2, real_file.name, door_file.name, "last")
        while not (sink_file.exists() and real_file.exists()):
            time.sleep(0.01)
        words = [sink_file.read_bytes().hex(), real_file.read_bytes().hex(), how]
        command = [sys.executable, mpi.ROOT / "tests" / "lib" / "impostor.py", *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(hosts.on(2, command), **pipes) as impostor:
            assert impostor.stdout.readline() == "sent\n"
            met(sink)
            shutil.copy(real_file, named_file)
            assert sink.stdout.readline().endswith(": named\n")
        shutil.copy(sink_file, door_file)
        expect(real, "messages", 0, 30)
        # The messages of the real endpoint, and no other.
        expect(sink, "90 messages", 0, 30)
    return "no message of it is received"


def both_seal_or_none(hosts, place):
    log = refused(hosts, place, {"FI_TCAM_NET_SEAL": "on"}, "FI_TCAM_NET_SEAL")
    assert "FI_TCAM_NET_SEAL" in log, log
    unknown = far(hosts, place, 1, "one", "other", "lead", FI_TCAM_NET="sockets")
    _, log = expect(unknown, "", 1, 10)
    assert "FI_TCAM_NET=sockets" in log and "auto, off, tcp" in log, log
    return "EACCES"


KNOCK = """
import os, socket, sys, time
address = (sys.argv[1], int(sys.argv[2]))
held = []
for what in (b"", b"GET / HTTP/1.1\\r\\n\\r\\n", os.urandom(4096), b"\\x00\\x00", b"\\xff\\xff\\x01",
             b"\\x09\\x00\\x02" + bytes(8), b"\\x30\\x00\\x01" + bytes(100),
             b"\\x02\\x00\\x05\\x00" * 10000, b"\\x09\\x00\\x04" + bytes(8)):
    for _ in range(30):
        try:
            knock = socket.create_connection(address, timeout=2)
            knock.sendall(what)
            held.append(knock)
        except OSError:
            pass
time.sleep(1)
"""


def garbage_on_the_port(hosts, place):
    lead = far(hosts, place, 1, "lead", "follow", "lead", "4")
    follow = far(hosts, place, 2, "follow", "lead", "follow")
    card = place / "follow"
    while not card.exists():
        time.sleep(0.01)
    name = card.read_bytes()
    port = int.from_bytes(name[2:4], "big")
    command = [sys.executable, "-c", KNOCK, socket.inet_ntoa(name[4:8]), str(port)]
    subprocess.run(hosts.on(1, command), check=True, timeout=within(30))
    for end in (lead, follow):
        expect(end, "messages", 0, 30)
    return "nothing but lines in the log"


# 1,500 connections at a time: half send nothing, half send only Start. Closed connections are replaced.
STRANGERS = """
import socket, sys, time
address = (sys.argv[1], int(sys.argv[2]))
start = bytes.fromhex("1900" "01" "0500656e6d616374") + bytes(16)
held, end, told = [], time.time() + 600, False
while time.time() < end:
    while len(held) < 1500:
        try:
            knock = socket.create_connection(address, timeout=2)
            knock.setblocking(False)
            if len(held) % 2:
                knock.send(start)
        except ConnectionResetError:
            continue
        except OSError:
            sys.exit()
        held.append(knock)
    if not told:
        print("here", flush=True)
        told = True
    time.sleep(0.01)
    for knock in list(held):
        try:
            closed = not knock.recv(1000)
        except BlockingIOError:
            closed = False
        except OSError:
            closed = True
        if closed:
            knock.close()
            held.remove(knock)
"""


def strangers_keep_nobody_out(hosts, place):
    sink = far(hosts, place, 1, "sink", "none", "sink")
    while not (place / "sink").exists():
        time.sleep(0.01)
    name = (place / "sink").read_bytes()
    port = int.from_bytes(name[2:4], "big")
    command = [sys.executable, "-c", STRANGERS, socket.inet_ntoa(name[4:8]), str(port)]
    strangers = subprocess.Popen(hosts.on(2, command), stdout=subprocess.PIPE, text=True)
    try:
        assert strangers.stdout.readline() == "here\n"
        seconds, _ = expect(far(hosts, place, 2, "last", "sink", "last"), "messages", 0, 8)
        expect(sink, "messages", 0, 8)
    finally:
        strangers.kill()
        strangers.wait()
    return f"a newcomer takes {seconds:.1f} s"


# Many connections a second from an address, none of which sends anything.
FLOOD = """
import collections, contextlib, socket, struct, sys, time
source, address = (sys.argv[1], 0), (sys.argv[2], int(sys.argv[3]))
held, begun = collections.deque(), time.monotonic()
rate = int(sys.argv[4])
for number in range(rate * 600):
    knock = socket.socket()
    knock.setblocking(False)
    # The end of a connection leaves no port in TIME_WAIT.
    knock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        knock.bind(source)
        knock.connect(address)
    held.append(knock)
    if len(held) > 6000:
        held.popleft().close()
    if number == 2 * rate:
        print("here", flush=True)
    time.sleep(max(0, begun + number / rate - time.monotonic()))
"""


def strangers_keep_nobody_from_a_rank_that_computes(hosts, place):
    """The rank polls for 5 ms and computes for a second, in turns."""
    name_file, stranger = place / "seldom", "10.99.0.3"
    seldom = far(hosts, place, 1, name_file.name, "none", "seldom", "1", FI_TCAM_NET_TIMEOUT="10")
    while not name_file.exists():
        time.sleep(0.01)
    name = name_file.read_bytes()
    words = [stranger, socket.inet_ntoa(name[4:8]), str(int.from_bytes(name[2:4], "big")), "2500"]
    hosts.ip(2, f"addr add {stranger}/24 dev veth2")
    flood = subprocess.Popen(
        hosts.on(2, [sys.executable, "-c", FLOOD, *words]), stdout=subprocess.PIPE, text=True
    )
    try:
        assert flood.stdout.readline() == "here\n"
        one = far(hosts, place, 2, "one", name_file.name, "one", FI_TCAM_NET_TIMEOUT="10")
        seconds, _ = expect(one, "1 messages", 0, 20)
        expect(seldom, "1 messages", 0, 20)
    finally:
        flood.kill()
        flood.wait()
        hosts.ip(2, f"addr del {stranger}/24 dev veth2")
    return f"a newcomer takes {seconds:.1f} s"


MEMBERS = 128


def many_peers_of_one(hosts, place):
    ends = [
        far(hosts, place, host, what, str(MEMBERS), program="crowd")
        for host, what in ((1, "serve"), (2, "join"))
    ]
    start = time.monotonic()
    for end in ends:
        expect(end, "messages", 0, 150)
    told = ends[0].last.split(", ", 1)[1]
    return f"{MEMBERS} endpoints, {told} ({time.monotonic() - start:.0f} s)"


def a_message_arrives_when_it_comes(hosts, place):
    """Two processes of host 2 send in the order of a plan, which the receiver on host 1 checks."""
    there = " ".join(hosts.on(2, []))
    receiver = far(hosts, place, 1, program="arrival", HOST_OF_SENDERS=there)
    expect(receiver, "seed", 0, 150)
    return receiver.last


FAULTS = [
    a_message_arrives_when_it_comes,
    many_peers_of_one,
    a_process_dies,
    sends_to_the_dead_fail,
    long_messages_go_both_ways,
    messages_of_all_kinds_between_all,
    many_die_in_the_midst_of_messages,
    a_host_dies,
    a_host_vanishes_while_it_sends,
    they_stop_in_the_midst_of_messages,
    a_transmit_context_closes_alone,
    a_child_that_is_forked_breaks_nothing,
    the_link_is_down_for_a_while,
    the_link_is_down_for_good,
    a_process_that_is_stopped_lives,
    who_waits_sleeps,
    another_job_is_refused,
    a_name_is_needed_to_connect,
    an_impostor_is_found_when_the_name_comes,
    both_seal_or_none,
    garbage_on_the_port,
    strangers_keep_nobody_out,
    strangers_keep_nobody_from_a_rank_that_computes,
]


def run_faults(hosts, names):
    """Runs each fault in a separate directory. Returns how many failed."""
    failed = 0
    for fault in [fault for fault in FAULTS if not names or fault.__name__ in names]:
        place = pathlib.Path(tempfile.mkdtemp(prefix="tcam-far-"))
        for program in ("far", "crowd", "closed_tx", "chaos", "arrival"):
            source = mpi.ROOT / "tests" / "fabric" / f"{program}.c"
            compiler = ["cc", "-O1", "-Wall", "-Wextra", "-Wno-unused-function"]
            subprocess.run([*compiler, "-o", place / program, source, "-lfabric"], check=True)
        try:
            print(f"{fault.__name__.replace('_', ' ')}: {fault(hosts, place)}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{fault.__name__.replace('_', ' ')}: FAILED: {error}", flush=True)
            hosts.link("up")
            subprocess.run(["pkill", "-KILL", "-f", str(place)], check=False)
        shutil.rmtree(place, ignore_errors=True)
    # Later processes have removed the files of the killed ones.
    left = [path for host in (1, 2) for path in hosts.shm(host) if "segment" in path]
    if left and not names:
        print(f"left in /dev/shm: {left}")
        failed += 1
    return failed


# MPICH spreads communicators and windows over its VCIs.
WITH_VCIS = ["alltoall", "threads", "contexts", "onesided"]


def run_programs(arguments, hosts):
    """Runs the MPI programs. Returns how many runs failed."""
    failed = 0
    plan = [(name, each, arguments.entries, []) for name in arguments.mpi for each in arguments.each]
    # 16 ranks of Open MPI take four seconds to start on two cores: use one size.
    plan = [
        (name, each, entries[:1] if name != "mpich" and each > 4 else entries, more)
        for name, each, entries, more in plan
    ]
    if not arguments.set:
        plan.append((arguments.mpi[0], min(arguments.each), [7], ["net_seal=on", "poll=dynamic:10"]))
    for name, each, all_entries, more in plan:
        failed += run_plan(arguments, hosts, name, each, all_entries, more)
    if "mpich" in arguments.mpi and not arguments.set:
        some = [app for app in arguments.app if app in WITH_VCIS]
        settings = argparse.Namespace(**(vars(arguments) | {"app": some}))
        failed += run_plan(settings, hosts, "mpich", min(arguments.each), [7], [], vcis=4)
    return failed


def run_plan(arguments, hosts, name, each, all_entries, more, vcis=1):
    """Runs all programs on `each` ranks per host, at these table sizes. Returns how many runs
    failed."""
    failed = 0
    programs = mpi.build(name)
    settings = argparse.Namespace(**(vars(arguments) | {"set": arguments.set + more, "vcis": vcis}))
    # Hydra passes the environment on.
    before = hosts.on(1, ["env", f"MPIR_CVAR_CH4_NUM_VCIS={vcis}"])

    def launch(name, ranks):
        return hosts.launcher(name, mpi.MPIS[name], ranks // 2)

    start = time.monotonic()
    several = [f"{vcis} VCIs"] if vcis > 1 else []
    print(", ".join([f"{name}, 2 x {each} ranks", *several, *settings.set]), end=":", flush=True)
    for app in arguments.app:
        if (name, app) in mpi.SKIPPED:
            continue
        results = [
            mpi.run(settings, name, programs / app, 2 * each, entries, launch, before)
            for entries in all_entries
        ]
        good = sum(not result.why for result in results)
        if len({result.output for result in results if not result.why}) > 1:
            print(f"\n{app}: the output depends on the table size")
            good = 0
        failed += len(results) - good
        print(f" {app if good == len(results) else app.upper() + '-FAILED'}", end="", flush=True)
    print(f" ({time.monotonic() - start:.0f} s)", flush=True)
    return failed


def run_requests(arguments, hosts):
    """Runs two programs with net_eager_size=0, so that receivers request all messages larger than a slot.
    Returns how many runs failed."""
    settings = argparse.Namespace(**(vars(arguments) | {"app": ["storm", "large"]}))
    return run_plan(settings, hosts, arguments.mpi[0], 1, [4096], ["net_eager_size=0", "check=on"])


def run_mpi4py(arguments, hosts, tests):
    """Runs mpi4py's point-to-point tests on 2 x 2 ranks. Returns 1 if they failed."""
    name, log = arguments.mpi[0], mpi.TARGET / "mpi4py-hosts.log"
    binaries = mpi.MPIS[name]
    command = [
        str(arguments.tcam), "run", "--prq=64", "--umq=64", f"--mpi={name}", "--",
        *hosts.launcher(name, binaries, 2), str(binaries / "python"), str(tests / "main.py"), "-v",
        "-i", "test_p2p_",
    ]  # fmt: skip
    print(f"{name}, 2 x 2 ranks, mpi4py:", end=" ", flush=True)
    code = mpi.bounded(hosts.on(1, command), log, 240)
    ran = [line for line in log.read_text().splitlines() if line.startswith("Ran ")]
    if code == 0 and ran:
        print(ran[0].split(" in ")[0].removeprefix("Ran "), "passed", flush=True)
        return 0
    print(f"FAILED, see {log}", flush=True)
    subprocess.run(["tail", "-n", "15", log], check=False)
    return 1


def run_polling(arguments, hosts):
    """Runs the program of `papers/reproduce.sh polling` briefly. Returns how many runs failed."""
    failed = 0
    words = "looks 51 cost 0 1 latency 4 discovery 10 bandwidth 4096 overlap 4096 10".split()
    for name in arguments.mpi:
        log = mpi.TARGET / f"polling-{name}.log"
        command = [
            str(arguments.tcam), "run", f"--mpi={name}", "--set=poll=static:50", "--set=idle=spin",
            "--", *hosts.launcher(name, mpi.MPIS[name], (2, 1)),
            str(mpi.build(name) / "polling"), *words,
        ]  # fmt: skip
        print(f"{name}, 2 and 1 ranks, polling:", end=" ", flush=True)
        start = time.monotonic()
        code = mpi.bounded(hosts.on(1, command), log, arguments.timeout)
        lines = log.read_text().splitlines()
        said = {line.split()[1] for line in lines if line.startswith("polling mode=")}
        modes = {f"mode={mode}" for mode in ("cost", "latency", "discovery", "bandwidth", "overlap")}
        if code == 0 and said == modes and "polling: ok ranks=3 near=1 far=1" in lines:
            print(f"ok ({time.monotonic() - start:.0f} s)", flush=True)
            continue
        failed += 1
        print(f"FAILED, see {log}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", type=mpi.words(list(mpi.MPIS)), default=["mpich", "openmpi5"])
    parser.add_argument("--app", type=mpi.words(mpi.APPS), default=mpi.APPS)
    parser.add_argument("--each", type=mpi.numbers, default=[2, 8], help="ranks of a host")
    parser.add_argument("--entries", type=mpi.numbers, default=[7, 0, 4096], help="table sizes")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, as of tcam run")
    # Polling threads that take turns may occupy two cores for up to a minute.
    parser.add_argument("--timeout", type=float, default=200, help="seconds for one run")
    parser.add_argument("--tcam", type=pathlib.Path, default=mpi.TCAM)
    parser.add_argument("--fault", action="append", default=[], help="only these faults")
    parser.add_argument("--mpi4py", type=pathlib.Path, help="the directory of mpi4py's tests")
    parts = ["programs", "tools", "faults"]
    parser.add_argument("--only", type=mpi.words(parts), default=parts, help="programs, tools, faults")
    arguments = parser.parse_args()
    if why := TwoHosts.why_not():
        print(f"SKIPPED, two hosts: {why}")
        return 0
    # Threads that contact a peer for the first time at once wait forever in PMIx_Get of Open MPI
    # 5.0.11, with libfabric's sockets provider as well. Here MPI_Init contacts all peers.
    os.environ["OMPI_MCA_mpi_add_procs_cutoff"] = "1024"
    failed = 0
    with TwoHosts() as hosts:
        if "programs" in arguments.only:
            failed += run_programs(arguments, hosts)
        if "tools" in arguments.only:
            failed += run_requests(arguments, hosts)
            failed += run_polling(arguments, hosts)
        if arguments.mpi4py:
            failed += run_mpi4py(arguments, hosts, arguments.mpi4py)
        if "faults" in arguments.only:
            failed += run_faults(hosts, arguments.fault)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
