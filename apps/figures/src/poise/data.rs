//! The inputs of the figures of `PoiseLB`: generated databases that are similar to recorded ones, and those of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use equipoise_model::Database;
use equipoise_model::fault::Classified as _;
use equipoise_strategies::workloads;

use crate::balanced::mixed;
use equipoise_apps::Failure;

/// A database of communicating objects, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) database: Database,
}

/// The `wanted` files of a folder, sorted by name; files without a database are left out with a warning.
///
/// # Errors
/// If the folder cannot be read, or has no such file.
pub(crate) fn of_folder(
    folder: &Path,
    kind: &str,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<Named>, Failure> {
    let shown = folder.display();
    let remedy = "choose a readable folder with --data, or leave out --data";
    let entries = fs::read_dir(folder).map_err(|error| {
        Failure::Of(error.fault(), format!("cannot read the folder `{shown}`: {error}; {remedy}"))
    })?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_file() && wanted(path));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().replace(',', "_")).unwrap_or_default();
        match workloads::load(&path.to_string_lossy()) {
            Ok(database) if database.communication_recorded => all.push(Named { name, database }),
            Ok(_) => equipoise::warn(&format!(
                "`{}` is left out: its communication was not recorded",
                path.display()
            )),
            Err(error) => equipoise::warn(&format!("`{}` is left out: {error}", path.display())),
        }
    }
    if all.is_empty() {
        return Err(Failure::input(format!(
            "the folder `{shown}` has no {kind}; choose another folder with --data, or leave out --data"
        )));
    }
    Ok(all)
}

/// A pseudorandom number from 0 to 1.
pub(crate) fn uniform(seed: u64, number: usize) -> f64 {
    (mixed(mixed(seed) ^ number as u64) >> 11) as f64 / (1u64 << 53) as f64
}

/// A 3D stencil with loads as if measured on a shared machine: near their mean, except for one object in 256 that was
/// interrupted, and one with 12.3 times the mean.
///
/// # Errors
/// If `side` is not a valid size of a grid.
pub(crate) fn stencil(side: usize, seed: u64) -> Result<Named, Failure> {
    let mut database = workloads::load(&format!("torus:{side}x{side}x{side},bytes=1000"))?;
    let count = database.objects.len();
    for (number, object) in database.objects.iter_mut().enumerate() {
        let noise = 0.8 + 0.4 * uniform(seed, number);
        let interrupted = mixed(mixed(seed) ^ (count + number) as u64).is_multiple_of(256);
        object.load_seconds =
            1e-4 * if interrupted { noise + 6.0 * uniform(seed, 2 * count + number) } else { noise };
    }
    // Two heavy objects on one PE: the imbalance is large, and the optimum is near the lower bound.
    database.objects[count / 3].load_seconds = 12.3e-4;
    database.objects[count / 3 + 1].load_seconds = 2e-4;
    Ok(Named { name: format!("stencil3d_{count}"), database })
}

/// A ring in which every object communicates with 3 neighbors on each side, and work grows with the square of the
/// index, as in Charm++'s example.
///
/// # Errors
/// If there are too few objects.
pub(crate) fn kneighbor(count: usize, seed: u64) -> Result<Named, Failure> {
    let mut database = workloads::load(&format!("kneighbor:{count},6,bytes=1000"))?;
    for (number, object) in database.objects.iter_mut().enumerate() {
        let part = (number + 1) as f64 / count as f64;
        object.load_seconds = 1e-3 * (part * part + 0.05 * uniform(seed, number));
    }
    Ok(Named { name: format!("kneighbor_{count}"), database })
}

/// LeanMD with its initial placement: cells are pinned in blocks, and the computes of a cell are on the PEs after it.
///
/// # Errors
/// If `side` cells in each dimension are too few.
pub(crate) fn leanmd(side: usize, pes: u32) -> Result<Named, Failure> {
    let spec = format!("leanmd:{side}x{side}x{side},particles=100-250,pinned=yes");
    let mut database = workloads::load(&spec)?.remap(pes);
    let cells = side.pow(3);
    let per_cell = database.objects.len() / cells - 1;
    for (number, object) in database.objects.iter_mut().enumerate() {
        let home = |cell: usize| cell * pes as usize / cells;
        let pe = match number.checked_sub(cells) {
            None => home(number),
            Some(compute) => home(compute / per_cell) + 1 + compute % per_cell,
        };
        object.pe = (pe % pes as usize) as u32;
    }
    Ok(Named { name: format!("leanmd_{}", database.objects.len()), database })
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;
    use equipoise_strategies::cost::Metrics;

    use super::*;

    #[test]
    fn generated_databases_have_the_imbalance_of_recorded_ones() {
        let check = |database: &Database, pes: u32, before: [f64; 2], least: [f64; 2]| {
            let database = database.clone().remap(pes);
            let machine = topology::parse(&format!("flat:{pes}")).expect("a machine");
            let metrics = Metrics::of(&database, &*machine, &database.placement());
            let measured = metrics.max_load_seconds / metrics.average_load_seconds;
            assert!((before[0]..before[1]).contains(&measured), "{pes}: {measured}");
            let heaviest = metrics.heaviest_object_seconds / metrics.average_load_seconds;
            assert!((least[0]..least[1]).contains(&heaviest), "{pes}: {heaviest}");
        };
        let stencil = stencil(16, 0).expect("a stencil").database;
        assert_eq!((stencil.objects.len(), stencil.edges.len()), (4096, 24_576));
        check(&stencil, 512, [2.2, 2.8], [1.45, 1.6]);
        let kneighbor = kneighbor(1024, 0).expect("a ring").database;
        assert_eq!((kneighbor.objects.len(), kneighbor.edges.len()), (1024, 6144));
        check(&kneighbor, 64, [2.6, 3.1], [0.1, 0.3]);
        check(&kneighbor, 512, [2.7, 3.2], [1.2, 1.7]);
    }

    #[test]
    fn leanmd_has_the_initial_placement_of_the_program() {
        let database = leanmd(4, 64).expect("a box").database;
        assert_eq!(database.objects.len(), 960);
        assert!((0..64).all(|pe| database.objects.iter().filter(|object| object.pe == pe).count() == 15));
        assert_eq!(database.objects.iter().filter(|object| !object.migratable).count(), 64);
    }

    #[test]
    fn a_folder_without_data_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = of_folder(folder.path(), "database", |_| true).expect_err("it is empty").to_string();
        assert!(error.contains("has no database; choose another folder with --data"), "{error}");
        fs::write(folder.path().join("a.graph"), "2 1\n2\n1\n").expect("a file");
        fs::write(folder.path().join("b.graph"), "no graph").expect("a file");
        let all = of_folder(folder.path(), "graph", |_| true).expect("one is a graph");
        assert_eq!(all.iter().map(|named| named.name.as_str()).collect::<Vec<_>>(), ["a.graph"]);
        let error = of_folder(&folder.path().join("none"), "graph", |_| true).expect_err("there is none");
        assert!(format!("{error:#}").contains("choose a readable folder"), "{error:#}");
    }
}
