"""How the cost of onward grows with size: a table, and a plot of time and memory against size.

Part of ./scripts/bench (`./scripts/bench growth`). Each curve measures whole commands at sizes a decade apart.
`grows` is the exponent between two sizes next to each other: 1 is linear, and what is above 1.15 where it takes
longer than a tenth of a second is marked. The plot is written to docs/growth.svg, both axes logarithmic.
"""

import json
import math
import resource
import shutil
import subprocess

STEEP = 1.15
WORTH_SECONDS = 0.1
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#34495e", "#7f8c8d", "#16a085", "#a04000", "#5d6d7e"]


def sizes(largest, scale, first=100):
    """Decades from `first` on."""
    largest = max(first, int(largest * scale))
    count = int(math.log10(largest / first) + 1e-9)
    return [first * 10**place for place in range(count + 1)]


class Curve:
    """One command at several sizes."""

    def __init__(self, name, of):
        self.name, self.of, self.points = name, of, []

    def add(self, size, found):
        seconds, cpu, peak = found
        # A child begins as a copy of us; less than that cannot be told.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.points.append((size, seconds, cpu, peak if peak > own + 1 or self.of == "events" else 0))

    def exponents(self):
        """Between each size and the one before it."""
        yield None
        for (less, before, *_), (more, after, *_) in zip(self.points, self.points[1:]):
            yield math.log(max(after, 1e-6) / max(before, 1e-6)) / math.log(more / less)

    def lines(self):
        for (size, seconds, cpu, peak), grows in zip(self.points, self.exponents()):
            steep = grows is not None and grows > STEEP and seconds > WORTH_SECONDS
            text = "" if grows is None else f"{grows:.2f}{', worse than linear' if steep else ''}"
            memory = f"{peak:.0f}" if peak else "-"
            yield f"| {self.name} | {size:,} {self.of} | {seconds:.3f} | {cpu:.2f} | {memory} | {text} |"


def growth(bench, scale):
    """Every curve, printed as it is measured, and then the plot."""
    print("| what | size | seconds | CPU s | peak MB | grows |")
    print("| --- | --- | --- | --- | --- | --- |")
    all_curves = []
    for section in [steps, fan_out, events, runs, files, conference]:
        for curve in section(bench, scale):
            all_curves.append(curve)
            for line in curve.lines():
                print(line, flush=True)
    plot = bench.ROOT / "docs" / "growth.svg"
    plot.write_text(svg(all_curves))
    print(f"\nThe plot is in {plot.relative_to(bench.ROOT)}.")


def looks(bench, it, size, curves):
    """The commands that look at a run, and a resume that finds nothing to do."""
    commands = {"plan": ["plan"], "plan --json": ["plan", "--json"], "status": ["status"]}
    for name, argv in commands.items():
        curves[name].add(size, bench.best(3, [bench.ONWARD, *argv], cwd=it.path))
    again = [bench.ONWARD, "resume", "-q", "--no-input"]
    curves["resume"].add(size, bench.best(3, again, cwd=it.path, ok=(bench.WAITS,)))


def steps(bench, scale):
    """Steps with an output each, in 100 layers, and a gate."""
    names = ["run", "plan", "plan --json", "status", "resume"]
    curves = {name: Curve(f"`{name}`", "steps") for name in names}
    for size in sizes(100_000, scale):
        width = size // 100
        with bench.Project() as it:
            (it.path / "o").mkdir()
            lines = []
            for i in range(size):
                above = [] if i < width else {(i // width - 1) * width + (i + more) % width for more in (0, 1)}
                needs = ", ".join(f"s{need}" for need in sorted(above))
                lines.append(f"  - {{id: s{i}, needs: [{needs}], run: touch o/{i}, writes: [o/{i}]}}")
            it.workflow(lines + [f"  - {{ id: ask, needs: [s{size - 1}], gate: Go on? }}"], 4)
            found = it.onward("run", "w.yaml", "-q", "--no-input", ok=(bench.WAITS,))
            curves["run"].add(size, found)
            looks(bench, it, size, curves)
    return curves.values()


def fan_out(bench, scale):
    """One step for each item of a list."""
    names = ["run", "plan", "plan --json", "status", "resume"]
    curves = {name: Curve(f"`{name}` of a fan-out", "items") for name in names}
    for size in sizes(10_000, scale):
        with bench.Project() as it:
            each = f"'{{{{ range({size}) | list }}}}'"
            it.workflow([f"  - {{ id: fan, each: {each}, run: {bench.TRUE} }}", "  - { id: ask, gate: Go on? }"], 4)
            found = it.onward("run", "w.yaml", "-q", "--no-input", ok=(bench.WAITS,))
            curves["run"].add(size, found)
            looks(bench, it, size, curves)
    return curves.values()


def events(bench, scale):
    """Journals in memory: written, and folded with every sum verified."""
    program = bench.built("-p", "onward-engine", "--example", "fold_rate", name="examples/fold_rate")
    fold = Curve("fold of a journal", "events")
    for size in sizes(10_000_000, scale, first=1_000):
        out = subprocess.run([program, str(size)], check=True, capture_output=True, text=True).stdout
        seconds, peak_kb, _ = out.split()
        fold.add(size, (float(seconds), float(seconds), float(peak_kb) / 1024))
    return [fold]


def runs(bench, scale):
    """Runs in one store."""
    listing = Curve("`list`", "runs")
    with bench.Project() as it:
        it.workflow(bench.flat(4), 4)
        it.onward("run", "w.yaml", "-q")
        first = it.run_dir()
        made = 1
        for size in sizes(1_000, scale, first=10):
            for number in range(made, size):
                letters = "".join(chr(ord("a") + number // 26**place % 26) for place in range(4))
                shutil.copytree(first, first.with_name(f"{first.name[:-4]}{letters}"), dirs_exist_ok=True)
            made = size
            listing.add(size, bench.best(5, [bench.ONWARD, "list"], cwd=it.path))
    return [listing]


def files(bench, scale):
    """A repository of so many files, with a run of one agent that edits."""
    names = ["git status", "run", "plan", "resume --mode preflight", "list"]
    curves = {name: Curve(f"`{name}` in a repository", "files") for name in names}
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for size in sizes(100_000, scale, first=1_000):
        with bench.Project() as it:
            for at in range(size):
                path = it.path / f"d{at // 100}" / f"f{at}"
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"{at}\n")
            (it.path / ".onward" / ".gitignore").write_text("*\n")
            (it.path / ".onward" / "config.toml").write_text(f'[agents.claude]\ncommand = ["{bench.TRUE}"]\n')
            it.workflow(["  - { id: edit, agent: claude, prompt: x }", "  - { id: ask, gate: Go on? }"], 4)
            for args in [["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]]:
                bench.timed([*git, *args], cwd=it.path)
            curves["git status"].add(size, bench.best(3, ["git", "status", "--porcelain"], cwd=it.path))
            curves["run"].add(size, it.onward("run", "w.yaml", "-q", "--no-input", ok=(bench.WAITS,)))
            curves["plan"].add(size, bench.best(3, [bench.ONWARD, "plan"], cwd=it.path))
            again = [bench.ONWARD, "resume", "--mode", "preflight", "-q", "--no-input"]
            curves["resume --mode preflight"].add(size, bench.best(3, again, cwd=it.path, ok=(bench.WAITS,)))
            curves["list"].add(size, bench.best(3, [bench.ONWARD, "list"], cwd=it.path))
    return curves.values()


AGENT = """#!/bin/sh
set -eu
field() { rest=${ONWARD_STEP#*$1\\[}; echo "${rest%%\\]*}"; }
case $ONWARD_STEP in
  partition) cp "$CONFERENCE_DIR/partition.json" "$ONWARD_RESULT" ;;
  */propose)
    who=$(field research | tr A-Z a-z); value=$(cat "$who.txt")
    echo $((value - 1)) > "$who.txt"
    echo '{"description": "a step", "hypothesis": "less is more", "analysis": "see the rows"}' > "$ONWARD_RESULT" ;;
  *poster/draft)
    mkdir -p "workspace/round-$(field round)"
    echo '# Poster Session' > "workspace/round-$(field round)/poster.md" ;;
  *review/judge) cp "$CONFERENCE_DIR/verdicts.json" "$ONWARD_RESULT" ;;
  synthesis/draft)
    mkdir -p workspace
    echo '# Synthesis' > workspace/synthesis.md
    echo '# Final report' > workspace/final_report.md ;;
esac
"""


def conference(bench, scale):
    """Conferences of more and more researchers and rounds, run to their end, then looked at."""
    names = ["run conference", "plan", "status"]
    curves = {name: Curve(f"`{name}` (conference)", "researchers x rounds") for name in names}
    for researchers, rounds in [(3, 2), (8, 6), (26, 20)]:
        if researchers * rounds > max(6, 520 * scale):
            break
        with bench.Project() as it:
            letters = [chr(ord("A") + number) for number in range(researchers)]
            play(bench, it.path, letters, rounds)
            size = researchers * rounds
            found = it.onward("run", "conference", "-q", "--yes", "--no-input", ok=range(256))
            curves["run conference"].add(size, found)
            for name in names[1:]:
                curves[name].add(size, bench.best(3, [bench.ONWARD, name], cwd=it.path, ok=range(256)))
    return curves.values()


def play(bench, here, letters, rounds):
    """A conference whose agents are a script."""
    source = bench.ROOT / "crates" / "onward" / "src" / "cmd" / "demo" / "conference"
    text = (source / "conference.md").read_text()
    sums = " + ".join(f"$(cat {letter.lower()}.txt)" for letter in letters)
    text = text.replace("echo $(( $(cat a.txt) + $(cat b.txt) + $(cat c.txt) ))", f"echo $(( {sums} ))")
    text = text.replace("**Count:** 3", f"**Count:** {len(letters)}")
    text = text.replace("**Iterations per round:** 3", "**Iterations per round:** 1")
    text = text.replace("**Max rounds:** 2", f"**Max rounds:** {rounds}")
    text = text.replace("a.txt, b.txt, c.txt", ", ".join(f"{letter.lower()}.txt" for letter in letters))
    (here / "partition.json").write_text(json.dumps({it: f"number {it}" for it in letters}))
    verdicts = [{"researcher": it, "claim": f"{it} is right", "verdict": "validated", "score": 7} for it in letters]
    (here / "verdicts.json").write_text(json.dumps({"verdicts": verdicts}))
    for letter in letters:
        (here / f"{letter.lower()}.txt").write_text("10000\n")
    (here / "shared.txt").write_text("0\n")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for args in [["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]]:
        bench.timed([*git, *args], cwd=here)
    (here / "conference.md").write_text(text)
    (here / "agent.sh").write_text(AGENT)
    shutil.copy(source / "config.toml", here / ".onward" / "config.toml")


WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 320, 60, 40, 210


def svg(curves):
    """Two panels, both axes logarithmic: seconds and megabytes against size."""
    panels = [("seconds", 1), ("megabytes at the peak", 3)]
    wide = LEFT + len(panels) * (WIDTH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {TOP + HEIGHT + 60}" '
           'font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>']
    for number, (title, figure) in enumerate(panels):
        shown = [(name, points) for name, points in named(curves, figure) if len(points) > 1]
        out += panel(title, shown, LEFT + number * (WIDTH + GAP))
    return "\n".join([*out, "</svg>", ""])


def named(curves, figure):
    for curve in curves:
        points = [(point[0], point[figure]) for point in curve.points if point[figure] > 0]
        yield curve.name.replace("`", ""), points


def panel(title, shown, left):
    if not shown:
        return []
    xs = [math.log10(x) for _, points in shown for x, _ in points]
    ys = [math.log10(y) for _, points in shown for _, y in points]
    (x0, x1), (y0, y1) = [(math.floor(min(it)), math.ceil(max(it))) for it in (xs, ys)]
    at_x = lambda x: left + (math.log10(x) - x0) / max(x1 - x0, 1) * WIDTH
    at_y = lambda y: TOP + HEIGHT - (math.log10(y) - y0) / max(y1 - y0, 1) * HEIGHT
    out = [f'<text x="{left}" y="{TOP - 14}" font-size="13" font-weight="bold">{title} against size</text>']
    for power in range(x0, x1 + 1):
        x = at_x(10**power)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + HEIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y0, y1 + 1):
        y = at_y(10**power)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    labels = []
    for number, (name, points) in enumerate(shown):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="2.4" fill="{colour}"/>' for x, y in points]
        labels.append((at_y(points[-1][1]), name, colour))
    # Names stand to the right, each on a line of its own, in the order of their curves.
    row = TOP
    for _, name, colour in sorted(labels):
        out.append(f'<text x="{left + WIDTH + 8}" y="{row + 4:.1f}" fill="{colour}">{escaped(name)}</text>')
        row += 13
    return out


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")
