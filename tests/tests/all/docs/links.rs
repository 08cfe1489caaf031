//! Links of the pages lead to files and headings that exist, links of the book stay in the book, and it has every page.

use std::path::Path;
use std::{fs, io};

use equipoise_tests::WORKSPACE;

use super::{Page, pages};

/// The targets of the links of a page, outside of code.
fn links(page: &Page) -> Vec<(usize, &str)> {
    let (mut links, mut is_code) = (Vec::new(), false);
    for (number, line) in page.text.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        // The parts with even numbers are outside of backticks.
        let linked =
            line.match_indices("](").filter(|(at, _)| !is_code && line[..*at].matches('`').count() % 2 == 0);
        links.extend(
            linked.filter_map(|(at, _)| line[at + 2..].split_once(')')).map(|(to, _)| (number + 1, to)),
        );
    }
    links
}

/// The anchors of the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
            anchors.push(kept.map(|it| if it == ' ' { '-' } else { it }).collect());
        }
    }
    anchors
}

/// The text of a page, with the files that mdBook puts there.
fn text_with_includes(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    for line in fs::read_to_string(path)?.lines() {
        match line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) {
            Some(included) => text += &fs::read_to_string(path.with_file_name(included))?,
            None => text += line,
        }
        text.push('\n');
    }
    Ok(text)
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    let book = fs::canonicalize(Path::new(WORKSPACE).join("docs/src")).expect("the folder of the book");
    let mut extra = vec![Page::read("ARCHITECTURE.md"), Page::read("CHANGELOG.md")];
    extra.extend(pages());
    for page in &extra {
        let folder = Path::new(WORKSPACE).join(&page.name);
        let folder = folder.parent().expect("a page is in a folder");
        for (line, to) in links(page) {
            if to.starts_with("https://") {
                continue;
            }
            let (file, anchor) = to.split_once('#').unwrap_or((to, ""));
            let path =
                if file.is_empty() { Path::new(WORKSPACE).join(&page.name) } else { folder.join(file) };
            // The book includes the two files at the top: from there, all other files are elsewhere.
            let stays = match page.name.as_str() {
                "ARCHITECTURE.md" | "CHANGELOG.md" => file.is_empty(),
                name if name.starts_with("docs/") => {
                    path.canonicalize().is_ok_and(|it| it.starts_with(&book))
                }
                _ => true,
            };
            let is_there = stays
                && path.exists()
                && (anchor.is_empty()
                    || text_with_includes(&path)
                        .is_ok_and(|text| anchors(&text).iter().any(|known| known == anchor)));
            if !is_there {
                broken.push(format!("{}:{line}: {to}", page.name));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere, or out of the book:\n{}", broken.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let summary = Page::read("docs/src/SUMMARY.md");
    let linked: Vec<&str> = links(&summary).into_iter().map(|(_, to)| to).collect();
    for page in pages() {
        if let Some(name) = page.name.strip_prefix("docs/src/").filter(|name| *name != "SUMMARY.md") {
            assert!(linked.contains(&name), "SUMMARY.md does not name {name}");
        }
    }
}
