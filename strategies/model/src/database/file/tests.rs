//! Tests of reading and writing database files in all formats.

use super::*;
use crate::database::{Database, DumpWriter, PeRecord};

fn dump(steps: &[u64]) -> Dump {
    let step = |&step| Database { step, pes: vec![PeRecord::default()], ..Database::default() };
    Dump {
        program: "kneighbor".into(),
        topology: "flat:1".into(),
        steps: steps.iter().map(step).collect(),
        ..Dump::default()
    }
}

/// A Charm++ 8.x dump without objects.
fn charm_dump() -> Vec<u8> {
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let machine = [0x10, 0xea, 0xbd, 0xf9, 1, 1, 2, 4, 8, 16, 1, 4, 8, 1, 1, 8];
    let pe = [0.0, 0.0, 0.0, 1.0f64].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    [machine.to_vec(), ints(&[3, 1, 0, 1, 0]), pe, vec![1], ints(&[0; 8])].concat()
}

fn steps(dump: &Dump) -> Vec<u64> {
    dump.steps.iter().map(|database| database.step).collect()
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(result: Result<T, DatabaseError>, expected: &[&str]) {
    let error = result.expect_err(expected[0]).to_string();
    for part in expected {
        assert!(error.contains(part), "`{error}` does not contain `{part}`");
    }
}

#[test]
fn the_name_selects_the_format_to_write_and_the_content_the_format_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = dump(&[3, 5]);
    for (written, read) in
        [("a.json", "as-binary.db"), ("a.JSON", "b.1"), ("c.db", "as-json.json"), ("d", "e")]
    {
        let (written, read) = (folder.path().join(written), folder.path().join(read));
        whole.write(&written).unwrap();
        let json = fs::read(&written).unwrap().starts_with(b"{");
        assert_eq!(json, written.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")));
        fs::rename(&written, &read).unwrap();
        assert_eq!(Dump::read(&read).unwrap(), whole);
    }
    fs::write(folder.path().join("lb.dat.17"), charm_dump()).unwrap();
    assert_eq!(steps(&Dump::read(folder.path().join("lb.dat.17")).unwrap()), [17]);
    fs::write(folder.path().join("lb"), charm_dump()).unwrap();
    assert_eq!(steps(&Dump::read(folder.path().join("lb")).unwrap()), [0]);
}

#[test]
fn an_abandoned_file_says_which_steps_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let abandoned = |path: &Path, steps: &[u64]| {
        let mut writer = DumpWriter::record(path, "kneighbor", "flat:1").unwrap();
        dump(steps).steps.iter().for_each(|step| writer.push(step).unwrap());
        writer.abandon()
    };
    for name in ["a.db", "a.json"] {
        let path = folder.path().join(name);
        assert_eq!(abandoned(&path, &[]), None);
        let clause = format!("`{}` holds the load-balancing steps up to 5", path.display());
        assert_eq!(abandoned(&path, &[3, 5]), Some(clause));
        assert_eq!(steps(&Dump::read(&path).unwrap()), [3, 5]);
    }
    // The files of vt are written at the end, and a device holds nothing.
    assert_eq!(abandoned(&folder.path().join("a.%p.json"), &[3, 5]), None);
    assert!(!folder.path().join("a.0.json").exists());
    #[cfg(unix)]
    assert_eq!(abandoned(Path::new("/dev/null"), &[3, 5]), None);
}

#[test]
fn read_steps_selects_the_requested_steps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lb.db");
    dump(&[2, 3, 7]).write(&file).unwrap();
    let base = folder.path().join("lb.dat");
    for step in [2, 3, 7] {
        fs::write(folder.path().join(format!("lb.dat.{step}")), charm_dump()).unwrap();
    }
    fs::write(folder.path().join("lb.dat.txt"), "not a step").unwrap();
    for path in [&file, &base] {
        let read = |first, count| Dump::read_steps(path, first, count);
        assert_eq!(steps(&read(None, None).unwrap()), [2, 3, 7]);
        assert_eq!(steps(&read(None, Some(1)).unwrap()), [2]);
        assert_eq!(steps(&read(Some(3), None).unwrap()), [3, 7]);
        assert_eq!(steps(&read(Some(3), Some(2)).unwrap()), [3, 7]);
        check_error(read(Some(4), Some(1)), &["has no step 4; choose from steps 2, 3, 7"]);
        check_error(read(Some(9), None), &["has no step 9"]);
        check_error(read(Some(7), Some(3)), &["has only 1 of the 3 requested steps from step 7 on"]);
        check_error(read(None, Some(0)), &["was asked for 0 steps; ask for at least one of"]);
    }
    dump(&[]).write(&file).unwrap();
    let empty = Dump::read_steps(&file, None, None);
    assert_eq!(
        empty.as_ref().map_err(|error| error.fault()).err(),
        Some(Fault::Input),
        "the file is at fault"
    );
    check_error(empty, &["lb.db", "holds no steps"]);
}

#[test]
fn errors_name_missing_files_and_files_in_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.graph");
    check_error(Dump::read(&path), &["mesh.graph", "cannot read", "check its name"]);
    check_error(
        Dump::read_steps(&path, None, None),
        &["there is no such file, and there is no dump of a step, such as `mesh.graph.0`; check its name"],
    );
    check_error(Dump::read_steps(folder.path(), None, None), &["it is a folder, and there is no dump"]);
    check_error(Dump::read_steps(folder.path().join("a\u{9b}2J"), None, None), &[r"such as `a\u{9b}2J.0`"]);
    fs::write(&path, "3 2\n2\n1 3\n2\n").unwrap();
    check_error(Dump::read(&path), &["mesh.graph", "is not a database in a known format", "8.x and 6.10"]);
    fs::write(&path, "").unwrap();
    check_error(Dump::read(&path), &["mesh.graph", "is empty"]);
    check_error(Dump::read(folder.path()), &["cannot read the database"]);
}

#[test]
fn refuses_steps_that_do_not_ascend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lb.db");
    for (steps, expected) in [(&[1, 5, 3][..], "has step 3 after step 5"), (&[2, 2], "step 2 after step 2")] {
        check_error(dump(steps).write(&path), &[expected, "in ascending order"]);
        fs::write(&path, binary::encode(&dump(steps), binary::VERSION).unwrap()).unwrap();
        check_error(Dump::read(&path), &[expected]);
        fs::write(&path, json::encode(&dump(steps), json::VERSION).unwrap()).unwrap();
        check_error(Dump::read_steps(&path, None, Some(1)), &[expected]);
    }
}

#[test]
fn files_are_replaced_atomically() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lb.json");
    dump(&[0]).write(&path).unwrap();
    dump(&[0, 1]).write(&path).unwrap();
    let mut broken = dump(&[4]);
    broken.steps[0].pes[0].speed = -1.0;
    check_error(broken.write(&path), &["lb.json", "cannot hold step 4: the speed of PE 0 is -1"]);
    assert_eq!(Dump::read(&path).unwrap(), dump(&[0, 1]));
    check_error(dump(&[0]).write(folder.path().join("no/such/place")), &["cannot write", "name a place"]);
    check_error(dump(&[0]).write(folder.path()), &["cannot write"]);
    for (path, can) in [("lb.json", true), ("new.db", true), ("no/such/place", false), ("", false)] {
        assert_eq!(Dump::can_write(folder.path().join(path)).is_ok(), can, "{path}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lb.json"], "no partial file is left");
}

#[test]
#[cfg(unix)]
fn writing_follows_links_and_keeps_devices() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, device] = ["lb.db", "link", "device"].map(|name| folder.path().join(name));
    dump(&[0]).write(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    // The link protects the device: if the tested code is wrong, only the link is replaced.
    std::os::unix::fs::symlink("/dev/null", &device).unwrap();
    dump(&[1]).write(&link).unwrap();
    dump(&[1]).write(&device).unwrap();
    assert_eq!(Dump::read(&file).unwrap(), dump(&[1]));
    assert!([&link, &device].iter().all(|path| path.is_symlink()));
}
