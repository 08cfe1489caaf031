//! The crates of the workspace and their dependencies on each other.

use std::fs;
use std::path::Path;

use equipoise_tests::WORKSPACE;

use super::none;

/// The folder of a crate, and the crates of the workspace on which it may depend.
const ALLOWED: &[(&str, &[&str])] = &[
    // The dependency on itself enables features in its tests.
    ("strategies/model", &["equipoise-model"]),
    ("strategies/network", &["equipoise-model"]),
    ("strategies", &["equipoise-model", "equipoise-network"]),
    ("strategies/report", &["equipoise-model", "equipoise-network", "equipoise-strategies"]),
    ("runtime/macros", &[]),
    (
        "runtime",
        &[
            "equipoise-macros",
            "equipoise-model",
            "equipoise-network",
            "equipoise-report",
            "equipoise-strategies",
        ],
    ),
    ("runtime/tests", &["equipoise", "equipoise-model"]),
    ("runtime/tests/inbox", &[]),
    (
        "apps",
        &["equipoise", "equipoise-model", "equipoise-network", "equipoise-report", "equipoise-strategies"],
    ),
    ("apps/cli", ABOVE_APPS),
    ("apps/figures", ABOVE_APPS),
    ("tests", ABOVE_APPS),
    ("benches", ABOVE_APPS),
];

/// All library crates.
const ABOVE_APPS: &[&str] = &[
    "equipoise",
    "equipoise-apps",
    "equipoise-model",
    "equipoise-network",
    "equipoise-report",
    "equipoise-strategies",
];

/// The manifest in a folder of the workspace.
fn manifest(folder: &str) -> toml::Table {
    let path = Path::new(WORKSPACE).join(folder).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders of all crates.
pub fn members() -> Vec<String> {
    let workspace = manifest("");
    let members = workspace["workspace"]["members"].as_array().expect("a list of members");
    members.iter().filter_map(toml::Value::as_str).map(String::from).collect()
}

/// The dependencies of a crate on crates of the workspace that are not in `allowed`.
fn forbidden_dependencies(member: &str, manifest: &toml::Table, allowed: &[&str]) -> Vec<String> {
    let mut violations = Vec::new();
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
    for table in tables.chain([manifest]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = table.get(kind).and_then(toml::Value::as_table).into_iter().flatten();
            for (name, _) in dependencies.filter(|(name, _)| name.starts_with("equipoise")) {
                if !allowed.contains(&name.as_str()) {
                    violations.push(format!(
                        "{member}/Cargo.toml: {kind} on {name} are forbidden; a crate depends on earlier ones of \
                         strategies/model, strategies/network, strategies, strategies/report, runtime, apps or runtime/tests, and then \
                         apps/cli, apps/figures, tests and benches; move shared code to an earlier one"
                    ));
                }
            }
        }
    }
    violations
}

#[test]
fn crates_depend_one_way() {
    let members = members();
    assert_eq!(members.len(), ALLOWED.len(), "update ALLOWED: a crate is new or was removed");
    let of = |member: &String| {
        let allowed = ALLOWED.iter().find(|(folder, _)| folder == member);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("add {member} to ALLOWED"));
        forbidden_dependencies(member, &manifest(member), allowed)
    };
    none(&members.iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn finds_a_forbidden_dependency() {
    let manifest = "[dependencies]\nequipoise-strategies.workspace = true\nserde = \"1\"\n\
                    [target.'cfg(unix)'.dev-dependencies]\nequipoise = \"0.1\"\n";
    let manifest: toml::Table = manifest.parse().expect("a manifest");
    let found = forbidden_dependencies("model", &manifest, &["equipoise-strategies"]);
    assert!(
        found.len() == 1 && found[0].starts_with("model/Cargo.toml: dev-dependencies on equipoise are "),
        "{found:?}"
    );
    assert_eq!(forbidden_dependencies("model", &manifest, &[]).len(), 2);
}
