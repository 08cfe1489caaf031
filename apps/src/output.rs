//! The output of commands: the result on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;

use equipoise_model::{quote, table};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The format of results on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Tables and sentences.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One table of comma-separated values, if the result is a table.
    Csv,
}

/// The flag `--format`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormatArg {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

impl Format {
    /// Refuses CSV for a result, named `what`, that is not a table.
    ///
    /// # Errors
    /// If the format is CSV.
    pub fn refuse_csv(self, what: &str) -> Result<(), Failure> {
        match self {
            Format::Csv => Err(Failure::usage(format!(
                "--format csv: {what} cannot be shown as one table; use --format json"
            ))),
            Format::Text | Format::Json => Ok(()),
        }
    }
}

/// Prints a result that is not a table: its text, or its JSON document.
///
/// # Errors
/// If the format is CSV, or stdout cannot be written to.
pub fn show(format: Format, text: impl FnOnce() -> String, document: &impl Serialize) -> Result<(), Failure> {
    format.refuse_csv("the result")?;
    show_table(format, text, document, &[(); 0])
}

/// Prints a result that is a table: its text without control characters, its JSON document, or its `rows` as CSV.
///
/// The columns of the CSV are the fields of the rows, in order, with their names; a field of an object in a row is named
/// `object.field`. Lists have no column. Numbers are unrounded, and a value that is unknown is empty.
///
/// # Errors
/// If stdout cannot be written to.
pub fn show_table(
    format: Format,
    text: impl FnOnce() -> String,
    document: &impl Serialize,
    rows: &[impl Serialize],
) -> Result<(), Failure> {
    let text = match format {
        Format::Text => quote::printable(&text()),
        Format::Json => serde_json::to_string_pretty(document).map_err(Failure::bug)? + "\n",
        Format::Csv => csv(rows).map_err(Failure::bug)?,
    };
    print(&text)
}

/// Like [`show_table`], for rows that have the same columns; there may be none. Without rows, the CSV is the line of names.
///
/// # Errors
/// If stdout cannot be written to.
pub fn show_list<R: Serialize + Default>(
    format: Format,
    text: impl FnOnce() -> String,
    document: &impl Serialize,
    rows: &[R],
) -> Result<(), Failure> {
    if format != Format::Csv || !rows.is_empty() {
        return show_table(format, text, document, rows);
    }
    let sample = csv(&[R::default()]).map_err(Failure::bug)?;
    print(&format!("{}\n", sample.lines().next().unwrap_or_default()))
}

/// The rows as CSV. A column that a row lacks is empty.
fn csv(rows: &[impl Serialize]) -> serde_json::Result<String> {
    let mut fields_of_rows = Vec::with_capacity(rows.len());
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let mut fields = Vec::new();
        add_fields(String::new(), &serde_json::value::to_raw_value(row)?, &mut fields)?;
        for (name, _) in &fields {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        fields_of_rows.push(fields);
    }
    let mut lines = vec![names.clone()];
    for fields in fields_of_rows {
        let cell = |name: &String| fields.iter().find(|(of_field, _)| of_field == name);
        lines.push(names.iter().map(|name| cell(name).map_or_else(String::new, |it| it.1.clone())).collect());
    }
    Ok(table::csv(&lines))
}

/// Adds the names and values of the fields of a JSON value, which is named `name`.
fn add_fields(name: String, value: &RawValue, fields: &mut Vec<(String, String)>) -> serde_json::Result<()> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text)?;
            for (member, value) in members {
                let member = if name.is_empty() { member } else { format!("{name}.{member}") };
                add_fields(member, &value, fields)?;
            }
        }
        Some(b'[') => {}
        Some(b'"') => fields.push((name, serde_json::from_str(text)?)),
        Some(b'n') => fields.push((name, String::new())),
        // The digits of a number are those of the JSON document.
        _ => fields.push((name, text.to_string())),
    }
    Ok(())
}

/// The members of a JSON object in their order, which `serde_json::Map` does not keep.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Writes a result to stdout.
///
/// # Errors
/// If stdout cannot be written to; [`Failure::ReaderLeft`] if its reader has closed it.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
        _ => Failure::from(error).about("cannot write the result"),
    })
}

/// The error for a file whose content, read back, differs from what was written.
pub fn verification_failed(path: &Path) -> Failure {
    Failure::bug(format!(
        "verification failed: `{}` reads back differently from what was written (please report this bug)",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_csv_are_the_fields_of_the_rows_unrounded() {
        #[derive(Serialize)]
        struct Volume {
            hop_bytes: u128,
            #[serde(skip_serializing_if = "Option::is_none")]
            bound: Option<f64>,
        }
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
            seconds: f64,
            list: [u8; 2],
            #[serde(flatten)]
            volume: Volume,
            inner: Volume,
            unknown: Option<u64>,
        }
        let row = |name, hop_bytes, bound| Row {
            name,
            seconds: 1.0 / 3.0,
            list: [1, 2],
            volume: Volume { hop_bytes, bound },
            inner: Volume { hop_bytes: 0, bound: None },
            unknown: None,
        };
        let rows = [row("A:x=1,y=2", u128::MAX, None), row("say \"B\"\nagain", 7, Some(0.5))];
        assert_eq!(
            csv(&rows).expect("rows"),
            "name,seconds,hop_bytes,inner.hop_bytes,unknown,bound\n\
             \"A:x=1,y=2\",0.3333333333333333,340282366920938463463374607431768211455,0,,\n\
             \"say \"\"B\"\"\nagain\",0.3333333333333333,7,0,,0.5\n"
        );
    }
}
