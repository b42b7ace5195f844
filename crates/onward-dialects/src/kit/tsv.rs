//! Tab-separated values: a header, then one row a line.
//!
//! Invariant: the bytes are kept as they came, and a row knows its own text, so that what is shown
//! before it is dropped is what stood there.

use std::collections::BTreeSet;

use super::Broken;

/// What the rows of a file look like.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The header is the first line, if it has a cell of this name.
    pub header_has: &'static str,
    /// The columns of a file that lost its header: the longest list that its first row can fill,
    /// or else the shortest. Ordered by length.
    pub usual: &'static [&'static [&'static str]],
    /// A row has at least one of these cells, or it was cut short.
    pub needs: &'static [&'static str],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    bytes: Vec<u8>,
    /// In lower case.
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
    pub broken: Vec<Broken>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Counted from 1, the header included.
    pub line: usize,
    /// The whole line, without its end.
    pub text: String,
}

impl Table {
    pub fn read(bytes: &[u8], form: &Form) -> Self {
        let mut table = Self { bytes: bytes.to_owned(), ..Self::default() };
        let text = String::from_utf8_lossy(bytes);
        for (text, line) in text.split('\n').zip(1..) {
            let row = Row { line, text: without_end(text) };
            if row.text.trim().is_empty() {
                // NULs are what a crash of the machine leaves of a row.
                if text.contains('\0') {
                    table.broken.push(Broken::new(line, "it holds nothing but NUL bytes"));
                }
                continue;
            }
            if table.columns.is_empty() {
                let names: Vec<String> = row.cells().map(str::to_lowercase).collect();
                if names.iter().any(|name| name == form.header_has) {
                    table.columns = names;
                    continue;
                }
                table.columns = usual(form, names.len());
            }
            if form.needs.iter().any(|name| table.cell(&row, name).is_some()) {
                table.rows.push(row);
            } else {
                table.broken.push(Broken::new(line, "the row is cut short"));
            }
        }
        table
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The cell of this column; `None` where it is empty or `-`.
    pub fn cell<'a>(&self, row: &'a Row, name: &str) -> Option<&'a str> {
        let cell = row.cells().nth(self.column(name)?)?;
        (!cell.is_empty() && cell != "-").then_some(cell)
    }

    /// The last line, if it was cut short while it was written: it has no end.
    pub fn torn(&self) -> Option<Row> {
        let line = self.broken.last()?.line;
        let is_last = self.rows.last().is_none_or(|row| row.line < line);
        let is_last = is_last && !self.bytes.ends_with(b"\n");
        let text = self.bytes.split(|byte| *byte == b'\n').nth(line - 1)?;
        let text = without_end(&String::from_utf8_lossy(text));
        is_last.then_some(Row { line, text })
    }

    /// The bytes without these lines, counted from 1.
    pub fn without(&self, lines: &BTreeSet<usize>) -> Vec<u8> {
        let all = self.bytes.split_inclusive(|byte| *byte == b'\n').zip(1_usize..);
        let kept = all.filter(|(_, line)| !lines.contains(line)).map(|(text, _)| text);
        kept.collect::<Vec<_>>().concat()
    }

    /// The bytes with another value in one cell of these lines.
    pub fn with_cell(&self, lines: &BTreeSet<usize>, column: usize, value: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for (line, number) in self.bytes.split_inclusive(|byte| *byte == b'\n').zip(1_usize..) {
            if !lines.contains(&number) {
                bytes.extend_from_slice(line);
                continue;
            }
            let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let (row, end) = line.split_at(line.iter().position(is_end).unwrap_or(line.len()));
            let mut cells: Vec<&[u8]> = row.split(|byte| *byte == b'\t').collect();
            if let Some(cell) = cells.get_mut(column) {
                *cell = value.as_bytes();
            }
            bytes.extend_from_slice(&cells.join(&b'\t'));
            bytes.extend_from_slice(end);
        }
        bytes
    }
}

impl Row {
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.text.split('\t').map(str::trim)
    }
}

fn without_end(text: &str) -> String {
    text.trim_end_matches(['\r', '\0']).to_owned()
}

fn usual(form: &Form, cells: usize) -> Vec<String> {
    let fits = form.usual.iter().rev().find(|columns| cells >= columns.len());
    let columns = fits.or(form.usual.first()).copied().unwrap_or_default();
    columns.iter().map(|name| (*name).to_owned()).collect()
}

/// A text as one cell.
pub fn cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form {
        header_has: "item",
        usual: &[&["item", "state"], &["who", "item", "state"]],
        needs: &["state", "status"],
    };

    fn read(text: &str) -> Table {
        Table::read(text.as_bytes(), &FORM)
    }

    #[test]
    fn a_row_is_read_by_the_names_in_the_header() {
        let table = read("State\tItem\r\ndone\t 1 \r\n-\t2\r\nopen\t3");
        let cells: Vec<Option<&str>> =
            table.rows.iter().map(|row| table.cell(row, "item")).collect();
        assert_eq!(cells, [Some("1"), Some("3")]);
        assert_eq!(table.broken, [Broken::new(3, "the row is cut short")]);
        assert_eq!((table.rows[1].line, table.rows[1].text.as_str()), (4, "open\t3"));
        assert_eq!(table.torn(), None, "a row came after it");
    }

    #[test]
    fn a_lost_header_is_made_good_by_the_number_of_cells() {
        assert_eq!(read("1\tdone\n").columns, ["item", "state"]);
        assert_eq!(read("x\t1\tdone\n").columns, ["who", "item", "state"]);
        assert_eq!(read("x\n").columns, ["item", "state"]);
    }

    #[test]
    fn the_last_line_may_be_torn_or_nul() {
        for tail in ["2", "\0\0\0"] {
            let table = read(&format!("item\tstate\n1\tdone\n{tail}"));
            let torn = table.torn().unwrap();
            assert_eq!(torn.line, 3);
            assert_eq!(table.without(&[torn.line].into()), b"item\tstate\n1\tdone\n");
        }
    }

    #[test]
    fn one_cell_changes_and_nothing_else() {
        let table = read("item\tstate\r\n1\topen\r\n2\topen\r\n");
        let column = table.column("state").unwrap();
        let after = table.with_cell(&[3].into(), column, "done");
        assert_eq!(after, b"item\tstate\r\n1\topen\r\n2\tdone\r\n");
    }
}
