//! The glass of a terminal: what a person sees after all that was written, and after the window was
//! made larger or smaller.
//!
//! It does what most terminals do: text that no longer fits into its row goes on in the next one,
//! and is joined again when there is room (the second screen of whole-screen programs is not), and
//! what is cleared from the first row to the last goes to the scrollback, as in tmux.

/// See the module.
pub(crate) struct Glass {
    columns: usize,
    rows: usize,
    first: Grid,
    /// The screen of whole-screen programs, while one has it.
    second: Option<Grid>,
    /// Bytes of a character or of a sequence that is not complete.
    pending: Vec<u8>,
    /// How often a frame was complete.
    pub(crate) frames: usize,
    /// Whether a frame has begun and has not ended.
    pub(crate) in_frame: bool,
}

#[derive(Default)]
struct Grid {
    /// All rows, what scrolled away among them.
    rows: Vec<Row>,
    /// How many of them scrolled away.
    gone: usize,
    row: usize,
    column: usize,
}

#[derive(Clone, Default)]
struct Row {
    /// A wide character takes two cells, of which the second is empty.
    cells: Vec<Option<char>>,
    /// It goes on in the next row.
    is_wrapped: bool,
}

impl Glass {
    pub(crate) fn new((columns, rows): (u16, u16)) -> Self {
        Self {
            columns: columns.into(),
            rows: rows.into(),
            first: Grid::default(),
            second: None,
            pending: Vec::new(),
            frames: 0,
            in_frame: false,
        }
    }

    /// What is visible, row by row, without the blanks at the ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        let grid = self.second.as_ref().unwrap_or(&self.first);
        grid.rows.iter().skip(grid.gone).map(Row::text).collect()
    }

    /// The same with all that scrolled away.
    pub(crate) fn all(&self) -> Vec<String> {
        let grid = self.second.as_ref().unwrap_or(&self.first);
        grid.rows.iter().map(Row::text).collect()
    }

    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) {
        (self.columns, self.rows) = (columns.into(), rows.into());
        self.first.wrap_again(self.columns, self.rows);
        if let Some(grid) = &mut self.second {
            grid.rows.truncate(self.rows);
            grid.rows.iter_mut().for_each(|row| row.cells.truncate(self.columns));
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while let Some(used) = self.step() {
            self.pending.drain(..used);
        }
    }

    /// Takes one character or sequence; `None` when none is complete.
    fn step(&mut self) -> Option<usize> {
        if *self.pending.first()? == b'\x1b' {
            return self.sequence();
        }
        let chunk = self.pending.utf8_chunks().next()?;
        let Some(c) = chunk.valid().chars().next() else {
            return (!chunk.invalid().is_empty() && self.pending.len() > 3).then_some(1);
        };
        self.put(c);
        Some(c.len_utf8())
    }

    fn sequence(&mut self) -> Option<usize> {
        match self.pending.get(1)? {
            b'[' => {
                let end = self.pending.iter().skip(2).position(u8::is_ascii_alphabetic)?;
                let text = String::from_utf8_lossy(&self.pending[2..end + 2]).into_owned();
                self.control(&text, char::from(self.pending[end + 2]));
                Some(end + 3)
            }
            b']' => self.pending.iter().position(|it| *it == b'\x07').map(|at| at + 1),
            _ => Some(2),
        }
    }

    fn grid(&mut self) -> &mut Grid {
        self.second.as_mut().unwrap_or(&mut self.first)
    }

    fn put(&mut self, c: char) {
        let (columns, rows) = (self.columns, self.rows);
        let grid = self.grid();
        match c {
            '\r' => grid.column = 0,
            '\n' => grid.down(rows),
            c if c.is_control() => {}
            c => {
                let width = if is_wide(c) { 2 } else { 1 };
                if grid.column + width > columns {
                    grid.here().is_wrapped = true;
                    grid.down(rows);
                    grid.column = 0;
                }
                let at = grid.column;
                let row = grid.here();
                row.cells.resize(row.cells.len().max(at + width), Some(' '));
                row.cells[at] = Some(c);
                row.cells[at + 1..at + width].fill(None);
                grid.column += width;
            }
        }
    }

    fn control(&mut self, text: &str, letter: char) {
        let number = |or: usize| text.parse::<usize>().unwrap_or(or);
        match (text, letter) {
            ("?2026", 'h') => self.in_frame = true,
            ("?2026", 'l') => {
                self.in_frame = false;
                self.frames += 1;
            }
            ("?1049", 'h') => self.second = Some(Grid::default()),
            ("?1049", 'l') => self.second = None,
            (_, 'A') => {
                let grid = self.grid();
                // Here the cursor goes no further than to the first row that is visible.
                grid.row = grid.row.saturating_sub(number(1)).max(grid.gone);
            }
            (_, 'H') => {
                let (row, column) = text.split_once(';').unwrap_or((text, ""));
                let one = |it: &str| it.parse::<usize>().unwrap_or(1) - 1;
                let row = one(row).min(self.rows - 1);
                let column = one(column).min(self.columns - 1);
                let grid = self.grid();
                (grid.row, grid.column) = (grid.gone + row, column);
            }
            (_, 'K') => {
                let is_behind = self.grid().column >= self.columns;
                let grid = self.grid();
                // The cursor behind the last column stands on it.
                let at = if text == "2" { 0 } else { grid.column - usize::from(is_behind) };
                grid.here().cells.truncate(at);
                grid.here().is_wrapped = false;
            }
            ("2", 'J') => {
                let grid = self.grid();
                grid.rows.truncate(grid.gone);
            }
            ("" | "0", 'J') => {
                let is_first = self.second.is_none();
                let grid = self.grid();
                if is_first && (grid.row, grid.column) == (grid.gone, 0) {
                    grid.gone = grid.rows.len();
                    grid.row = grid.gone;
                } else {
                    let at = grid.column;
                    grid.here().cells.truncate(at);
                    grid.rows.truncate(grid.row + 1);
                }
            }
            (_, 'm' | 'h' | 'l') => {}
            (_, letter) => panic!("the glass does not know `{text}{letter}`"),
        }
    }
}

impl Grid {
    fn here(&mut self) -> &mut Row {
        let count = self.rows.len().max(self.row + 1);
        self.rows.resize(count, Row::default());
        &mut self.rows[self.row]
    }

    fn down(&mut self, rows: usize) {
        self.here();
        self.row += 1;
        self.gone = self.gone.max((self.row + 1).saturating_sub(rows));
        self.here();
    }

    /// The terminal joins the rows of a line and cuts it at the new width. The cursor keeps its
    /// place in the text.
    fn wrap_again(&mut self, columns: usize, rows: usize) {
        self.here();
        let cursor = (self.row, self.column);
        let old = std::mem::take(&mut self.rows);
        let mut line: Vec<Option<char>> = Vec::new();
        let mut begins = 0;
        let mut place = None;
        for (at, row) in old.iter().enumerate() {
            if at == cursor.0 {
                place = Some(line.len() + cursor.1);
            }
            line.extend(&row.cells);
            if row.is_wrapped {
                continue;
            }
            let pieces = cut(&std::mem::take(&mut line), columns);
            if let Some(mut place) = place.take() {
                let fits = |piece: &Vec<Option<char>>, place: usize| place <= piece.len();
                let mut at = 0;
                while at + 1 < pieces.len() && !fits(&pieces[at], place) {
                    place -= pieces[at].len();
                    at += 1;
                }
                (self.row, self.column) = (begins + at, place.min(columns));
            }
            let last = pieces.len() - 1;
            let made = pieces.into_iter().enumerate();
            self.rows.extend(made.map(|(at, cells)| Row { cells, is_wrapped: at < last }));
            begins = self.rows.len();
        }
        self.gone = (self.row + 1).saturating_sub(rows);
    }
}

impl Row {
    fn text(&self) -> String {
        self.cells.iter().flatten().collect::<String>().trim_end().to_owned()
    }
}

/// Cells in rows; a wide character is never torn.
fn cut(line: &[Option<char>], columns: usize) -> Vec<Vec<Option<char>>> {
    let mut rows = vec![Vec::new()];
    for cell in line {
        let width = cell.map_or(0, |c| if is_wide(c) { 2 } else { 1 });
        if rows.last().is_some_and(|row: &Vec<_>| row.len() + width > columns) {
            rows.push(Vec::new());
        }
        rows.last_mut().unwrap().push(*cell);
    }
    rows
}

/// As far as the tests need it.
fn is_wide(c: char) -> bool {
    ('\u{2e80}'..'\u{a4d0}').contains(&c) || c >= '\u{1f300}'
}
