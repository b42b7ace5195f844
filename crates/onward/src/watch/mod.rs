//! `onward watch`: one run on a whole screen, live or dead.
//!
//! Invariant: it reads the journal like every other watcher and keeps no truth of its own. What a
//! person asks for goes the way of the commands that ask for the same.

mod foot;
mod inside;
mod paint;
mod pane;
mod part;
mod terminal;
mod tree;
mod why;

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use onward_core::{
    plan::Status,
    view::{Counts, Followed, Live, is_over, state_word},
};
use onward_engine::{
    drive::gate::Answer,
    engine,
    load::follow::Follower,
    world::{Request, inbox::write_request, real::wall_clock},
};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::{Block, Borders, ListState, Padding, Paragraph},
};

use crate::{
    command::of_child,
    diagnostic::printable,
    error::Error,
    gates::{Gate, follow_in_any_pager, in_any_pager},
    plain,
    prompt::{self, Asked, Numbers},
    seen,
    session::{Session, id_of, is_driven, open_and_follow, open_run},
    style::{DIM, STRONG, cut, fraction, of_status, took},
    width,
};
use inside::{Inside, Went};
use pane::Pane;
use terminal::{Key, Terminal};
use tree::{Row, RowKind, Tree};
use why::Whys;

/// How often the journal is looked at while no key comes.
const LOOK_EVERY: Duration = Duration::from_millis(150);

const NO_PAGER: &str = "set PAGER to see it: for example PAGER=less";

/// How it ended.
pub(crate) enum Left {
    Quit,
    /// The person wants the plain stream instead.
    Stream,
}

/// How it was left, and the run as it was then.
pub(crate) fn watch(session: &Session, dir: &Path) -> Result<(Left, Status, Live), Error> {
    let mut watch = Watch::new(session, dir)?;
    let mut terminal = Terminal::take()?;
    let left = loop {
        watch.look()?;
        terminal.draw(|frame| watch.draw(frame))?;
        match terminal.key(LOOK_EVERY) {
            None => {}
            Some(None) => break Left::Quit,
            Some(Some(key)) => match watch.press(key, &mut terminal)? {
                None => {}
                Some(left) => break left,
            },
        }
    };
    drop(terminal);
    // What was written while the last key came is told, too.
    watch.look()?;
    let status = Status::of(&watch.live.run().state, is_driven(dir));
    Ok((left, status, watch.live))
}

/// What the keys mean at this moment.
enum Mode {
    Browse,
    /// A filter is being typed.
    Filter,
    /// A gate is being answered.
    Answer(Box<Answering>),
    /// Whether to pause is being asked.
    Pause,
    Help,
    /// The selected step has the whole screen.
    Inside(Inside),
    /// An answer that fits on the screen.
    Text(Vec<String>),
}

/// What was typed at a gate so far.
struct Answering {
    gate: Gate,
    typed: String,
    comment: Option<String>,
}

struct Watch<'a> {
    session: &'a Session,
    dir: PathBuf,
    live: Live,
    /// Of the run as it is in `live`.
    counts: Counts,
    follower: Follower,
    tree: Tree,
    rows: Vec<Row>,
    selected: usize,
    top: usize,
    /// Where the tree stands.
    room: Rect,
    filter: String,
    mode: Mode,
    whys: Whys,
    is_driven: bool,
    /// What a key came to; shown until the next key.
    said: String,
}

impl<'a> Watch<'a> {
    fn new(session: &'a Session, dir: &Path) -> Result<Self, Error> {
        let (run, follower) = open_and_follow(dir)?;
        let live = Live::new(run);
        let (tree, filter, said) = (Tree::default(), String::new(), String::new());
        let (rows, counts) = tree.rows(live.run(), "");
        let counts = counts.unwrap_or_default();
        let is_open = |row: &Row| row.kind == RowKind::Leaf && !is_over(live.run(), row.id);
        // Where all is over, none need be looked for.
        let selected = Some(()).filter(|()| counts.done < counts.total);
        let selected = selected.and_then(|()| rows.iter().position(is_open)).unwrap_or(0);
        let (dir, mode, top, room) = (dir.to_owned(), Mode::Browse, 0, Rect::ZERO);
        let (whys, is_driven) = (Whys::default(), is_driven(&dir));
        Ok(Self {
            session,
            dir,
            live,
            counts,
            follower,
            tree,
            rows,
            selected,
            top,
            room,
            filter,
            mode,
            whys,
            is_driven,
            said,
        })
    }

    /// Takes in what was written since.
    fn look(&mut self) -> Result<(), Error> {
        let mut changed = false;
        for record in self.follower.poll()? {
            match self.live.take(record) {
                Followed::Yes => changed = true,
                Followed::Known => {}
                Followed::Lost => {
                    self.live = Live::new(open_run(&self.dir)?);
                    changed = true;
                }
            }
        }
        let is_driven = is_driven(&self.dir);
        if changed || is_driven != self.is_driven {
            self.is_driven = is_driven;
            self.whys.forget();
        }
        if changed {
            self.fold_again();
            if !self.filter.is_empty() {
                self.counts = self.live.counts();
            }
        }
        if !is_driven {
            let machine = &self.session.machine;
            self.whys.look(&self.dir, machine, self.live.run(), wall_clock());
        }
        Ok(())
    }

    /// The selection stays on its step.
    fn fold_again(&mut self) {
        let at = self.rows.get(self.selected).map(|row| row.address.clone());
        let (rows, counts) = self.tree.rows(self.live.run(), &self.filter);
        self.rows = rows;
        self.counts = counts.unwrap_or(self.counts);
        let again = at.and_then(|at| self.rows.iter().position(|row| row.address == at));
        self.selected = again.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    fn press(&mut self, key: Key, terminal: &mut Terminal) -> Result<Option<Left>, Error> {
        self.said.clear();
        if key == Key::Leave {
            return Ok(Some(Left::Quit));
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => return self.browse(key, terminal),
            Mode::Help | Mode::Text(_) => {}
            Mode::Inside(mut inside) => match inside.press(key) {
                Went::Scrolled => self.mode = Mode::Inside(inside),
                Went::Back => {}
                Went::Elsewhere => return self.browse(key, terminal),
            },
            Mode::Pause => match key {
                Key::Letter('y' | 'Y') => self.pause()?,
                Key::Letter(_)
                | Key::Up
                | Key::Down
                | Key::PageUp
                | Key::PageDown
                | Key::Home
                | Key::End
                | Key::Enter
                | Key::Escape
                | Key::Backspace
                | Key::Leave => "the run continues".clone_into(&mut self.said),
            },
            Mode::Filter => match key {
                Key::Enter => {}
                Key::Escape => {
                    self.filter.clear();
                    self.fold_again();
                }
                Key::Backspace => {
                    self.filter.pop();
                    self.fold_again();
                    self.mode = Mode::Filter;
                }
                Key::Letter(letter) => {
                    self.filter.push(letter);
                    self.fold_again();
                    self.mode = Mode::Filter;
                }
                Key::Up
                | Key::Down
                | Key::PageUp
                | Key::PageDown
                | Key::Home
                | Key::End
                | Key::Leave => self.mode = Mode::Filter,
            },
            Mode::Answer(answering) => self.answering(key, answering, terminal)?,
        }
        Ok(None)
    }

    fn browse(&mut self, key: Key, terminal: &mut Terminal) -> Result<Option<Left>, Error> {
        let last = self.rows.len().saturating_sub(1);
        let page = usize::from(self.room.height.saturating_sub(2).max(1));
        match key {
            Key::Letter('q') => return Ok(Some(Left::Quit)),
            Key::Letter('s') => return Ok(Some(Left::Stream)),
            Key::Up | Key::Letter('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.selected = (self.selected + 1).min(last),
            Key::PageUp => self.selected = self.selected.saturating_sub(page),
            Key::PageDown => self.selected = (self.selected + page).min(last),
            Key::Home | Key::Letter('g') => self.selected = 0,
            Key::End | Key::Letter('G') => self.selected = last,
            Key::Letter('/') => self.mode = Mode::Filter,
            Key::Letter('?') => self.mode = Mode::Help,
            // Never quits: it only goes back.
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                self.fold_again();
            }
            Key::Enter => match self.rows.get(self.selected) {
                Some(Row { kind: RowKind::Group { .. }, address, .. }) => {
                    self.tree.turn(&address.clone());
                    self.fold_again();
                }
                Some(Row { kind: RowKind::Leaf, .. }) => {
                    self.mode = Mode::Inside(Inside::default());
                }
                None => {}
            },
            Key::Letter('o') => self.page(terminal)?,
            Key::Letter('d') => self.why(terminal)?,
            Key::Letter('a') => self.open_gate()?,
            Key::Letter('p') if is_driven(&self.dir) => self.mode = Mode::Pause,
            Key::Letter('p') => "no engine is running it".clone_into(&mut self.said),
            Key::Letter(_) | Key::Escape | Key::Backspace | Key::Leave => {}
        }
        Ok(None)
    }

    /// What the selected step printed, in the user's pager; as long as it runs, what comes is shown
    /// as it comes.
    fn page(&mut self, terminal: &mut Terminal) -> Result<(), Error> {
        let Some(row) = self.rows.get(self.selected) else { return Ok(()) };
        let is_leaf = row.kind == RowKind::Leaf;
        let follows = is_leaf && self.is_driven && state_word(self.live.run(), row.id) == "running";
        let (from, to) = std::io::pipe()?;
        let mut command = self.command("log");
        command.arg("--step").arg(row.address.as_str()).args(follows.then_some("--follow"));
        // Ctrl-C is the pager's.
        command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to).process_group(0);
        let mut child = command.spawn()?;
        // It holds the other end of the pipe.
        drop(command);
        let lines = BufReader::new(from).split(b'\n').map_while(Result::ok);
        let lines = lines.map(|line| printable(&plain::text(&String::from_utf8_lossy(&line))));
        let is_shown = terminal
            .lend(|| if follows { follow_in_any_pager(lines) } else { in_any_pager(lines) });
        // It may have ended long ago.
        let _ = child.kill();
        child.wait()?;
        if !is_shown? {
            NO_PAGER.clone_into(&mut self.said);
        }
        Ok(())
    }

    /// Why the selected step runs: here where it fits, else in the user's pager.
    fn why(&mut self, terminal: &mut Terminal) -> Result<(), Error> {
        let Some(row) = self.rows.get(self.selected) else { return Ok(()) };
        let output = self.command("why").arg(row.address.as_str()).output()?;
        let text = [output.stdout, output.stderr].concat();
        let lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(printable).collect();
        let Rect { width, height, .. } = self.room;
        let fits = lines.len() < height.into()
            && lines.iter().all(|line| width::of(line) + 2 <= width.into());
        if fits {
            self.mode = Mode::Text(lines);
        } else if !terminal.lend(|| in_any_pager(lines.into_iter()))? {
            NO_PAGER.clone_into(&mut self.said);
        }
        Ok(())
    }

    /// Another command about this run.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.session.machine.supervise[0]);
        command.args(of_child(self.session.project.root())).arg(name).arg(id_of(&self.dir));
        command
    }

    /// A number, a name or its beginning answers; `v`, `d` and `c TEXT` as at every gate.
    fn answering(
        &mut self,
        key: Key,
        mut at: Box<Answering>,
        terminal: &mut Terminal,
    ) -> Result<(), Error> {
        match key {
            Key::Escape => {
                "the gate stays open".clone_into(&mut self.said);
                return Ok(());
            }
            Key::Backspace => drop(at.typed.pop()),
            Key::Letter(letter) => at.typed.push(letter),
            Key::Enter
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::Leave => {}
        }
        let text = at.typed.trim().to_owned();
        let options = &at.gate.options;
        let is_begun = options.iter().any(|it| it.to_lowercase().starts_with(&text.to_lowercase()));
        // One key that can mean nothing else needs no Enter.
        let is_digit = options.len() < 10 && text.parse::<usize>().is_ok();
        let at_once = is_digit || matches!(text.as_str(), "v" | "d") && !is_begun;
        if !(at_once || key == Key::Enter && !text.is_empty()) {
            self.mode = Mode::Answer(at);
            return Ok(());
        }
        at.typed.clear();
        if let Some(option) = prompt::option(&text, options) {
            return self.answer(&at.gate, option, at.comment.clone());
        }
        let root = self.session.project.root();
        let page = |lines: Vec<String>, terminal: &mut Terminal| {
            let lines =
                if lines.is_empty() { vec!["this gate shows no file".into()] } else { lines };
            terminal.lend(|| in_any_pager(lines.into_iter()))
        };
        match prompt::key(&text, &['v', 'd', 'c']) {
            Some(Asked::Key('v', _)) => drop(page(at.gate.files(root), terminal)?),
            Some(Asked::Key('d', _)) => drop(page(at.gate.changes(&self.dir, root), terminal)?),
            Some(Asked::Key(_, text)) => at.comment = Some(text).filter(|it| !it.is_empty()),
            Some(_) | None => self.said = prompt::wrong(&text, options, Numbers::Shown),
        }
        self.mode = Mode::Answer(at);
        Ok(())
    }

    fn open_gate(&mut self) -> Result<(), Error> {
        let run = self.live.run();
        let selected = self.rows.get(self.selected).map(|row| &row.address);
        let now = engine::person::gates_now(&self.dir, run, &self.session.machine)?;
        let mut gates: Vec<Gate> = now.iter().filter_map(Gate::of).collect();
        gates.sort_by_key(|gate| Some(&gate.step) != selected);
        match gates.into_iter().next() {
            Some(gate) => {
                let (typed, comment) = (String::new(), None);
                self.mode = Mode::Answer(Box::new(Answering { gate, typed, comment }));
            }
            None => "no gate is open".clone_into(&mut self.said),
        }
        Ok(())
    }

    /// Where no engine drives the run, one does from the last answer on.
    fn answer(&mut self, gate: &Gate, option: &str, comment: Option<String>) -> Result<(), Error> {
        let (step, by) = (gate.step.clone(), self.session.user());
        let (option, hash) = (option.to_owned(), Some(gate.hash));
        let said = format!("gate {step}: \"{option}\" recorded");
        let answer = Answer { step, option, comment, by, hash };
        seen::keep(&self.dir, self.session.project.root(), gate);
        // One that takes the answer may have ended a moment later: what failed then stays so.
        let was_driven = is_driven(&self.dir);
        if let Err(error) = engine::decide(&self.dir, &answer, &self.session.machine) {
            self.said = crate::error::chain(&error);
            return Ok(());
        }
        self.said = said;
        let is_open = open_run(&self.dir)?.graph.open_gates().next().is_some();
        if !was_driven && !is_open {
            let started = crate::cmd::attach::start(self.session, &self.dir, &[])?;
            self.said.push_str(match started {
                None => "; the run continues",
                Some(code) if crate::cmd::attach::has_begun(code) => "; the run continues",
                Some(_) => "; the run could not continue: see its plan",
            });
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Error> {
        if is_driven(&self.dir) {
            write_request(&self.dir, &Request::Pause, wall_clock())
                .map_err(engine::EngineError::from)?;
            "asked to pause: running steps end first".clone_into(&mut self.said);
        } else {
            "no engine is running it".clone_into(&mut self.said);
        }
        Ok(())
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let foot = foot::parts(&self.mode, &self.filter, &self.said);
        let area = frame.area();
        let below = foot.iter().map(|part| part.rows(area.width)).sum();
        let rows = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(below)];
        let [head, body, below] = Layout::vertical(rows).areas(area);
        frame.render_widget(self.head(head.width.into()), head);
        foot.iter().fold(below, |room, part| part.draw(frame, room));
        self.room = body;
        match &mut self.mode {
            Mode::Help => frame.render_widget(Paragraph::new(HELP), body),
            Mode::Text(text) => {
                let text = Paragraph::new(text.join("\n"));
                frame.render_widget(
                    text.block(Block::new().padding(Padding::new(2, 0, 1, 0))),
                    body,
                );
            }
            Mode::Inside(_) => {
                let pane = self.pane();
                if let (Mode::Inside(inside), Some(pane)) = (&mut self.mode, pane) {
                    inside.draw(pane.whole(), frame, body);
                }
            }
            Mode::Browse | Mode::Filter | Mode::Answer(_) | Mode::Pause => self.body(frame, body),
        }
    }

    fn head(&self, columns: usize) -> Line<'static> {
        let run = self.live.run();
        let status = Status::of(&run.state, self.is_driven);
        let counts = self.counts;
        let (id, word) = (id_of(&self.dir), status.as_str());
        let end = if status == Status::Running { wall_clock() } else { run.state.last_at };
        let span = took(end.ms_since(run.state.opened_at));
        let spent = run.state.spent.dollars();
        let money = if spent > 0.0 { format!("  ${spent:.2}") } else { String::new() };
        let now = wall_clock();
        let lifted = run.state.next_reset(now).filter(|_| status == Status::Running);
        let lifted = lifted.map(|at| format!("  limit lifted in {}", took(at.ms_since(now))));
        let waits = lifted.unwrap_or_default();
        let rest = format!("  {} done  {span}{money}{waits}", fraction(counts));
        let rest = cut(&rest, columns.saturating_sub(id.len() + word.len() + 2));
        let word = Span::styled(word, of_status(status));
        vec![Span::styled(id, STRONG), "  ".into(), word, rest.into()].into()
    }

    /// Steps on the left, the selected one on the right.
    fn body(&mut self, frame: &mut Frame<'_>, room: Rect) {
        let left = Constraint::Length((room.width * 2 / 5).clamp(20, 60));
        let [left, right] = Layout::horizontal([left, Constraint::Fill(1)]).spacing(1).areas(room);
        let height = usize::from(left.height);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(height));
        // A list of all rows would be made for each frame: of 100,000 only those in sight are.
        let rows = self.rows.iter().skip(self.top).take(height);
        let list = tree::list(self.live.run(), rows, !self.filter.is_empty(), left.width);
        let selected = self.selected.checked_sub(self.top).filter(|_| !list.is_empty());
        let mut state = ListState::default().with_selected(selected);
        frame.render_stateful_widget(list, left, &mut state);
        let line = Block::new().borders(Borders::LEFT).border_style(DIM);
        let line = line.padding(Padding::left(1));
        let inner = line.inner(right);
        frame.render_widget(line, right);
        if let Some(pane) = self.pane() {
            pane.draw(frame, inner);
        }
    }

    /// The selected step.
    fn pane(&self) -> Option<Pane> {
        let row = self.rows.get(self.selected)?;
        let run = self.live.run();
        let voice = engine::voice_of(run, &row.address, &self.session.machine);
        let why = self.whys.of(run, row.id, self.is_driven);
        let said = pane::Said { voice: voice.as_ref(), why: why.as_deref() };
        Some(Pane::of(run, &self.dir, row, &said))
    }
}

const HELP: &str = "
  j k, arrows    move               g G, Home End  first, last
  PgUp PgDn      a page             Enter          into a step; folds a group
  /              filter by address  Esc            back (never quits)
  a              answer a gate      p              pause; running steps end
  o              the step's log     d              why it runs, or does not
  s              the plain stream   q              quit; the run continues

  ✓ done      ● running    ✗ failed    ? waits for you    z waits for a limit
  ↻ runs again             - skipped   · to come
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_into_a_narrow_terminal() {
        for line in HELP.lines() {
            assert!(width::of(line) < 79, "{line}");
        }
    }
}
