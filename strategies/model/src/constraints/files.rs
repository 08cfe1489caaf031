//! The files of constraints. Empty lines and lines that begin with `#` are ignored; numbers are separated by blanks, in groups, sizes and
//! phases also by commas.
//!
//! | file | lines |
//! |---|---|
//! | places | `object places`, or `object places seconds` for a wish; places as in `3`, `0-3,8`, `node:2`, `host:n17`, `!5` (all but PE 5) |
//! | groups | `together LEVEL objects` or `apart LEVEL objects`; the level is `pe`, `node` or `switch`, objects as in `0 1 4-7` |
//! | numbers by PE | one number per line, in PE order |
//! | sizes | `object bytes` |
//! | phases | `object seconds seconds ..`, one number per phase |

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Group, Level, MaxObjects, PerPe, Place, PlaceSet};
use crate::cells;
use crate::fault::{Classified, Fault};
use crate::files::{self, AtLine, Unread};
use crate::memory;
use crate::params::{are_seconds, parse_bytes};
use crate::quote::{quoted, shown};

/// Why a file of constraints cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}{what} `{}`: {unread}{or}", if matches!(.unread, Unread::System(_)) { "cannot read " } else { "" }, shown(.path))]
pub struct ConstraintsError {
    /// What the file holds.
    what: &'static str,
    /// The file.
    path: PathBuf,
    /// What is wrong.
    unread: Unread,
    /// What could stand in the place of the file.
    or: &'static str,
}

impl Classified for ConstraintsError {
    fn fault(&self) -> Fault {
        self.unread.fault()
    }
}

/// The largest number of objects in a range of a group.
const MAX_RANGE: u64 = 1 << 24;

/// Reads a file, and `parse`s its text.
fn read<T>(
    what: &'static str,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, AtLine>,
) -> Result<T, ConstraintsError> {
    let read = files::text(path).and_then(|text| parse(&text).map_err(Unread::Content));
    read.map_err(|unread| ConstraintsError { what, path: path.into(), unread, or: "" })
}

/// The lines that say something, with their numbers, each `parse`d.
fn lines<'a, T>(
    text: &'a str,
    mut parse: impl FnMut(&'a str) -> Result<T, String>,
) -> Result<Vec<(usize, T)>, AtLine> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = parse(line).map_err(|reason| (number, reason))?;
        memory::push(&mut found, (number, parsed)).map_err(|reason| (number, reason))?;
    }
    Ok(found)
}

fn number<T: FromStr>(what: &str, word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("expected {what}, found `{}`", quoted(word)))
}

fn seconds(word: &str) -> Result<f64, String> {
    let seconds = word.parse().ok().filter(|&seconds| are_seconds(seconds));
    seconds.ok_or_else(|| format!("expected seconds from 0, found `{}`", quoted(word)))
}

/// The first number of objects that has two lines.
fn twice<T>(found: &[(usize, T)], object: impl Fn(&T) -> u64) -> Result<(), AtLine> {
    let mut known = FxHashMap::default();
    for (line, entry) in found {
        let object = object(entry);
        if let Some(earlier) = known.insert(object, *line) {
            let reason = format!("object {object} already has line {earlier}; remove one of the two lines");
            return Err((*line, reason));
        }
    }
    Ok(())
}

impl PlaceSet {
    pub(crate) fn parse(text: &str) -> Result<PlaceSet, String> {
        let mut set = PlaceSet { text: text.into(), ..PlaceSet::default() };
        let listed = match text.strip_prefix('!') {
            Some(listed) => {
                set.is_complement = true;
                listed
            }
            None => text,
        };
        for part in listed.split(',') {
            if let Some(host) = part.strip_prefix("host:").filter(|host| !host.is_empty()) {
                set.hosts.push(host.into());
                continue;
            }
            let (is_node, part) = match part.strip_prefix("node:") {
                Some(nodes) => (true, nodes),
                None => (false, part),
            };
            let (first, last) = range(part, "places such as 3, 0-3,8, node:2, host:n17 or !5")?;
            set.ranges.push((first, last, is_node));
        }
        Ok(set)
    }
}

/// The first and the last number of `A-B` or `A`.
fn range<T: FromStr + PartialOrd>(text: &str, expected: &str) -> Result<(T, T), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (T, T) = (number(expected, first)?, number(expected, last)?);
    if first > last {
        return Err(format!("the range `{}` is empty; write the lower number first", quoted(text)));
    }
    Ok((first, last))
}

impl Place {
    /// Reads a file of places.
    ///
    /// # Errors
    /// If the file cannot be read, a line is not understood, or an object must be at two lines' places.
    pub fn read(path: &Path) -> Result<Vec<Place>, ConstraintsError> {
        read("the list of fixed tasks", path, Place::parse)
    }

    /// Parses the lines of a file of places.
    ///
    /// # Errors
    /// The line and the reason.
    pub fn parse(text: &str) -> Result<Vec<Place>, AtLine> {
        let mut sets: FxHashMap<&str, Arc<PlaceSet>> = FxHashMap::default();
        let found = lines(text, |line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (object, places, worth) = match *words {
                [object, places] => (object, places, None),
                [object, places, worth] => (object, places, Some(seconds(worth)?)),
                _ => {
                    return Err(format!(
                        "expected `object places`, or `object places seconds` for a wish, found `{}`",
                        quoted(line)
                    ));
                }
            };
            let object = number("the number of an object", object)?;
            let set = match sets.get(places) {
                Some(set) => Arc::clone(set),
                None => Arc::clone(sets.entry(places).or_insert(Arc::new(PlaceSet::parse(places)?))),
            };
            Ok(Place { object, set, worth_seconds: worth })
        })?;
        let hard: Vec<(usize, &Place)> = found
            .iter()
            .filter(|of| of.1.worth_seconds.is_none())
            .map(|(line, place)| (*line, place))
            .collect();
        twice(&hard, |place| place.object)?;
        Ok(found.into_iter().map(|of| of.1).collect())
    }
}

impl Group {
    /// Reads a file of groups.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not understood.
    pub fn read(path: &Path) -> Result<Vec<Group>, ConstraintsError> {
        read("the groups", path, Group::parse)
    }

    /// Parses the lines of a file of groups.
    ///
    /// # Errors
    /// The line and the reason.
    pub fn parse(text: &str) -> Result<Vec<Group>, AtLine> {
        let found = lines(text, |line| {
            let expected = || {
                format!(
                    "expected `together LEVEL objects` or `apart LEVEL objects`, found `{}`",
                    quoted(line)
                )
            };
            let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let together = match words.next() {
                Some("together") => true,
                Some("apart") => false,
                _ => return Err(expected()),
            };
            let level = match words.next() {
                Some("pe") => Level::Pe,
                Some("node") => Level::Node,
                Some("switch") => Level::Switch,
                _ => return Err(format!("{}; the level is pe, node or switch", expected())),
            };
            let mut objects = Vec::new();
            for word in words {
                let (first, last): (u64, u64) = range(word, "objects such as 3 or 4-7")?;
                if last - first >= MAX_RANGE {
                    return Err(format!("the range `{}` has more than {MAX_RANGE} objects", quoted(word)));
                }
                for object in first..=last {
                    memory::push(&mut objects, object)?;
                }
            }
            match objects.iter().any(|object| *object != objects[0]) {
                true => Ok(Group { together, level, objects }),
                false => Err(format!("{}; a group has at least two objects", expected())),
            }
        })?;
        Ok(found.into_iter().map(|of| of.1).collect())
    }
}

impl PerPe {
    /// The number for all PEs, or the file with a number for each.
    ///
    /// # Errors
    /// If it is no number, and the file cannot be read or a line is no number.
    pub fn read(what: &'static str, text: &str) -> Result<PerPe, ConstraintsError> {
        if let Ok(number) = parse_bytes(text) {
            return Ok(PerPe::All(number));
        }
        let parse = |line: &str| {
            parse_bytes(line).map_err(|_| format!("expected a number, found `{}`", quoted(line)))
        };
        read(what, Path::new(text), |text| {
            Ok(PerPe::Each(lines(text, parse)?.into_iter().map(|of| of.1).collect()))
        })
        .map_err(|error| match error.unread {
            Unread::System(_) => ConstraintsError {
                or: ", or give a whole number such as 4096, 44M or 1e9 for all PEs",
                ..error
            },
            Unread::Content(_) => error,
        })
    }
}

impl MaxObjects {
    /// `N`, `FILE`, or one of them with `,exact`.
    ///
    /// # Errors
    /// As for [`PerPe::read`].
    pub fn read(text: &str) -> Result<MaxObjects, ConstraintsError> {
        let (most, exact) = match text.strip_suffix(",exact") {
            Some(most) => (most, true),
            None => (text, false),
        };
        let most = PerPe::read("the largest numbers of objects", most).map_err(|error| match error.or {
            "" => error,
            _ => {
                ConstraintsError { or: ", or give a whole number for all PEs, such as 4 or 4,exact", ..error }
            }
        })?;
        Ok(MaxObjects { most, exact })
    }
}

/// Reads a file of sizes: the bytes of objects, by id.
///
/// # Errors
/// If the file cannot be read, a line is not understood, or an object has two lines.
pub fn sizes(path: &Path) -> Result<Vec<(u64, u64)>, ConstraintsError> {
    read("the sizes of objects", path, |text| {
        let found = lines(text, |line| match *cells::numbers(line)? {
            [object, size] => Ok((
                number("the number of an object", object)?,
                parse_bytes(size).map_err(|expected| format!("{expected}, found `{}`", quoted(size)))?,
            )),
            _ => Err(format!("expected `object bytes`, found `{}`", quoted(line))),
        })?;
        twice(&found, |of| of.0)?;
        Ok(found.into_iter().map(|of| of.1).collect())
    })
}

/// Reads a file of phases: the load of objects in each phase, in seconds, by id.
///
/// # Errors
/// If the file cannot be read, a line is not understood or has another number of phases, or an object has two lines.
pub fn phases(path: &Path) -> Result<Vec<(u64, Vec<f64>)>, ConstraintsError> {
    read("the loads by phase", path, |text| {
        let mut width = None;
        let found = lines(text, |line| {
            let cells = cells::numbers(line)?;
            let (object, loads) = cells.split_first().ok_or("expected `object seconds seconds ..`")?;
            let phases = *width.get_or_insert(loads.len());
            if loads.is_empty() || loads.len() != phases {
                return Err(format!(
                    "expected an object and {} of seconds, found `{}`",
                    crate::table::count(phases.max(1) as u64, "number"),
                    quoted(line)
                ));
            }
            let loads = loads.iter().map(|load| seconds(load)).collect::<Result<_, _>>()?;
            Ok((number("the number of an object", object)?, loads))
        })?;
        if found.is_empty() {
            return Err((
                1,
                "expected a line `object seconds seconds ..` for every object, found none".into(),
            ));
        }
        twice(&found, |of: &(u64, Vec<f64>)| of.0)?;
        Ok(found.into_iter().map(|of| of.1).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn place_fails(text: &str, expected: &str) {
        let (line, reason) = Place::parse(text).expect_err(expected);
        let error = format!("line {line}: {reason}");
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn places_are_ranges_nodes_and_complements() {
        let places = Place::parse("# none\n0 3\n\n1\t0-3,8\n2 !node:2\n 2 5 0.5\n").expect("places");
        let shown = places.iter().map(|place| {
            (place.object, place.set.is_complement, place.set.ranges.clone(), place.worth_seconds)
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                (0, false, vec![(3, 3, false)], None),
                (1, false, vec![(0, 3, false), (8, 8, false)], None),
                (2, true, vec![(2, 2, true)], None),
                (2, false, vec![(5, 5, false)], Some(0.5)),
            ]
        );
        let hosts = Place::parse("0 host:n1,2,host:n-2").expect("places");
        assert_eq!(
            (&hosts[0].set.hosts[..], &hosts[0].set.ranges[..]),
            (&["n1".into(), "n-2".into()][..], &[(2, 2, false)][..])
        );
        place_fails("0 host:", "expected places such as");
        place_fails("0 1\nx 1", "line 2: expected the number of an object, found `x`");
        place_fails("1 1 1 1", "line 1: expected `object places`");
        place_fails("1 3-2", "the range `3-2` is empty");
        place_fails("1 1 -1", "expected seconds from 0, found `-1`");
        place_fails("0 1\n1 1\n0 0", "line 3: object 0 already has line 1");
    }

    #[test]
    fn groups_have_a_level_and_objects() {
        let groups = Group::parse("together node 0, 1 4-6\napart pe 0 1").expect("groups");
        let expected = [
            Group { together: true, level: Level::Node, objects: vec![0, 1, 4, 5, 6] },
            Group { together: false, level: Level::Pe, objects: vec![0, 1] },
        ];
        assert_eq!(groups, expected);
        for (text, expected) in [
            ("near pe 0 1", "expected `together LEVEL"),
            ("apart rack 0 1", "the level is pe, node or switch"),
            ("apart pe 0", "at least two objects"),
            ("together node 0 0", "at least two objects"),
            ("apart pe 0-99999999999", "more than"),
        ] {
            let (_, reason) = Group::parse(text).expect_err(text);
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn numbers_of_pes_and_sizes_may_have_units() {
        assert_eq!(MaxObjects::read("4,exact").expect("exact").most, PerPe::All(4));
        assert_eq!(
            ["7", "2k", "3MB", "1GiB", "1.5k", "1e9", "2T"].map(|text| parse_bytes(text).ok()),
            [7, 2048, 3 << 20, 1 << 30, 1536, 1_000_000_000, 2 << 40].map(Some)
        );
        assert_eq!(
            ["x", "", "-1", "0.5", "k", "nan", "1e300", "18446744073709551615k", "5i"]
                .map(|text| parse_bytes(text).ok()),
            [None; 9]
        );
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let file = write("most", "# by PE\n1\n2\n");
        let read = PerPe::read("numbers", file.to_str().expect("a name")).expect("numbers");
        assert_eq!(read, PerPe::Each(vec![1, 2]));
        assert_eq!(sizes(&write("sizes", "0 10\n1, 2k\n")).expect("sizes"), [(0, 10), (1, 2048)]);
        let loads = phases(&write("phases", "1 0.5 0\n0 1 2\n")).expect("phases");
        assert_eq!(loads, [(1, vec![0.5, 0.0]), (0, vec![1.0, 2.0])]);
        let none = phases(&write("none", "# no object\n")).expect_err("no line").to_string();
        assert!(none.contains("a line `object seconds seconds ..` for every object, found none"), "{none}");
        let error = phases(&write("uneven", "1 0.5 0\n0 1\n")).expect_err("uneven").to_string();
        assert!(error.contains("line 2: expected an object and 2 numbers of seconds"), "{error}");
        let error = sizes(&write("twice", "1 5\n1 6\n")).expect_err("twice").to_string();
        assert!(error.contains("line 2: object 1 already has line 1"), "{error}");
        let error = PerPe::read("the bytes", "missing").expect_err("no file");
        assert_eq!(error.fault(), Fault::Usage);
    }
}
