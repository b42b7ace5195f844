"""A project, a home and a model of its own for one scenario.

Invariant: what is waited for is a fact. Nothing but the loopback is spoken to, the home directory is
empty and the keys are dummies.
"""

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


def is_there(pid):
    """Whether any of its threads still runs, or dies and has its files open."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z" or len(threads) > 1


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
        killed = self.processes()
        for pid in killed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # One that dies shows no environment any more, and may still hold its lock and its session.
        for engine in self.engines:
            engine.wait(timeout=WITHIN)
        until("all to be dead", lambda: not self.processes() and not any(map(is_there, killed)))

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
