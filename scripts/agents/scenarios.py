#!/usr/bin/env python3
"""Real agent programs on a model of our own: interrupted, limited, taken up again.

    scenarios.py ONWARD PROGRAMS

ONWARD is the binary, PROGRAMS a directory with the agent programs. Nothing but the loopback is
spoken to, the home directory is empty and the keys are dummies.
"""

import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ONWARD, PROGRAMS = (pathlib.Path(it).resolve() for it in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
# Seconds after which a wait has failed: far beyond what a loaded machine takes.
WITHIN = 600


def until(what, condition):
    """Waits for a fact. Time only makes a wait that hangs fail."""
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {WITHIN} s for {what}")


class Bench:
    """A project with one workflow of one agent step, a home and a model."""

    def __init__(self, agent, permissions="full"):
        self.agent = agent
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="onward-agents-"))
        self.model, self.home, self.project = (self.root / it for it in ("model", "home", "project"))
        for path in (self.model, self.home, self.project):
            path.mkdir()
        self.engines = []
        self.server = subprocess.Popen([sys.executable, HERE / "stub_model.py", self.model])
        port = until("the model", lambda: (self.model / "PORT").exists()) and self.read("PORT")
        base = f"http://127.0.0.1:{port}"
        self.env = {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.home), "IS_SANDBOX": "1",
            "TZ": "UTC", "LANG": "C.UTF-8", "XDG_STATE_HOME": str(self.root / "state"),
            "ANTHROPIC_BASE_URL": base, "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "STUB_KEY": "dummy",
            "CLAUDE_CODE_OAUTH_TOKEN": "dummy",
        }
        if agent == "qwen":
            self.env.update(OPENAI_API_KEY="dummy", OPENAI_BASE_URL=f"{base}/v1", OPENAI_MODEL="stub")
            qwen = self.home / ".qwen"
            qwen.mkdir()
            auth = {"security": {"auth": {"selectedType": "openai"}}}
            (qwen / "settings.json").write_text(json.dumps(auth))
        codex = self.home / ".codex"
        codex.mkdir()
        (codex / "config.toml").write_text(
            'model = "stub"\nmodel_provider = "stub"\n[model_providers.stub]\nname = "stub"\n'
            f'base_url = "{base}/v1"\nenv_key = "STUB_KEY"\nwire_api = "responses"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
        )
        (self.project / "w.yaml").write_text(
            "onward: 1\nname: w\nsteps:\n"
            f"  - {{ id: work, agent: {agent}, prompt: Do it., permissions: {permissions} }}\n"
            "  - { id: after, run: echo over > over.txt, writes: [over.txt] }\n"
        )
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
        for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
            subprocess.run([*git, *args], cwd=self.project, check=True, env=self.env)

    def read(self, name):
        return (self.model / name).read_text()

    def say(self, name, text):
        """At once: the model never reads half of it."""
        (self.model / f".{name}").write_text(text)
        (self.model / f".{name}").rename(self.model / name)

    def start(self, *args):
        log = open(self.root / "onward.log", "ab")
        child = subprocess.Popen(
            [ONWARD, *args], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )
        self.engines.append(child)
        return child

    def onward(self, *args, code=(0,)):
        found = self.start(*args).wait(timeout=WITHIN)
        assert found in code, f"onward {args} exited with {found}, not {code}: {self.log()}"
        return found

    def log(self):
        return (self.root / "onward.log").read_text(errors="replace")[-3000:]

    def events(self):
        """Of the run that was begun last."""
        runs = []
        for journal in (self.project / ".onward/runs").glob("[!.]*/journal.jsonl"):
            # While it is written, its end is room for more.
            lines = journal.read_bytes().rstrip(b"\0").split(b"\n")[:-1]
            runs.append([json.loads(line) for line in lines])
        return max((run for run in runs if run), key=lambda run: run[0]["at"], default=[])

    def processes(self):
        """Living processes of this bench, the model left out."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                env = (path / "environ").read_bytes()
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"HOME={self.home}".encode() in env and state != "Z":
                if int(path.name) != self.server.pid:
                    found.append(int(path.name))
        return found

    def kill_all(self):
        """Power off, as far as the run is concerned."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # One that dies shows no environment any more, and may still hold its lock.
        for engine in self.engines:
            engine.wait(timeout=WITHIN)
        until("all to be dead", lambda: not self.processes())

    def end(self):
        self.kill_all()
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def text(self):
        return json.dumps(self.events())

    def has_written(self, session):
        """Whether the program has the task on disk: without it, it has no session to go on with."""
        files = [it for it in self.home.rglob(f"*{session}*.jsonl") if it.is_file()]
        return any(b"Do it." in it.read_bytes().rpartition(b"\n")[0] for it in files)

    def forget_limits(self):
        """As on another machine: no run has met a limit."""
        shutil.rmtree(self.root / "state", ignore_errors=True)

    def sessions(self):
        all_events = self.events()
        return [it["session"] for it in all_events if it.get("session")]


def plain(bench):
    """Runs to its end; what it spent is in the journal."""
    bench.onward("run", "w.yaml", "--yes")
    assert (bench.project / "over.txt").exists()
    assert "attempt.spent" in bench.text()


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


DOCUMENT = """# Conference: smaller numbers

## Goal
Make the number small.

## Mode
metric

## Success Metric
- **Metric:** number
- **Direction:** minimize
- **Evaluator:** `cat a.txt`

## Researchers
- **Count:** 2
- **Iterations per round:** 2
- **Max rounds:** 1
- **Devil's Advocate:** no

## Pre-Flight Gate
- **Final confirmation:** confirmed

## Search Space
- **Allowed changes:** the source files a.txt and b.txt
- **Forbidden changes:** everything else

## Shared Knowledge

---

## Conference Log
"""


def writes(path, text):
    return ["Write", {"file_path": "{cwd}/" + path, "content": text}]


def conference(bench):
    """Two researchers and one round, killed once in the middle of their work."""
    verdict = {"claim": "it is less", "verdict": "validated", "reasoning": "see", "score": 7}
    verdicts = [{"researcher": who, **verdict} for who in "AB"]
    rules = [
        {"when": "Partition the search space",
         "calls": [["StructuredOutput", {"A": "the number", "B": "the number"}]]},
        {"when": "Draft the poster session",
         "calls": [writes("workspace/round-1/poster.md", "# Poster Session\n\nIt is less.\n")]},
        {"when": "Review round",
         "calls": [["StructuredOutput", {"verdicts": verdicts, "notes": "good"}]]},
        {"when": "Write the synthesis",
         "calls": [writes("workspace/synthesis.md", "# Synthesis\n\nIt can be done.\n"),
                   writes("workspace/final_report.md", "# Final report\n\nIt was done.\n")]},
        {"when": "You are researcher", "hang": True,
         "calls": [["Read", {"file_path": "{cwd}/a.txt"}], writes("a.txt", "90\n")]},
    ]
    (bench.project / "w.yaml").unlink()
    (bench.project / "a.txt").write_text("100\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    for args in (["add", "-A"], ["commit", "-qm", "numbers"]):
        subprocess.run([*git, *args], cwd=bench.project, check=True, env=bench.env)
    (bench.project / "conference.md").write_text(DOCUMENT)
    bench.say("PLAY", json.dumps(rules))
    bench.say("MODE", "play")
    bench.say("HANG", "")
    bench.start("run", "conference", "--agent", "claude", "--yes")
    until("a researcher to be at work", lambda: (bench.model / "HANGING").exists())
    bench.kill_all()
    (bench.model / "HANG").unlink()
    bench.onward("resume", "--yes", code=(11,))
    bench.onward("decide", "worktrees", "keep")
    bench.onward("resume", "--yes")
    events = (bench.project / "conference_events.jsonl").read_text().splitlines()
    names = [json.loads(it)["event"] for it in events]
    assert names[-1] == "conference.completed", names
    assert (bench.project / "synthesis.md").exists()
    best = subprocess.run(
        ["git", "show", "conference/best:a.txt"], cwd=bench.project, env=bench.env, check=True,
        capture_output=True, text=True,
    )
    assert best.stdout == "90\n", best.stdout


SCENARIOS = {
    "claude": [plain, costs_add_up, killed_inside_a_tool, parked_at_a_limit, parked_in_place,
               conference],
    "codex": [plain, costs_add_up, killed_inside_a_tool, parked_at_a_limit],
    # At a limit it tries again for ever, and says nothing.
    "qwen": [plain, costs_add_up, killed_inside_a_tool],
}


def main():
    failed = []
    wanted = sys.argv[3:]
    for agent, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            if wanted and f"{agent}:{scenario.__name__}" not in wanted:
                continue
            bench = Bench(agent)
            begin = time.monotonic()
            try:
                scenario(bench)
                word = "ok"
            except Exception as error:
                word = f"FAILED: {error}: {bench.log()}"
                failed.append((agent, scenario.__name__))
            took = time.monotonic() - begin
            print(f"{agent}: {scenario.__name__} ({took:.0f} s): {word}", flush=True)
            bench.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
