"""The five built-in systems, each to its end with a real program: what the model does in each role.

A scenario takes a bench. A rule is a pattern in the prompt of a role, and the tools it calls then.
"""

import json
import subprocess

from bench import ONWARD, until

# A file is read before it is written anew.
READ = ["Read", {"file_path": "{cwd}/a.txt"}]


def git(bench, *args):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args]
    done = subprocess.run(
        command, cwd=bench.project, env=bench.env, check=True, capture_output=True, text=True
    )
    return done.stdout


def writes(path, text):
    return ["Write", {"file_path": "{cwd}/" + path, "content": text}]


def gives(**fields):
    """The structured result of a step."""
    return ["StructuredOutput", fields]


def play(bench, rules, hangs=None):
    """A project with one file, and a model that plays by these rules."""
    (bench.project / "w.yaml").unlink()
    (bench.project / "a.txt").write_text("100\n")
    git(bench, "add", "-A")
    git(bench, "commit", "-qm", "numbers")
    rules = [{"when": it, "calls": calls, "hang": it == hangs} for it, calls in rules.items()]
    bench.say("PLAY", json.dumps(rules))
    bench.say("MODE", "play")


def to_its_end(bench, *args, option="approve"):
    """Runs a workflow; the user gives the same answer at every gate."""
    code = bench.onward("run", *args, "--yes", code=(0, 11))
    while code == 11:
        out = subprocess.run(
            [ONWARD, "status", "--json"], cwd=bench.project, env=bench.env, check=True,
            capture_output=True,
        )
        status = json.loads(out.stdout)
        assert status["gates"], f"it waits, and not at a gate: {bench.log()}"
        bench.onward("decide", status["gates"][0]["step"], option)
        code = bench.onward("resume", "--yes", code=(0, 11))


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


def conference(bench):
    """Two researchers and one round, killed once in the middle of their work."""
    verdict = {"claim": "it is less", "verdict": "validated", "reasoning": "see", "score": 7}
    verdicts = [{"researcher": who, **verdict} for who in "AB"]
    play(bench, {
        "Partition the search space": [gives(A="the number", B="the number")],
        "Draft the poster session":
            [writes("workspace/round-1/poster.md", "# Poster Session\n\nIt is less.\n")],
        "Review round": [gives(verdicts=verdicts, notes="good")],
        "Write the synthesis":
            [writes("workspace/synthesis.md", "# Synthesis\n\nIt can be done.\n"),
             writes("workspace/final_report.md", "# Final report\n\nIt was done.\n")],
        "You are researcher": [READ, writes("a.txt", "90\n")],
    }, hangs="You are researcher")
    (bench.project / "conference.md").write_text(DOCUMENT)
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
    assert git(bench, "show", "conference/best:a.txt") == "90\n"


def agent_memory(bench):
    """A request, one task, verified, described and remembered."""
    run = ".agent-memory/runs/one"
    task = {"id": "T001", "title": "less", "phase": 1, "type": "implementation",
            "description": "less", "dependencies": [], "files_likely": ["a.txt"],
            "acceptance_criteria": ["it is 90"], "estimated_complexity": "low"}
    play(bench, {
        "Write the requirements": [writes(f"{run}/prd.md", "# Less\n")],
        "plan the work": [writes(f"{run}/plan.md", "# Plan\n\nLess.\n")],
        "into tasks": [writes(f"{run}/task-graph.json", json.dumps({"tasks": [task]})),
                       writes(f"{run}/tasks/T001.md", "# T001\n\nLess.\n")],
        "Do the task T001": [READ, writes("a.txt", "90\n"),
                             gives(status="SUCCESS", summary="it is less", files=["a.txt"])],
        "Verify the tasks": [gives(verdicts=[{"task": "T001", "result": "PASSED"}])],
        "for its reviewers": [writes(f"{run}/pr-description.md", "# Less\n"),
                              writes(f"{run}/pr-checklist.md", "- [x] less\n")],
        "context packs": [writes(f"{run}/summary.md", "# Summary\n\nIt is less.\n")],
    })
    to_its_end(bench, "agent-memory", "--agent", "claude", "--input", f"dir={run}",
               "--input", "request=make it less")
    assert (bench.project / "a.txt").read_text() == "90\n"
    assert "PASSED" in (bench.project / run / "verifications/T001.md").read_text()
    assert (bench.project / run / "summary.md").exists()


def dotagent(bench):
    """A wish, one design, one task in a worktree, merged; two programs share the roles."""
    config = bench.project / ".onward/config.toml"
    config.parent.mkdir()
    config.write_text('[roles]\nreflector = "codex"\n')
    task = {"id": "task-001", "summary": "less", "files": ["a.txt"], "depends_on": []}
    contract = {"name": "number", "definition": {"type": "interface", "spec": "a number"},
                "provider": "task-001", "used_by": ["task-001"]}
    plan = {"contracts_first": ["number"], "tasks": [task]}
    play(bench, {
        "Write the demand": [gives(title="less", goal="less", requirements=["it is 90"])],
        "Design an answer": [gives(name="simple", summary="less", contracts=[], tasks=[task])],
        "Merge the designs": [gives(summary="less", contracts=[contract], execution_plan=plan)],
        "Verify the task": [gives(passed=True, failures=[])],
        "Verify the whole": [gives(passed=True, failures=[])],
        "Look back at this run": [gives(what_worked=["all"], what_failed=[])],
        "worktree of your own": [READ, writes("a.txt", "90\n"),
                                 gives(status="pre_complete", summary="it is less")],
    })
    to_its_end(bench, "dotagent", "--input", "request=make it less",
               "--input", 'architects=["simple"]')
    assert (bench.project / "a.txt").read_text() == "90\n"
    paths = {line.split()[0] for line in bench.read("LOG").splitlines()}
    assert paths == {"/v1/messages", "/v1/responses"}, paths


def pipeline(bench):
    """A trivial request: a page of the first phase, one task, a review, a commit."""
    task = {"key": "a", "subject": "less", "files": ["a.txt"], "after": []}
    play(bench, {
        "Choose the tier": [gives(tier="TRIVIAL", title="less")],
        r"Write your page to\s+(\S+\.md)": [writes("{1}", "# Page\n\nLess.\n")],
        "List the tasks of the execution": [gives(tasks=[task])],
        "Do this task": [READ, writes("a.txt", "90\n")],
        "Review what the execution": [gives(passed=True, failures=[])],
        "message of the commit": [gives(subject="numbers: less", body="")],
    })
    to_its_end(bench, "pipeline", "--agent", "claude", "--input", "request=make it less")
    assert git(bench, "log", "-1", "--format=%s") == "numbers: less\n"
    assert (bench.project / "a.txt").read_text() == "90\n"


STORY = """# Story 4.2: Less

**Status:** Draft

## Acceptance Criteria

1. It is 90.

## Tasks

- [ ] less

## Dev Notes

## QA Results

## Change Log

| Date | Agent | Change |
|---|---|---|
"""


def sdc(bench):
    """A story from its draft to done."""
    story = "docs/stories/4.2.story.md"
    play(bench, {
        r"Write the story 4\.2 to (\S+)": [writes("{1}", STORY)],
        "Judge the story": [gives(decision="GO", score=8, issues=[])],
        "Implement the story": [READ, writes("a.txt", "90\n")],
        "Review what was done": [gives(passed=True, failures=[])],
        "Judge the implementation": [gives(verdict="PASS", issues=[])],
    })
    to_its_end(bench, "sdc", "--agent", "claude", "--input", "story=4.2",
               "--input", "request=make it less", option="GO")
    assert (bench.project / "a.txt").read_text() == "90\n"
    assert "**Status:** Done" in (bench.project / story).read_text()
