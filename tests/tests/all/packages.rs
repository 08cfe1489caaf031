//! The packages of the published crates, and the notices about the crates in the command `equipoise`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use equipoise_tests::WORKSPACE;
use serde_json::Value;

/// The crates that are published, in alphabetical order. All others are `publish = false`.
const PUBLISHED: [&str; 8] = [
    "equipoise",
    "equipoise-apps",
    "equipoise-cli",
    "equipoise-macros",
    "equipoise-model",
    "equipoise-network",
    "equipoise-report",
    "equipoise-strategies",
];

/// The release binaries are built for this target.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The file with the notices, and the command that writes it.
const NOTICES: &str = "THIRD-PARTY.txt";
const REMEDY: &str = "UPDATE_DOCS=1 cargo test -p equipoise-tests --test all packages";

/// The output of cargo at the top of the workspace. Offline: building the tests downloaded all that it needs.
fn cargo(arguments: &str) -> String {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments.split(' ')).args(["--offline", "--locked"]).current_dir(WORKSPACE);
    let output = command.output().expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments}: {errors}");
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

/// The packages that `cargo metadata` lists.
fn packages(arguments: &str) -> Vec<Value> {
    let text = cargo(&format!("metadata --format-version 1 {arguments}"));
    let mut document: Value = serde_json::from_str(&text).expect("cargo writes JSON");
    let Value::Array(packages) = document["packages"].take() else { panic!("`packages` is a list") };
    packages
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// The folder of a package.
fn folder(package: &Value) -> &Path {
    Path::new(text(package, "manifest_path")).parent().expect("a manifest is in a folder")
}

/// What a published package lacks.
fn missing(package: &Value) -> Vec<String> {
    let mut missing: Vec<String> = ["description", "license", "rust_version"]
        .into_iter()
        .filter(|field| text(package, field).is_empty())
        .map(|field| format!("the field `{field}`"))
        .collect();
    // `repository` may be missing: there is no public repository yet.
    for (field, most) in [("keywords", 5), ("categories", 5)] {
        let entries = package[field].as_array().map_or(0, Vec::len);
        if !(1..=most).contains(&entries) {
            missing.push(format!("1 to {most} entries in `{field}`"));
        }
    }
    let readme = folder(package).join(text(package, "readme"));
    if !readme.is_file() {
        missing.push("a `readme` that exists".into());
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let of = |folder: &Path| fs::read_to_string(folder.join(name)).ok();
        if of(folder(package)) != of(Path::new(WORKSPACE)) {
            missing.push(format!("a copy of the file {name} at the top of the workspace"));
        }
    }
    missing
}

#[test]
fn published_crates_are_complete() {
    let packages = packages("--no-deps");
    let (published, private): (Vec<_>, Vec<_>) =
        packages.iter().partition(|package| package["publish"].is_null());
    let mut names: Vec<&str> = published.iter().map(|package| text(package, "name")).collect();
    names.sort_unstable();
    assert_eq!(names, PUBLISHED, "the crates without `publish = false`");
    assert!(!private.is_empty());
    for package in published {
        let missing = missing(package).join(", ");
        assert!(missing.is_empty(), "{}/Cargo.toml lacks {missing}", folder(package).display());
    }
}

#[test]
fn finds_what_a_package_lacks() {
    let all = packages("--no-deps");
    let mut package =
        all.iter().find(|package| text(package, "name") == "equipoise").expect("listed").clone();
    package["description"] = Value::Null;
    package["keywords"] = Value::Array(Vec::new());
    package["readme"] = Value::from("no such file");
    let missing = missing(&package);
    for expected in ["the field `description`", "1 to 5 entries in `keywords`", "a `readme` that exists"] {
        assert!(missing.iter().any(|it| it == expected), "{missing:?}");
    }
}

/// The files that a Rust file includes, as written in it.
fn included(code: &str) -> Vec<&str> {
    let macros = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    let after = |start| code.split(start).skip(1).filter_map(|rest: &str| rest.split('"').next());
    macros.into_iter().flat_map(after).collect()
}

/// The Rust files below a folder, with those of crates inside it left out.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of a crate").flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = folders.iter().filter(|folder| !folder.join("Cargo.toml").exists());
    let below = own.flat_map(|folder| rust_files(folder));
    files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs")).chain(below).collect()
}

#[test]
fn packages_include_no_files_from_outside() {
    assert_eq!(included(r#"a include_str!("x") b #[path = "../y.rs"] mod y;"#), ["x", "../y.rs"]);
    let mut files = 0;
    for package in packages("--no-deps").iter().filter(|package| package["publish"].is_null()) {
        let top = folder(package).canonicalize().expect("the folder of a crate");
        for path in rust_files(folder(package)) {
            let code = fs::read_to_string(&path).expect("a file of the workspace");
            for name in included(&code) {
                let target = path.with_file_name(name).canonicalize();
                let is_inside = target.as_ref().is_ok_and(|target| target.starts_with(&top));
                assert!(is_inside, "{}: `{name}` must be a file of the crate", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 5, "found {files} included files");
}

#[test]
fn versions_agree() {
    let packages = packages("--no-deps");
    let package = packages.first().expect("a crate");
    let (version, rust) = (text(package, "version"), text(package, "rust_version"));
    for (file, expected) in [
        ("CITATION.cff", format!("\nversion: {version}\n")),
        ("strategies/python/Cargo.toml", format!("\nversion = \"{version}\"\n")),
        ("strategies/python/Cargo.toml", format!("\nrust-version = \"{rust}\"\n")),
        (".github/workflows/ci.yml", format!("rustup toolchain install {rust} ")),
        (".github/workflows/ci.yml", format!("cargo +{rust} check ")),
        ("README.md", format!("Rust {rust} or newer")),
        ("docs/src/files.md", format!("The minimum supported version is {rust}.")),
    ] {
        let text = fs::read_to_string(Path::new(WORKSPACE).join(file)).expect("a file of the workspace");
        assert!(text.contains(&expected), "{file} does not contain `{}`", expected.trim());
    }
}

/// The files below `folder` that hold licences or notices, in alphabetical order.
fn licence_files(folder: &Path) -> Vec<PathBuf> {
    let starts = ["license", "licence", "unlicense", "copying", "copyright", "notice"];
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder of a package").flatten().map(|it| it.path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.is_dir());
    files.retain(|path| starts.iter().any(|start| name(path).starts_with(start)));
    // zstd and memchr: COPYING is the other choice, or explains the choice.
    if files.iter().any(|path| name(path).starts_with("license")) {
        files.retain(|path| !name(path).starts_with("copying"));
    }
    files.into_iter().chain(folders.iter().flat_map(|folder| licence_files(folder))).collect()
}

/// The texts that must go with a package. If it may be used under the MIT licence, no other licence is needed.
fn licence_texts(package: &Value) -> Vec<String> {
    let mut files = licence_files(folder(package));
    let is_mit = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().to_uppercase().contains("MIT"))
    };
    let licence = text(package, "license");
    if licence.contains("MIT") && !licence.contains(" AND ") && files.iter().any(|path| is_mit(path)) {
        files.retain(|path| is_mit(path));
    }
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        String::from_utf8_lossy(&bytes).lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    };
    files.iter().map(read).collect()
}

/// The notices about all crates in the command, except procedural macros, which only produce code.
fn notices() -> String {
    let tree = cargo(&format!(
        "tree --package equipoise-cli --edges normal,no-proc-macro --target {TARGET} --prefix none"
    ));
    let packages = packages(&format!("--filter-platform {TARGET}"));
    let mut by_text: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut without_text = String::new();
    let mut names: Vec<(&str, &str)> = tree.lines().filter_map(|line| line.split_once(" v")).collect();
    names.iter_mut().for_each(|(_, version)| *version = version.split(' ').next().unwrap_or_default());
    names.sort_unstable();
    names.dedup();
    for (name, version) in names.into_iter().filter(|(name, _)| !PUBLISHED.contains(name)) {
        let is_it = |package: &&Value| text(package, "name") == name && text(package, "version") == version;
        let package =
            packages.iter().find(is_it).unwrap_or_else(|| panic!("no metadata of {name} {version}"));
        let label = format!("{name} {version} ({})", text(package, "license"));
        let texts = licence_texts(package);
        if texts.is_empty() {
            let authors: Vec<&str> =
                package["authors"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
            let _ = writeln!(without_text, "{label}, by {}", authors.join(", "));
        }
        for text in texts {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (_, users) = by_text.entry(words.join(" ")).or_insert_with(|| (text.clone(), Vec::new()));
            users.push(label.clone());
        }
    }
    let mut sections: Vec<(String, Vec<String>)> = by_text.into_values().collect();
    sections.sort_by(|a, b| a.1.cmp(&b.1));
    let mut page = format!(
        "THIRD-PARTY NOTICES\n\n\
         The command equipoise (default features, {TARGET}) contains the crates named here and the\n\
         standard library of Rust (MIT OR Apache-2.0). The licences of the crates follow; where a crate offers\n\
         a choice that includes MIT, its MIT licence.\n\n\
         Generated from Cargo.lock and the packages. Do not edit; run\n{REMEDY}\n\n\
         Crates whose packages have no text of their licence:\n\n{without_text}"
    );
    for (text, users) in sections {
        let _ = write!(page, "\n{}\n{}\n\n{}\n", "=".repeat(100), users.join("\n"), text.trim_matches('\n'));
    }
    page
}

#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    ignore = "cargo downloads only the crates of the host"
)]
fn notices_name_every_crate_of_the_command() {
    let path = Path::new(WORKSPACE).join(NOTICES);
    let expected = notices();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).expect("the notices can be written");
    } else {
        let page = fs::read_to_string(&path).unwrap_or_default();
        assert!(page == expected, "{NOTICES} is out of date; run {REMEDY}");
    }
}
