//! Arrays of NumPy (`.npy`, versions 1 to 3) of integers and floating-point numbers.
//!
//! The reader is our own: the crates for this format multiply the numbers of the shape without a check, reserve as much memory
//! as the header claims, and need a parser of Python's literals. The header is a dictionary with three keys.

use super::{Numbers, checked, empty};
use crate::memory;

/// The first bytes of a file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read.
const LONGEST_HEADER: usize = 1 << 16;

/// The header: the type of the numbers, whether the first index varies fastest, and the shape.
#[derive(Debug, PartialEq)]
struct Header {
    kind: Kind,
    is_fortran: bool,
    shape: Vec<usize>,
}

/// The type of the numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    is_big_endian: bool,
    /// `f`, `i`, `u` or `b` (truth values).
    letter: char,
    bytes: usize,
}

/// Reads a file whose array has at most `most` dimensions. Also returns the second size of three.
pub(super) fn read(bytes: &[u8], most: usize) -> Result<(Numbers, Option<usize>), String> {
    let (header, data) = parts(bytes)?;
    let Header { kind, is_fortran, shape } = parse(header)?;
    let Some((&columns, before)) = shape.split_last() else {
        return Err("the array has no dimension; give an array with a row per layer".into());
    };
    if shape.len() > most {
        let expected = match most {
            2 => "an array with a row per layer, such as one window of the records or their sum",
            _ => "an array of layers, rows of a layer, and columns",
        };
        return Err(format!("the shape {shape:?} has {} dimensions; give {expected}", shape.len()));
    }
    let too_large = || format!("the shape {shape:?} is too large; write a smaller array");
    let rows = before.iter().try_fold(1usize, |rows, size| rows.checked_mul(*size)).ok_or_else(too_large)?;
    let numbers = rows.checked_mul(columns).ok_or_else(too_large)?;
    let expected = numbers.checked_mul(kind.bytes).ok_or_else(too_large)?;
    if data.len() != expected {
        return Err(format!(
            "the shape {shape:?} needs {expected} bytes of numbers, and the file has {}; write the array again, the file may be \
             truncated",
            data.len()
        ));
    }
    if numbers == 0 {
        return Err(empty());
    }
    memory::check(8 * numbers as u64, "an array of numbers", memory::SMALLER_FILE)?;
    let number = |row: usize, column: usize| {
        let at = if is_fortran { fortran(row, before) + column * rows } else { row * columns + column };
        let number = kind.number(&data[at * kind.bytes..(at + 1) * kind.bytes]);
        checked(number).map_err(|reason| format!("row {row}, column {column} (from 0): {reason}"))
    };
    let row =
        |row: usize| (0..columns).map(|column| number(row, column)).collect::<Result<Vec<f64>, String>>();
    let numbers = Numbers { rows: (0..rows).map(row).collect::<Result<_, _>>()? };
    Ok((numbers, (shape.len() == 3).then(|| shape[1])))
}

/// The position of a row, whose last index varies fastest, in an array whose first index varies fastest.
fn fortran(mut row: usize, sizes: &[usize]) -> usize {
    let mut stride: usize = sizes.iter().product();
    let mut at = 0;
    for &size in sizes.iter().rev() {
        stride /= size;
        at += row % size * stride;
        row /= size;
    }
    at
}

/// The text of the header, and the bytes after it.
fn parts(bytes: &[u8]) -> Result<(&str, &[u8]), String> {
    let not_npy = || "this is not a file of numpy.save; write the array with numpy.save".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(not_npy)?;
    let truncated = || "the header is truncated; write the array again with numpy.save".to_string();
    let (version, rest) = rest.split_at_checked(2).ok_or_else(truncated)?;
    let length = match version[0] {
        1 => 2,
        2 | 3 => 4,
        other => {
            return Err(format!("version {other} of the format is unknown; write the array with numpy.save"));
        }
    };
    let (size, rest) = rest.split_at_checked(length).ok_or_else(truncated)?;
    let size = size.iter().rev().fold(0usize, |size, &byte| size << 8 | usize::from(byte));
    if size > LONGEST_HEADER {
        return Err(format!("the header has {size} bytes; write the array with numpy.save"));
    }
    let (header, data) = rest.split_at_checked(size).ok_or_else(truncated)?;
    Ok((std::str::from_utf8(header).map_err(|_| not_npy())?, data))
}

/// Parses a header such as `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 12), }`.
fn parse(header: &str) -> Result<Header, String> {
    let value = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let found = quoted.iter().find_map(|quoted| header.split_once(quoted.as_str()));
        let value = found.and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        value
            .map(str::trim_start)
            .ok_or_else(|| format!("the header lacks `{key}`; write the array with numpy.save"))
    };
    let order = value("fortran_order")?;
    let is_fortran = order.starts_with("True");
    if !is_fortran && !order.starts_with("False") {
        return Err("`fortran_order` is neither True nor False; write the array with numpy.save".into());
    }
    let shape =
        value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(shape, _)| shape);
    let sizes = shape.map(|shape| shape.split(',').map(str::trim).filter(|size| !size.is_empty()));
    let sizes = sizes.and_then(|sizes| sizes.map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>());
    let shape = sizes.ok_or("the shape is not a tuple of numbers; write the array with numpy.save")?;
    Ok(Header { kind: kind(value("descr")?)?, is_fortran, shape })
}

/// The type with the name at the begin of `text`, in quotes.
fn kind(text: &str) -> Result<Kind, String> {
    let name = text.get(1..).and_then(|rest| rest.split(['\'', '"']).next()).unwrap_or_default();
    let unknown = || {
        format!(
            "the type `{name}` is not supported; convert the array with astype('float64') before numpy.save"
        )
    };
    let (order, rest) = name.split_at_checked(1).ok_or_else(unknown)?;
    let (letter, size) = rest.split_at_checked(1).ok_or_else(unknown)?;
    let kind = Kind {
        is_big_endian: order == ">",
        letter: letter.chars().next().unwrap_or_default(),
        bytes: size.parse().map_err(|_| unknown())?,
    };
    let is_known = match kind.letter {
        'f' => [4, 8].contains(&kind.bytes),
        'i' | 'u' => [1, 2, 4, 8].contains(&kind.bytes),
        'b' => kind.bytes == 1,
        _ => false,
    };
    let is_order = ["<", ">", "|", "="].contains(&order);
    if is_known && is_order && (text.starts_with('\'') || text.starts_with('"')) {
        Ok(kind)
    } else {
        Err(unknown())
    }
}

impl Kind {
    /// The number in these bytes.
    fn number(self, bytes: &[u8]) -> f64 {
        let add = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        let bits =
            if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
        let unused = 64 - 8 * self.bytes as u32;
        match (self.letter, self.bytes) {
            ('f', 4) => f64::from(f32::from_bits(bits as u32)),
            ('f', _) => f64::from_bits(bits),
            // The sign is the highest bit of the number.
            ('i', _) => ((bits << unused) as i64 >> unused) as f64,
            _ => bits as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as `numpy.save` writes it.
    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        let size = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let header = format!("{text:width$}\n", width = size - 1);
        [MAGIC, &[1, 0], &(size as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&[&[f64]], &str>) {
        let found = read(bytes, 3).map(|(numbers, _)| numbers.rows);
        match (&found, expected) {
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            _ => assert_eq!(
                found.as_deref(),
                Ok(&expected
                    .map_or(vec![], |rows| { rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>() })[..])
            ),
        }
    }

    #[test]
    fn numbers_of_all_types_are_read() {
        let rows: &[&[f64]] = &[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]];
        let all = [1u8, 2, 3, 4, 5, 6];
        let bytes =
            |of: &dyn Fn(u8) -> Vec<u8>| all.iter().flat_map(|&number| of(number)).collect::<Vec<_>>();
        check(&file("<f8", "False", "(2, 3)", &bytes(&|it| f64::from(it).to_le_bytes().to_vec())), Ok(rows));
        check(&file(">f4", "False", "(2, 3)", &bytes(&|it| f32::from(it).to_be_bytes().to_vec())), Ok(rows));
        check(&file("<i8", "False", "(2, 3)", &bytes(&|it| i64::from(it).to_le_bytes().to_vec())), Ok(rows));
        check(&file(">u2", "False", "(2, 3)", &bytes(&|it| u16::from(it).to_be_bytes().to_vec())), Ok(rows));
        check(&file("|u1", "False", "(2, 3)", &all), Ok(rows));
        check(&file("|u1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]), Ok(rows));
        check(&file("|u1", "False", "(6,)", &all), Ok(&[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]));
        let three: &[&[f64]] = &[&[1.0], &[2.0], &[3.0], &[4.0]];
        check(&file("|b1", "False", "(2, 2, 1)", &[1, 2, 3, 4]), Ok(three));
        check(&file("|u1", "True", "(2, 2, 1)", &[1, 3, 2, 4]), Ok(three));
    }

    #[test]
    fn arrays_of_windows_are_no_tables() {
        let windows = file("|u1", "False", "(2, 2, 1)", &[1, 2, 3, 4]);
        assert_eq!(read(&windows, 3).map(|found| found.1), Ok(Some(2)));
        let error = read(&windows, 2).expect_err("a table has two dimensions");
        assert!(
            error.starts_with("the shape [2, 2, 1] has 3 dimensions; give an array with a row per layer")
        );
        assert!(read(&file("|u1", "False", "(1, 2, 2, 1)", &[1, 2, 3, 4]), 3).is_err());
    }

    #[test]
    fn damaged_arrays_are_refused_with_a_remedy() {
        let whole = file("<f8", "False", "(1, 2)", &[0; 16]);
        check(
            &whole[..whole.len() - 1],
            Err("needs 16 bytes of numbers, and the file has 15; write the array again"),
        );
        for length in [0, 5, 7, 9, 40] {
            assert!(read(&whole[..length], 2).is_err(), "{length}");
        }
        check(&file("<f2", "False", "(1, 2)", &[0; 4]), Err("the type `<f2` is not supported"));
        check(&file("|O", "False", "(1, 2)", &[0; 4]), Err("the type `|O` is not supported"));
        check(
            &file("<i1", "False", "(1, 2)", &[1, 255]),
            Err("row 0, column 1 (from 0): expected a number from 0"),
        );
        let nan = f64::NAN.to_le_bytes();
        check(
            &file("<f8", "False", "(1, 1)", &nan),
            Err("row 0, column 0 (from 0): expected a number from 0"),
        );
        check(&file("<f8", "False", "()", &nan), Err("the array has no dimension"));
        check(&file("<f8", "False", "(0, 3)", &[]), Err("there are no numbers"));
        check(&file("<f8", "False", "(99999999999, 99999999999)", &[]), Err("is too large"));
        check(&file("<f8", "No", "(1, 1)", &nan), Err("`fortran_order` is neither True nor False"));
        check(&file("<f8", "False", "[1, 1]", &nan), Err("the shape is not a tuple"));
        check(b"\x93NUMPY\x09\x00", Err("version 9"));
        check(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{}", Err("the header has 2147483647 bytes"));
    }
}
