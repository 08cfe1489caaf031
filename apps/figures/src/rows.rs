//! The numbers of a figure: as a text table, a CSV file, and rows of a JSON document.

use equipoise_model::table::{aligned, csv};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most rows that a text table shows.
const MOST_LINES: usize = 200;

/// A table. Columns have a name for CSV and JSON, and a title for text.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: its name (with its unit, as in `hops_per_byte`), and its title.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    title: String,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A measured number; text has three digits after the point.
    Number(f64),
    /// No value, for example because the paper does not print it.
    Nothing,
}

impl Rows {
    /// An empty table with columns `(name, title)`.
    pub fn new<N: Into<String>, T: Into<String>>(columns: impl IntoIterator<Item = (N, T)>) -> Self {
        let column = |(name, title): (N, T)| Column { name: name.into(), title: title.into() };
        Rows { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the number of cells is not the number of columns.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(cells);
    }

    /// As a text table; more than [`MOST_LINES`] rows are summarised.
    pub fn text(&self) -> String {
        if self.rows.len() > MOST_LINES {
            return self.summary();
        }
        let mut lines = vec![self.columns.iter().map(|column| column.title.clone()).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(Cell::for_people).collect()));
        aligned(&lines)
    }

    /// As a text table with a line for each run of rows with the same words: their number, and the least, the median and
    /// the largest number of each column.
    fn summary(&self) -> String {
        let is_word = |column: &usize| self.rows.iter().any(|row| matches!(row[*column], Cell::Text(_)));
        let (words, numbers): (Vec<usize>, Vec<usize>) = (0..self.columns.len()).partition(is_word);
        let title = |&column: &usize| self.columns[column].title.clone();
        let mut head: Vec<String> = words.iter().map(title).collect();
        head.push("rows".into());
        for column in &numbers {
            head.extend([title(column), "median".into(), "largest".into()]);
        }
        let mut lines = vec![head];
        for run in self.rows.chunk_by(|a, b| words.iter().all(|&column| a[column] == b[column])) {
            let mut line: Vec<String> = words.iter().map(|&column| run[0][column].for_people()).collect();
            line.push(run.len().to_string());
            for &column in &numbers {
                let mut cells: Vec<&Cell> = run.iter().map(|row| &row[column]).collect();
                cells.sort_by(|a, b| a.number().total_cmp(&b.number()));
                let last = cells.len() - 1;
                line.extend([0, last / 2, last].map(|at| cells[at].for_people()));
            }
            lines.push(line);
        }
        format!("{}The CSV file has all {} rows.\n", aligned(&lines), self.rows.len())
    }

    /// As CSV (RFC 4180, except that lines end with a line feed): a line of names, then a line per row. A cell without
    /// a value is empty.
    pub fn csv(&self) -> String {
        let mut lines = vec![self.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(Cell::for_programs).collect()));
        csv(&lines)
    }

    /// As objects of a JSON document.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let pairs = self.columns.iter().zip(row).map(|(column, cell)| (column.name.clone(), json!(cell)));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }
}

impl Cell {
    /// A measured number, if there is one.
    pub fn maybe(number: Option<f64>) -> Self {
        number.map_or(Cell::Nothing, Cell::Number)
    }

    /// The value of a number; without a number, a value below all others.
    fn number(&self) -> f64 {
        match self {
            Cell::Count(count) => *count as f64,
            Cell::Number(number) => *number,
            Cell::Text(_) | Cell::Nothing => f64::NEG_INFINITY,
        }
    }

    fn for_people(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            // A number that rounds to 0 has no sign.
            Cell::Number(number) => format!("{number:.3}").replace("-0.000", "0.000"),
            Cell::Nothing => String::new(),
        }
    }

    fn for_programs(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Nothing => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_summarised_as_text_only() {
        let mut rows = Rows::new([("platform", "platform"), ("seconds", "s")]);
        for at in 0..300 {
            let platform = if at < 100 { "grid" } else { "tree" };
            rows.push([Cell::Text(platform.into()), Cell::Count((at * 7) % 300)]);
        }
        let grid: Vec<u64> = (0..100).map(|at| at * 7 % 300).collect();
        let text = rows.text();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["platform", "rows", "s", "median", "largest"]);
        let (least, largest) = (grid.iter().min(), grid.iter().max());
        assert_eq!(lines[1][..3], ["grid", "100", &least.expect("100 rows").to_string()]);
        assert_eq!(lines[1][4], largest.expect("100 rows").to_string());
        assert_eq!(lines[2][..2], ["tree", "200"]);
        assert_eq!(text.lines().last(), Some("The CSV file has all 300 rows."));
        assert_eq!(rows.csv().lines().count(), 301);
    }

    #[test]
    fn text_csv_and_json_have_the_same_numbers() {
        let mut rows = Rows::new([("name", "strategy"), ("pes", "PEs"), ("hops_per_byte", "hops/byte")]);
        rows.push([Cell::Text("A:x=1,y=2".into()), Cell::Count(4), Cell::Number(1.0 / 3.0)]);
        rows.push([Cell::Text("say \"B\"".into()), Cell::Count(16), Cell::maybe(None)]);
        rows.push([Cell::Text("C".into()), Cell::Count(0), Cell::Number(-1e-5)]);
        assert_eq!(
            rows.text(),
            "strategy   PEs  hops/byte\nA:x=1,y=2    4      0.333\nsay \"B\"     16\nC            0      0.000\n"
        );
        assert_eq!(
            rows.csv(),
            "name,pes,hops_per_byte\n\"A:x=1,y=2\",4,0.3333333333333333\n\"say \"\"B\"\"\",16,\nC,0,-0.00001\n"
        );
        let expected = json!([
            { "name": "A:x=1,y=2", "pes": 4, "hops_per_byte": 1.0 / 3.0 },
            { "name": "say \"B\"", "pes": 16, "hops_per_byte": null },
            { "name": "C", "pes": 0, "hops_per_byte": -1e-5 },
        ]);
        assert_eq!(rows.json(), expected);
    }
}
