#!/usr/bin/env python3
"""Real agent programs on a model of our own: interrupted, limited, taken up again; and the built-in
systems, each to its end.

    scenarios.py ONWARD PROGRAMS [AGENT:SCENARIO...]

ONWARD is the binary, PROGRAMS a directory with the agent programs.
"""

import concurrent.futures
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from bench import ONWARD, WITHIN, Bench, until
from systems import agent_memory, conference, dotagent, pipeline, sdc


def plain(bench):
    """Runs to its end; what it spent is in the journal."""
    bench.onward("run", "w.yaml", "--yes")
    assert (bench.project / "over.txt").exists()
    assert "attempt.spent" in bench.text()


def refused_a_login(bench):
    """A key that is refused waits for a person, whatever the exit code; then it goes on."""
    bench.say("MODE", "login")
    bench.onward("run", "w.yaml", "--yes", code=(11,))
    assert '"auth"' in bench.text(), bench.text()
    bench.say("MODE", "ok")
    bench.onward("resume", "--yes")
    assert (bench.project / "over.txt").exists()


def killed_in_mid_turn(bench):
    """Killed with everything while the model speaks: the same session goes on, and is billed once."""
    bench.say("MODE", "hang")
    bench.start("run", "w.yaml", "--yes")
    until("the model to hang", lambda: (bench.model / "HANGING").exists())
    until("a session in the journal", bench.sessions)
    session = bench.sessions()[0]
    until("the session on disk", lambda: bench.has_written(session))
    bench.kill_all()
    bench.say("MODE", "ok")
    bench.onward("resume", "--yes")
    started = [it for it in bench.events() if "continues" in it and it.get("continues")]
    assert started, f"nothing was continued: {bench.log()}"
    assert set(bench.sessions()) == {session}, bench.sessions()


def killed_inside_a_tool(bench):
    """Killed while a tool runs: no process is left, and the tool has its effect once at most."""
    bench.say("TOOL", "echo began >> began.txt; sleep 600; echo ended >> began.txt")
    bench.say("MODE", "tool")
    child = bench.start("run", "w.yaml", "--yes")
    until("the tool", lambda: (bench.project / "began.txt").exists())
    child.kill()
    child.wait()
    # The engine is dead; its supervisor lives. It dies too, and the tool is on its own.
    for pid in bench.processes():
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"supervise" in command:
            os.kill(pid, signal.SIGKILL)
    bench.say("MODE", "ok")
    # Where the tool has written after the last sign of life, a person is asked.
    if bench.onward("resume", "--yes", code=(0, 16)) == 16:
        bench.onward("resume", "--yes", "--accept", "dirty-tree")
    until("no process of it", lambda: not bench.processes())
    began = bench.project / "began.txt"
    assert not began.exists() or began.read_text() == "began\n", began.read_text()


def parked_at_a_limit(bench):
    """A usage limit parks; before the reset a resume starts nothing; after it the session goes on."""
    bench.say("MODE", "limit")
    bench.say("RESET", str(int(time.time()) + 24 * 3600))
    bench.onward("run", "w.yaml", "--yes", code=(12,))
    requests = len(bench.read("LOG").splitlines())
    bench.onward("resume", "--yes", code=(12,))
    # The limit holds for another run too.
    bench.onward("run", "w.yaml", "--yes", code=(12,))
    assert len(bench.read("LOG").splitlines()) == requests, "the provider was asked in vain"
    bench.forget_limits()
    bench.say("RESET", str(int(time.time()) + 5))
    bench.onward("run", "w.yaml", "--yes", code=(12,))
    session = bench.sessions()[0]
    bench.say("MODE", "ok")
    # What the program tells: whole minutes, maybe.
    reset = next(it["resets_at"] for it in bench.events() if it.get("kind") == "limit.hit")
    reset = datetime.datetime.fromisoformat(reset.replace("Z", "+00:00")).timestamp()
    until("the reset", lambda: time.time() > reset)
    bench.onward("resume", "--yes", bench.events()[0]["run"])
    assert set(bench.sessions()) == {session}, bench.sessions()


def parked_in_place(bench):
    """With --wait the driver waits for the reset itself, and goes on in the same session."""
    bench.say("RESET", str(int(time.time()) + 10))
    bench.say("MODE", "limit")
    child = bench.start("run", "w.yaml", "--yes", "--wait")
    until("the limit in the journal", lambda: "limit.hit" in bench.text())
    bench.say("MODE", "ok")
    assert child.wait(timeout=WITHIN) == 0, bench.log()
    assert len(set(bench.sessions())) == 1, bench.sessions()
    assert "run.resumed" not in bench.text()


def costs_add_up(bench):
    """What is billed over a kill and a resume is what the program itself counts in the end."""
    killed_in_mid_turn(bench)
    spent = [it for it in bench.events() if it.get("kind") == "attempt.spent"]
    tokens = sum(it["input_tokens"] + it["cache_read_tokens"] for it in spent)
    assert tokens > 0 and tokens % 100 == 0, spent
    out = subprocess.run(
        [ONWARD, "status", "--cost", "--json"], cwd=bench.project, env=bench.env, check=True,
        capture_output=True,
    )
    bill = json.loads(out.stdout)["bill"]["steps"]["work"]
    assert bill["input_tokens"] == tokens, (bill, spent)
    requests = [it for it in bench.read("LOG").splitlines() if it.endswith(" ok")]
    assert tokens <= 100 * len(requests), (tokens, requests)


def handed_a_long_task(bench):
    """A task longer than an argument, in a worktree: the agent may read the file with it."""
    step = "{ id: work, agent: claude, worktree: true, permissions: read-only, prompt: '%s' }"
    text = "onward: 1\nname: w\nsteps:\n  - " + step % ("word " * 30000)
    (bench.project / "w.yaml").write_text(text)
    rule = {"when": r"the file (\S+): it is your task", "calls": [["Read", {"file_path": "{1}"}]]}
    bench.say("PLAY", json.dumps([rule]))
    bench.say("MODE", "play")
    bench.onward("run", "w.yaml", "--yes")
    assert len(bench.read("LOG").splitlines()) > 1, "nothing was read"


SCENARIOS = {
    "claude": [plain, refused_a_login, handed_a_long_task, costs_add_up, killed_inside_a_tool,
               parked_at_a_limit, parked_in_place, conference, agent_memory, dotagent, pipeline, sdc],
    "codex": [plain, refused_a_login, costs_add_up, killed_inside_a_tool, parked_at_a_limit],
    # At a limit it tries again for very long, and says nothing.
    "qwen": [plain, refused_a_login, costs_add_up, killed_inside_a_tool],
}


# Each has a project, a home and a model of its own; most of the time is spent waiting.
AT_ONCE = 3


def tried(agent, scenario):
    """Whether it went well; says so."""
    bench = Bench(agent)
    begin = time.monotonic()
    try:
        scenario(bench)
        word = "ok"
    except Exception as error:
        word = f"FAILED: {error}: {bench.log()}"
    finally:
        bench.end()
    took = time.monotonic() - begin
    print(f"{agent}: {scenario.__name__} ({took:.0f} s): {word}", flush=True)
    return word == "ok"


def main():
    wanted = sys.argv[3:]
    pairs = [(agent, it) for agent, scenarios in SCENARIOS.items() for it in scenarios]
    pairs = [it for it in pairs if not wanted or f"{it[0]}:{it[1].__name__}" in wanted]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        went_well = list(pool.map(lambda it: tried(*it), pairs))
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
