//! The README and the book in `docs/`: their commands run and print what the pages show, their links lead somewhere,
//! their programs are those of `runtime/examples`, and the reference is that of the registries.

mod commands;
mod links;
mod reference;

use std::fs;
use std::path::Path;

use equipoise_tests::{Sandbox, WORKSPACE, files};

/// A page: its name from the top of the workspace, and its text.
struct Page {
    name: String,
    text: String,
}

/// A fenced block of a page.
struct Block<'a> {
    /// The words after the fence, such as `sh` or `rust,ignore`.
    info: &'a str,
    /// The number of the first line inside.
    line: usize,
    lines: Vec<&'a str>,
}

impl Page {
    fn read(name: &str) -> Page {
        let text = fs::read_to_string(Path::new(WORKSPACE).join(name));
        Page { name: name.into(), text: text.unwrap_or_else(|error| panic!("{name}: {error}")) }
    }

    /// The fenced blocks, in order.
    fn blocks(&self) -> Vec<Block<'_>> {
        let (mut blocks, mut open) = (Vec::new(), None::<Block>);
        for (number, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), open.take()) {
                (Some(info), None) => open = Some(Block { info, line: number + 2, lines: Vec::new() }),
                (Some(_), Some(block)) => blocks.push(block),
                (None, Some(mut block)) => {
                    block.lines.push(line);
                    open = Some(block);
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: the last block has no end", self.name);
        blocks
    }
}

/// The README and the pages of the book.
fn pages() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned()];
    for folder in ["docs/src", "docs/src/reference"] {
        let paths = files(&Path::new(WORKSPACE).join(folder), "md");
        names.extend(
            paths
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| format!("{folder}/{}", name.to_string_lossy())),
        );
    }
    names.iter().map(|name| Page::read(name)).collect()
}

#[test]
fn the_readme_is_short() {
    let bytes = Page::read("README.md").text.len();
    assert!(bytes <= 8 * 1024, "README.md has {bytes} bytes; move something into the book");
}

#[test]
fn the_main_command_reports_every_step() {
    let readme = Page::read("README.md");
    let blocks = readme.blocks();
    let first = blocks.iter().find(|block| block.info == "sh").expect("a block of commands");
    let line = first.lines[0].strip_prefix("$ cargo run --release -- ").expect("the main command");
    // A shorter run, with more steps.
    let shown = Sandbox::new().run(&format!("{line} --iterations 21 --lb-every 10")).result();
    assert_eq!(shown.lines().filter(|line| line.starts_with("LB step ")).count(), 2, "{shown}");
}
