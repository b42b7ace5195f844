//! The plan as people read it: what happened and what will happen, in that order.
//!
//! Invariant: it shows what the plan says and nothing of its own. What needs a person comes last,
//! next to the prompt, and what stays as it is takes the least room.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use onward_core::{
    finding::{Code, Finding, Severity, Told, told},
    key::part_in_words,
    plan::{Plan, PlannedRevert, PlannedStep, RevertKind, Status, Verdict, Why},
    plural::count,
    policy::Choices,
    state::Phase,
    time::Timestamp,
};

use crate::{
    diagnostic::printable,
    hints::naming,
    next::{self, Next},
    preflight, screen,
    style::{self, BAD, DIM, STRONG, WARN, ago, columns, thousands, usd, wrap},
    width,
};

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Rows that say the same are one line.
    Folded,
    All,
}

/// Who reads it.
#[derive(Clone, Copy)]
pub(crate) enum For<'a> {
    /// A person who looks: the last line is what to type next.
    Reader,
    /// A person whom a menu asks below it, with what was accepted so far.
    Menu(&'a Choices),
}

/// So many rows of one group that say the same stay rows.
const SAME_MAX: usize = 5;
/// So many kept steps in a row, each for itself, stay rows: no one reads more of them.
const ALONE_MAX: usize = 100;
/// The widest column of addresses; longer ones push their own line.
const ADDRESS_MAX: usize = 40;
const VERDICT: usize = 8;

pub(crate) fn write(
    out: &mut dyn Write,
    plan: &Plan,
    rows: Rows,
    whom: For<'_>,
    now: Timestamp,
) -> io::Result<()> {
    let page = Page { plan, whom, now, width: columns() };
    page.headline(out)?;
    page.steps(out, rows)?;
    page.reverts(out)?;
    page.findings(out, rows)?;
    page.cost(out)?;
    if let Some(told) = &plan.preflight {
        preflight::write(out, told, plan, now)?;
    }
    page.needs(out)?;
    page.next(out)
}

struct Page<'a> {
    plan: &'a Plan,
    whom: For<'a>,
    now: Timestamp,
    width: Option<usize>,
}

impl Page<'_> {
    fn headline(&self, out: &mut dyn Write) -> io::Result<()> {
        let run = &self.plan.run;
        let is_damaged = self.has(Code::JournalDamaged);
        let style = if is_damaged { BAD } else { style::of_status(run.status) };
        let status = if is_damaged { "damaged" } else { run.status.as_str() };
        let age = match run.status {
            // It runs now; what is old is its last sign.
            Status::Running if !is_damaged => format!("last active {}", ago(run.age_seconds)),
            Status::Running
            | Status::Fresh
            | Status::Interrupted
            | Status::Waiting
            | Status::Parked
            | Status::OverBudget
            | Status::Completed
            | Status::Failed
            | Status::Cancelled => ago(run.age_seconds),
        };
        let until = next::until(run, self.now).filter(|_| run.status == Status::Parked);
        let by = until.or_else(|| stopped_by(self.plan).map(str::to_owned));
        // What ended it is not known where lines cannot be read.
        let by = by.filter(|_| !is_damaged);
        let by = by.map_or(String::new(), |by| format!(" {by}"));
        let name = printable(style::name_of(run));
        writeln!(out, "{STRONG}{name}{STRONG:#}  {style}{status}{style:#} {age}{by}")?;
        for line in &self.plan.summary {
            let line = style::local_times(line, self.now);
            writeln!(out, "{}", wrap(&printable(&line), self.width, 0, 2))?;
        }
        if self.plan.summary.is_empty() {
            let summary = &self.plan.recovery_point.summary;
            // Until when it is parked stands above.
            let summary = match summary.strip_prefix("parked at a limit until ") {
                Some(parked) => parked.split_once("; ").map_or(parked, |(_, then)| then),
                None => summary,
            };
            let rest = summary.split_once("; ").map_or(summary, |(_, rest)| rest);
            let counts = self.counts();
            let line = if counts.is_empty() || self.plan.run.status == Status::Completed {
                summary.to_owned()
            } else {
                format!("{counts} · {rest}")
            };
            writeln!(out, "{}", wrap(&printable(&line), self.width, 0, 0))?;
        }
        Ok(())
    }

    fn has(&self, code: Code) -> bool {
        self.plan.findings.iter().any(|it| it.code == code.as_str())
    }

    /// `7 steps kept, 2 still running, 3 to run`.
    fn counts(&self) -> String {
        let mut counts = BTreeMap::new();
        for step in &self.plan.steps {
            *counts.entry(step.verdict).or_insert(0_usize) += 1;
        }
        let of = |verdict: Verdict| counts.get(&verdict).copied().unwrap_or(0);
        let may_run = self.plan.steps.iter().filter(|it| it.waits_for_when()).count();
        let mut parts = Vec::new();
        let adopted = of(Verdict::Adopt);
        let kept = of(Verdict::Keep) + adopted;
        if kept > 0 {
            // They are kept, as the last words about the run will count them.
            let meanwhile = match adopted {
                0 => String::new(),
                adopted if adopted == kept => " (finished meanwhile)".to_owned(),
                adopted => format!(" ({adopted} finished meanwhile)"),
            };
            parts.push(format!("{} kept{meanwhile}", count(kept, "step")));
        }
        for (number, what) in [
            (of(Verdict::Reattach), "still running"),
            (of(Verdict::Continue), "to continue"),
            (of(Verdict::Verify) - may_run, "to verify"),
            (of(Verdict::Rerun), "to run again"),
            (of(Verdict::Run), "to run"),
            (may_run, "that may run"),
            (of(Verdict::Ask), "to decide"),
        ] {
            if number > 0 && parts.is_empty() {
                parts.push(format!("{} {what}", count(number, "step")));
            } else if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        parts.join(", ")
    }

    fn steps(&self, out: &mut dyn Write, rows: Rows) -> io::Result<()> {
        let lines = match rows {
            Rows::All => self.plan.steps.iter().map(|step| self.line(step)).collect(),
            Rows::Folded => self.folded(),
        };
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let widest = lines.iter().map(|line| width::of(&line.name)).max().unwrap_or(0);
        let width = widest.min(ADDRESS_MAX);
        for Line { verdict, name, detail } in lines {
            let style = style::of_verdict(verdict);
            let verdict = verdict.as_str();
            let indent = 2 + VERDICT + 2 + width + 2;
            let pad = width.saturating_sub(width::of(&name));
            let at = indent.max(2 + VERDICT + 2 + width::of(&name) + 2);
            let detail = wrap(&detail, self.width, at, indent);
            let row = match detail.strip_prefix('\n') {
                Some(next_row) => format!("{name}\n{next_row}"),
                None => format!("{name}{}  {detail}", " ".repeat(pad)),
            };
            writeln!(out, "  {style}{verdict:<VERDICT$}{style:#}  {}", row.trim_end())?;
        }
        Ok(())
    }

    fn line(&self, step: &PlannedStep) -> Line {
        let why: Vec<String> = step.why.iter().map(|why| reason(why, self.now)).collect();
        let cost = step.cost_usd.map_or(String::new(), |it| format!(" (about {})", usd(it)));
        let detail = format!("{}{cost}", why.join("; "));
        Line { verdict: step.verdict, name: printable(&step.step), detail: printable(&detail) }
    }

    /// A part that changed is named; a word such as `done` is in the verdict already.
    /// Kept rows of one phase or fan-out are one line, and so are many that say the same.
    fn folded(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = self.plan.steps.as_slice();
        while let Some(first) = rest.first() {
            let name = group(&first.step);
            let alone = rest.iter().take_while(|it| is_plain(it) && group(&it.step) == it.step);
            let alone = alone.count();
            if alone > ALONE_MAX {
                let (rows, after) = rest.split_at(alone);
                lines.push(self.stretch(rows));
                rest = after;
                continue;
            }
            let size = rest.iter().take_while(|it| group(&it.step) == name).count();
            let (rows, after) = rest.split_at(size);
            self.fold(name, rows, &mut lines);
            rest = after;
        }
        lines
    }

    /// Many kept steps that follow each other.
    fn stretch(&self, rows: &[PlannedStep]) -> Line {
        let ends = [rows.first(), rows.last()].map(|it| it.map_or("", |it| &it.step));
        let name = format!("{} to {}", ends[0], ends[1]);
        let newest = newest(rows.iter())
            .map_or(String::new(), |at| format!(", last {}", style::moment(&at, self.now)));
        let detail = format!("{} done{newest}", rows.len());
        Line { verdict: Verdict::Keep, name: printable(&name), detail: printable(&detail) }
    }

    /// The rows of one group, what many of them say once, in the place of the first of these.
    fn fold(&self, name: &str, rows: &[PlannedStep], lines: &mut Vec<Line>) {
        let said: Vec<Option<String>> = rows.iter().map(|it| self.said(it)).collect();
        let mut many: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (row, said) in rows.iter().zip(&said) {
            if let Some(said) = said {
                *many.entry((row.verdict.as_str(), said.as_str())).or_default() += 1;
            }
        }
        for (row, said) in rows.iter().zip(&said) {
            let key = said.as_deref().map(|said| (row.verdict.as_str(), said));
            let least = if is_plain(row) { 1 } else { SAME_MAX };
            let count = key.and_then(|key| many.get(&key)).copied();
            match count {
                // Told already.
                Some(0) => {}
                Some(count) if count > least => {
                    let all = rows.len();
                    let detail = if is_plain(row) {
                        let plain = rows.iter().filter(|it| is_plain(it));
                        let newest = newest(plain).map_or(String::new(), |at| {
                            format!(", last {}", style::moment(&at, self.now))
                        });
                        format!("{count} of {all} done{newest}")
                    } else {
                        format!("{count} of {all}: {}", said.as_deref().unwrap_or_default())
                    };
                    let (name, detail) = (printable(name), printable(&detail));
                    lines.push(Line { verdict: row.verdict, name, detail });
                    many.extend(key.map(|key| (key, 0)));
                }
                Some(_) | None => lines.push(self.line(row)),
            }
        }
    }

    /// What a row says beyond its verdict. Nothing that could be said of others too where it was
    /// changed by a person, or failed and is tolerated: that is worth a line of its own.
    fn said(&self, row: &PlannedStep) -> Option<String> {
        if is_plain(row) {
            return Some(String::new());
        }
        let why: Vec<String> = row.why.iter().map(|it| kind_of_reason(it, self.now)).collect();
        (row.verdict != Verdict::Keep).then(|| why.join("; "))
    }

    fn reverts(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_kept = |it: &&PlannedRevert| it.kind == RevertKind::ReplaceFile;
        let (kept, undone): (Vec<_>, Vec<_>) = self.plan.reverts.iter().partition(is_kept);
        self.reverted(out, "Undone first, and saved", &undone)?;
        self.reverted(out, "Changed by hand, and saved before a step replaces it", &kept)
    }

    fn reverted(
        &self,
        out: &mut dyn Write,
        heading: &str,
        reverts: &[&PlannedRevert],
    ) -> io::Result<()> {
        if reverts.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{heading}")?;
        for revert in reverts {
            let only_if = revert.only_if.as_ref().map(|it| format!(", if {it}"));
            let only_if = only_if.unwrap_or_default();
            let line = format!("{} (saved in {}){only_if}", revert.path, revert.rescue);
            writeln!(out, "  {}", wrap(&printable(&line), self.width, 2, 4))?;
            for row in &revert.rows {
                let row = printable(&row.replace('\t', "  "));
                writeln!(out, "    {}", wrap(&row, self.width, 4, 6))?;
            }
        }
        Ok(())
    }

    fn findings(&self, out: &mut dyn Write, rows: Rows) -> io::Result<()> {
        if self.plan.findings.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nFindings")?;
        let mut findings: Vec<&Finding> = self.plan.findings.iter().collect();
        // The worst is read last, next to the prompt.
        findings.sort_by_key(|it| it.severity());
        let told = match rows {
            Rows::Folded => told(findings),
            Rows::All => findings.into_iter().map(Told::alone).collect(),
        };
        for it in told {
            let finding = it.finding;
            let is_accepted = match self.whom {
                For::Reader => false,
                For::Menu(choices) => choices.accept(finding),
            };
            let (style, word) = match finding.severity() {
                Severity::Info => (DIM, "info"),
                Severity::Warning | Severity::Blocking if is_accepted => (DIM, "accepted"),
                Severity::Warning => (WARN, "warning"),
                Severity::Blocking => (BAD.bold(), "blocking"),
            };
            let message = style::local_times(&it.message(), self.now);
            let text = format!("{}: {message}{}", finding.code, place(finding));
            let text = wrap(&printable(&text), self.width, 12, 12);
            writeln!(out, "  {style}{word:<8}{style:#}  {text}")?;
            if let Some(hint) = &finding.hint {
                let hint = naming(hint, &self.plan.run);
                let hint = wrap(&printable(&hint), self.width, 12, 12);
                writeln!(out, "            {DIM}{hint}{DIM:#}")?;
            }
        }
        Ok(())
    }

    fn cost(&self, out: &mut dyn Write) -> io::Result<()> {
        let cost = self.plan.cost;
        if cost.spent_usd <= 0.0 {
            if cost.spent_tokens > 0 {
                writeln!(out, "\n{} tokens spent", thousands(cost.spent_tokens))?;
            }
            return Ok(());
        }
        let (spent, again) = (usd(cost.spent_usd), usd(cost.rerun_usd));
        let restart = usd(cost.restart_usd);
        writeln!(out, "\n{spent} spent; resuming repeats about {again}, a restart about {restart}")
    }

    fn needs(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.plan.needs.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{STRONG}Needs you{STRONG:#}")?;
        for need in &self.plan.needs {
            let need = style::local_times(need, self.now);
            writeln!(out, "  {}", wrap(&printable(&need), self.width, 2, 4))?;
        }
        Ok(())
    }

    fn next(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { plan, whom: For::Reader, .. } = self else { return Ok(()) };
        match next::of_plan(plan, screen::columns_of_output().is_some()) {
            Some(Next::Command(command)) => writeln!(out, "\n{command}"),
            Some(Next::Anyway(command)) => writeln!(out, "\nTo continue anyway:\n{command}"),
            None => Ok(()),
        }
    }
}

struct Line {
    verdict: Verdict,
    name: String,
    detail: String,
}

/// The phase or fan-out that a row belongs to.
fn group(step: &str) -> &str {
    let top = step.split('/').next().unwrap_or(step);
    top.split('[').next().unwrap_or(top)
}

fn is_plain(step: &PlannedStep) -> bool {
    let is_done = || step.why.only_done_at().is_some();
    step.verdict == Verdict::Keep
        && (is_done()
            || step
                .why
                .iter()
                .all(|why| why.cause == "done" && why.was.is_none() && why.is.is_none()))
}

/// When the last of them was done, as it is written.
fn newest<'p>(rows: impl Iterator<Item = &'p PlannedStep>) -> Option<String> {
    let (mut moment, mut text) = (None, None);
    for row in rows {
        match row.why.only_done_at() {
            Some(at) => moment = moment.max(Some(at)),
            None => text = text.max(row.why.iter().find_map(|it| it.detail.strip_prefix("at "))),
        }
    }
    moment.map(|it| it.to_string()).max(text.map(str::to_owned))
}

/// What ended the last drive, where the journal tells.
fn stopped_by(plan: &Plan) -> Option<&'static str> {
    if plan.run.status != Status::Interrupted {
        return None;
    }
    match plan.run.stopped_by.as_deref()? {
        "interrupted" => Some("by Ctrl-C or SIGTERM"),
        "asked" => Some("by `onward pause`"),
        "gate" => Some("at a gate, which is answered now"),
        "killed" => Some("by a kill or crash"),
        _ => None,
    }
}

/// A change that a line can show; longer ones are for `why`.
const CHANGE_MAX: usize = 48;

/// A reason in words.
pub(crate) fn reason(why: &Why, now: Timestamp) -> String {
    if let Some(at) = why.detail.strip_prefix("at ") {
        // When it was passed over says nothing: in an imagined run that is now.
        let is_done = why.cause != Phase::Skipped.as_str();
        let done = || format!("done {}", style::moment(at, now));
        return if is_done { done() } else { "not needed".to_owned() };
    }
    match (&why.was, &why.is) {
        // That it was stopped says enough.
        (None, None) => style::local_times(why.detail.trim_start_matches("interrupted: "), now),
        (Some(_), _) | (None, Some(_)) => changed(why),
    }
}

/// The same without what it was and is: that is another one for each item of a fan-out.
fn kind_of_reason(why: &Why, now: Timestamp) -> String {
    let part = why.cause.split('.').next().unwrap_or_default();
    let has_changed = why.was.is_some() || why.is.is_some();
    if has_changed && matches!(part, "definition" | "agent") {
        format!("{} changed", part_in_words(&why.cause))
    } else {
        reason(why, now)
    }
}

/// What changed, in a few words: a digest or half a script tells a person nothing.
fn changed(why: &Why) -> String {
    let (part, name) = why.cause.split_once('.').unwrap_or((&why.cause, ""));
    let shown = [&why.was, &why.is].map(|it| it.as_deref().unwrap_or("nothing"));
    let is_short = |it: &&str| it.chars().count() <= CHANGE_MAX && !it.contains('\n');
    match part {
        "reads" if why.is.is_none() => format!("{name} is gone"),
        "writes" if why.is.is_none() => format!("{name}, its output, is gone"),
        "reads" => format!("{name} changed"),
        // Another step did it, or is going to.
        "writes" if shown[1].contains(' ') => why.detail.clone(),
        "writes" => format!("{name}, its output, was changed"),
        "needs" => format!("the output of {name} changed"),
        "branch" => "its commit is gone from the branch".to_owned(),
        "definition" | "agent" if !shown.iter().all(is_short) => {
            format!("{} changed", part_in_words(&why.cause))
        }
        _ => format!("{}: {}", part_in_words(&why.cause), why.detail),
    }
}

/// Where it was found, if the words do not say so.
fn place(finding: &Finding) -> String {
    let is_unsaid = |place: &&String| !finding.message.contains(place.as_str());
    let places = [&finding.path, &finding.step].into_iter().flatten().filter(is_unsaid);
    let places: Vec<&str> = places.map(String::as_str).collect();
    if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_belongs_to_its_phase_or_fan_out() {
        assert_eq!(group("draft[clocks]"), "draft");
        assert_eq!(group("round[2]/research[A]/score"), "round");
        assert_eq!(group("look"), "look");
    }
}
