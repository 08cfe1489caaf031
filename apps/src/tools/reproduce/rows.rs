//! The numbers of a figure: a table for people, a CSV file for programs, and rows of a JSON document.

use equipoise_strategies::table::aligned;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A table whose columns have a name for programs and one for people.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: what programs call it (with its unit, as in `hops_per_byte`), and what people do.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    title: String,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A measured number; people see three digits after the point.
    Number(f64),
    /// Nothing: the paper does not print it, for example.
    Nothing,
}

impl Rows {
    /// An empty table with columns `(name for programs, title for people)`.
    pub fn new<N: Into<String>, T: Into<String>>(columns: impl IntoIterator<Item = (N, T)>) -> Self {
        let column = |(name, title): (N, T)| Column { name: name.into(), title: title.into() };
        Rows { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When it has more or fewer cells than there are columns.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(cells);
    }

    /// As lines for people.
    pub fn text(&self) -> String {
        let mut lines = vec![self.columns.iter().map(|column| column.title.clone()).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(Cell::for_people).collect()));
        aligned(&lines)
    }

    /// As CSV (RFC 4180, but for bare line feeds): a line of names, then a line per row; a cell without a
    /// value is empty.
    pub fn csv(&self) -> String {
        let names = self.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(",");
        let line = |row: &Vec<Cell>| row.iter().map(Cell::for_programs).collect::<Vec<_>>().join(",");
        let lines = [names].into_iter().chain(self.rows.iter().map(line));
        lines.map(|line| line + "\n").collect()
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

    fn for_people(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            // What is rounded to nothing has no sign.
            Cell::Number(number) => format!("{number:.3}").replace("-0.000", "0.000"),
            Cell::Nothing => String::new(),
        }
    }

    fn for_programs(&self) -> String {
        match self {
            Cell::Text(text) => quoted(text),
            Cell::Count(count) => count.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Nothing => String::new(),
        }
    }
}

/// A field of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_are_for_people_and_for_programs() {
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
