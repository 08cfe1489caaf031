//! Writing database files in all formats, at once or step by step.

use std::io;
use std::path::{Path, PathBuf};

use super::file::check_order;
use super::{Database, DatabaseError, Dump, binary, json, vt};
use crate::constraints::Constraints;
use crate::files::{self, NewFile, Refused, can_write_whole, finish_all, write_whole};

/// Writes a database file while a run proceeds: each step is encoded, appended and forgotten.
///
/// The file grows under a temporary name (see [`NewFile`]), which can be read like the finished file if it is binary.
/// If the writer is dropped, or [`files::interrupt`] is called, before [`Self::finish`], the file has the steps so far.
/// LB data of vt have a file per rank with all steps, so they are collected and written at the end.
pub struct DumpWriter {
    path: PathBuf,
    body: Body,
    /// The number of the last step.
    last: Option<u64>,
    /// Whether an unfinished file is of use.
    keeps: bool,
}

enum Body {
    Binary(NewFile, binary::Encoder),
    Json(NewFile),
    Ranks(Dump),
}

impl DumpWriter {
    /// Begins the file at `path`, in the format that [`Dump::write`] chooses.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn record(
        path: impl AsRef<Path>,
        program: &str,
        topology: &str,
    ) -> Result<DumpWriter, DatabaseError> {
        DumpWriter::new(path.as_ref(), program, topology, true)
    }

    fn new(path: &Path, program: &str, topology: &str, keeps: bool) -> Result<DumpWriter, DatabaseError> {
        let refused = |refused| DatabaseError::Refused { path: path.into(), refused };
        let failed = |source| DatabaseError::Write { path: path.into(), source };
        check_name(path)?;
        let body = if vt::is_pattern(path) {
            Body::Ranks(Dump { program: program.into(), topology: topology.into(), ..Dump::default() })
        } else {
            let mut file = NewFile::create(path).map_err(failed)?;
            if is_json(path) {
                file.append(&json::begin(program, topology, json::VERSION).map_err(refused)?)
                    .map_err(failed)?;
                Body::Json(file)
            } else {
                let (encoder, begin) = binary::Encoder::new(program, topology).map_err(refused)?;
                file.append(&begin).map_err(failed)?;
                Body::Binary(file, encoder)
            }
        };
        Ok(DumpWriter { path: path.into(), body, last: None, keeps })
    }

    /// Appends a step.
    ///
    /// # Errors
    /// If the step is inconsistent or not after the previous one, or the file system reports an error.
    pub fn push(&mut self, database: &Database) -> Result<(), DatabaseError> {
        let step = database.step;
        let refused = |refused| DatabaseError::Refused { path: self.path.clone(), refused };
        let failed = |source| DatabaseError::Write { path: self.path.clone(), source };
        check_order(self.last.into_iter().chain([step])).map_err(refused)?;
        database.check().map_err(|e| refused(Refused(format!("cannot hold step {step}: {e}"))))?;
        let (file, part, tail) = match &mut self.body {
            Body::Ranks(dump) => {
                dump.steps.push(database.clone());
                self.last = Some(step);
                return Ok(());
            }
            Body::Binary(file, encoder) => (file, encoder.step(database), &[][..]),
            Body::Json(file) => (file, json::step(database, json::VERSION, self.last.is_none()), json::END),
        };
        file.append(&part.map_err(refused)?).map_err(failed)?;
        if self.keeps {
            file.keep(tail, format!("the load-balancing steps up to {step}"));
        }
        self.last = Some(step);
        Ok(())
    }

    /// Ends the file before it is complete, as dropping it does. Returns a clause about the steps that the file holds; none
    /// if it holds no step, for LB data of vt, and for pipes and devices.
    pub fn abandon(self) -> Option<String> {
        match self.body {
            Body::Ranks(_) => None,
            Body::Binary(file, _) | Body::Json(file) => file.abandon(),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn finish(self) -> Result<(), DatabaseError> {
        let path = self.path;
        let refused = |refused| DatabaseError::Refused { path: path.clone(), refused };
        let finish = |mut file: NewFile, end: &[u8]| file.append(end).and_then(|()| file.finish());
        let finished = match self.body {
            Body::Ranks(dump) => return dump.write_ranks(&path),
            Body::Binary(file, encoder) => finish(file, &encoder.end().map_err(refused)?),
            Body::Json(file) => finish(file, json::END),
        };
        finished.map_err(|source| DatabaseError::Write { path, source })
    }
}

impl Dump {
    /// Writes the dump to `path`: as JSON if the name ends in `.json`, as LB data of vt if the name contains `%p` for
    /// the rank (compressed if it ends in `.br`), otherwise in binary.
    ///
    /// Files are replaced atomically, and those of all ranks together; after an error, the old files remain.
    ///
    /// # Errors
    /// If a step is inconsistent, steps are not in ascending order, or the file system reports an error.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        if vt::is_pattern(path) {
            return self.write_ranks(path);
        }
        let mut writer = DumpWriter::new(path, &self.program, &self.topology, false)?;
        self.steps.iter().try_for_each(|database| writer.push(database))?;
        writer.finish()
    }

    /// Writes the dump to `path` in an older version of its format, for programs that do not read the current one.
    ///
    /// # Errors
    /// As for [`Self::write`], and if there is no such version, or it cannot hold the content.
    pub fn write_version(&self, path: impl AsRef<Path>, version: u32) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        Self::can_write_version(path, version)?;
        let refused = |refused| DatabaseError::Refused { path: path.into(), refused };
        check_order(self.steps.iter().map(|database| database.step)).map_err(refused)?;
        for database in &self.steps {
            let step = database.step;
            database.check().map_err(|e| refused(Refused(format!("cannot hold step {step}: {e}"))))?;
        }
        let (format, newest) = versions(path);
        let constrained =
            self.steps.iter().find(|database| version < newest && !database.constraints.is_empty());
        if let Some(Database { step, .. }) = constrained {
            return Err(refused(Refused(format!(
                "cannot hold step {step} in version {version} of {format}: it has constraints, which version {newest} can hold"
            ))));
        }
        let without = self.steps.iter().find(|database| version == 1 && !database.communication_recorded);
        if let Some(Database { step, .. }) = without {
            return Err(refused(Refused(format!(
                "cannot hold step {step} in version 1 of {format}: communication was not recorded, and version 1 \
                 cannot say so; choose version 2"
            ))));
        }
        let bytes = if is_json(path) { json::encode(self, version) } else { binary::encode(self, version) };
        write_whole(path, &bytes.map_err(refused)?)
            .map_err(|source| DatabaseError::Write { path: path.into(), source })
    }

    /// Checks that the format of `path` has this version.
    ///
    /// # Errors
    /// If it has not; the error lists the versions.
    pub fn can_write_version(path: impl AsRef<Path>, version: u32) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        check_name(path)?;
        let (format, newest) = versions(path);
        let reason = if vt::is_pattern(path) {
            "LB data of vt have no versions; leave out the version".into()
        } else if (1..=newest).contains(&version) {
            return Ok(());
        } else {
            format!("{format} have versions 1 to {newest}; choose one of them")
        };
        Err(DatabaseError::Version { path: path.into(), version, reason })
    }

    /// What the file `path`, in this version of a database (`None`: the newest), leaves out of the dump. A task graph (`is_graph`) and LB
    /// data of vt leave out all that only our own databases have.
    pub fn left_out(
        &self,
        path: impl AsRef<Path>,
        version: Option<u32>,
        is_graph: bool,
    ) -> Vec<&'static str> {
        let path = path.as_ref();
        let is_others = is_graph || vt::is_pattern(path);
        let lacks_costs = is_others || version.is_some_and(|version| version < versions(path).1);
        let has = |is: fn(&Database) -> bool| self.steps.iter().any(is);
        let costs = lacks_costs && has(|database| database.costs.is_some());
        let constraints = is_others && has(|database| !database.constraints.is_empty());
        [(costs, "costs of messages and migrations"), (constraints, "constraints")]
            .into_iter()
            .filter_map(|(is_left_out, what)| is_left_out.then_some(what))
            .collect()
    }

    /// Reads the file written by [`Self::write`] again and compares the content.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn reads_back(&self, path: impl AsRef<Path>) -> Result<bool, DatabaseError> {
        let again = Dump::read(path.as_ref())?;
        if vt::is_pattern(path.as_ref()) {
            return Ok(vt::is_same(self, &again));
        }
        // Older versions and other formats have no costs and no constraints.
        let is_same_step = |(step, again): (&Database, &Database)| {
            step == again
                || again.costs.is_none()
                    && Database { costs: None, constraints: Constraints::default(), ..step.clone() } == *again
        };
        let are_same_steps =
            self.steps.len() == again.steps.len() && self.steps.iter().zip(&again.steps).all(is_same_step);
        let is_same = (&self.program, &self.topology) == (&again.program, &again.topology) && are_same_steps;
        Ok(is_same && again.warnings.is_empty())
    }

    /// Writes LB data of vt, one file per PE; the PE number replaces `%p` in the name.
    fn write_ranks(&self, path: &Path) -> Result<(), DatabaseError> {
        let refused = |refused| DatabaseError::Refused { path: path.into(), refused };
        check_order(self.steps.iter().map(|database| database.step)).map_err(refused)?;
        let pes = self.steps.first().map_or(0, |database| database.pes.len());
        if let Ok(Some(there)) = files::of_ranks(path)
            && there.len() > pes
        {
            // A reader would take this file for a further rank of this dump.
            let sentence = format!(
                "`{}` exists and belongs to a dump with more ranks; remove it or give another name",
                there[pes].display()
            );
            let source = io::Error::new(io::ErrorKind::AlreadyExists, sentence);
            return Err(DatabaseError::Write { path: path.into(), source });
        }
        let encoder = vt::Encoder::new(self).map_err(refused)?;
        let mut ranks = Vec::new();
        for rank in 0..pes {
            let mut bytes = encoder.text(rank).map_err(refused)?;
            let path = of_rank(path, rank);
            let failed = |source| DatabaseError::Write { path: path.clone(), source };
            if vt::is_packed(&path) {
                bytes = vt::pack(&bytes).map_err(failed)?;
            }
            let mut file = NewFile::create(&path).map_err(failed)?;
            // The file is closed: there may be more ranks than a process may have open files.
            file.append(&bytes).and_then(|()| file.complete()).map_err(failed)?;
            ranks.push(file);
        }
        finish_all(ranks).map_err(|source| DatabaseError::Write { path: path.into(), source })
    }

    /// Checks early whether [`Self::write`] can create a file at `path`; free space is not checked.
    ///
    /// # Errors
    /// If the file system does not allow it.
    pub fn can_write(path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        let place = if vt::is_pattern(path) { of_rank(path, 0) } else { path.into() };
        can_write_whole(&place).map_err(|source| DatabaseError::Write { path: path.into(), source })
    }
}

/// The format that the name of a file chooses, as a plural, and its newest version.
fn versions(path: &Path) -> (&'static str, u32) {
    match is_json(path) {
        true => ("JSON databases", json::VERSION),
        false => ("binary databases", binary::VERSION),
    }
}

/// Whether a database with this name is JSON.
fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Refuses a name that asks for a compressed file of our own.
fn check_name(path: &Path) -> Result<(), DatabaseError> {
    if !vt::is_packed(path) || vt::is_pattern(path) {
        return Ok(());
    }
    let sentence = "only LB data of vt can be compressed, with one file per rank; give a name such as \
                    data.%p.json.br";
    let source = io::Error::new(io::ErrorKind::InvalidInput, sentence);
    Err(DatabaseError::Write { path: path.into(), source })
}

/// The file name for a rank.
fn of_rank(path: &Path, rank: usize) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(name.replacen("%p", &rank.to_string(), 1))
}
