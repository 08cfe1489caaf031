//! `scotch:FILE.tgt`: a target architecture of Scotch.
//!
//! Supported are `cmplt`, `cmpltw`, `hcub`, `mesh2D`, `mesh3D`, `meshXD`, `torus2D`, `torus3D`, `torusXD`, `tleaf`,
//! `ltleaf` and `deco` (raw or compiled). They are converted to the corresponding machines: a complete graph to
//! `flat:`, a tree to `tree:`, a decomposition to its distances. PEs are the terminal domains in the order of their
//! labels. Different weights of PEs are rejected, because machines have no speeds here. The weight of a level of
//! `tleaf` is the distance of two PEs that meet at this level.
//!
//! Source: F. Pellegrini, "Scotch and libScotch user's guide", target architecture files, and the reader of libscotch
//! 7.0.

use std::sync::Arc;

use super::error::from_file;
use super::{
    Allocation, DistanceMatrix, Flat, Grid, Hypercube, Kind, MAX_PES, MAX_TABLE_PES, SpecError, Topology,
    Tree, check_table,
};
use crate::table;

/// The entry of `scotch:FILE.tgt` in the list of machines.
pub const KIND: Kind = Kind {
    name: "scotch",
    form: "scotch:FILE.tgt",
    help: "A target architecture of Scotch: complete, hypercube, mesh, torus, tree-leaf or decomposition-defined.",
    params: &[],
    item: parse,
};

fn parse(name: &str) -> Result<Arc<dyn Topology>, SpecError> {
    if name.is_empty() {
        return Err("expected the name of a target architecture file such as torus3D 4 4 4".into());
    }
    from_file("target architecture", name, |text| read(&format!("scotch:{name}"), text))
}

/// The words of a file with their lines.
struct Words<'a> {
    words: Vec<(usize, &'a str)>,
    next: usize,
    /// The last line.
    end: usize,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let words = (1..).zip(text.lines());
        let words = words.flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)));
        Words { words: words.collect(), next: 0, end: text.lines().count().max(1) }
    }

    /// The line of the last word read.
    fn line(&self) -> usize {
        self.words.get(self.next.saturating_sub(1)).map_or(self.end, |word| word.0)
    }

    fn left(&self) -> usize {
        self.words.len() - self.next
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        let Some(&(_, word)) = self.words.get(self.next) else {
            return Err(format!("line {}: expected {what}, found the end of the file", self.end));
        };
        self.next += 1;
        Ok(word)
    }

    /// Reads a number of at least `least`.
    fn number(&mut self, what: &str, least: u32) -> Result<u32, String> {
        let word = self.word(what)?;
        let number = word.parse().ok().filter(|&number| number >= least);
        number.ok_or_else(|| {
            format!("line {}: expected {what}, a number of at least {least}, found `{word}`", self.line())
        })
    }

    /// Reads `count` numbers; fails early if fewer words are left.
    fn numbers(&mut self, count: usize, what: &str, least: u32) -> Result<Vec<u32>, String> {
        if count > self.left() {
            return Err(format!(
                "line {}: expected {}, each {what}, but the file ends after {}",
                self.line(),
                table::count(count as u64, "number"),
                table::count(self.left() as u64, "word")
            ));
        }
        (0..count).map(|_| self.number(what, least)).collect()
    }
}

/// Parses a file; `spec` is the spec of the machine.
fn read(spec: &str, text: &str) -> Result<Arc<dyn Topology>, String> {
    let mut words = Words::of(text);
    let name = words.word("the name of an architecture")?;
    let line = words.line();
    let at_line = |reason: String| format!("line {line}: {reason}");
    let machine: Arc<dyn Topology> = match name.to_lowercase().as_str() {
        "cmplt" => Arc::new(Flat::new(words.number("a number of PEs", 1)? as usize).map_err(at_line)?),
        "cmpltw" => {
            let pes = words.number("a number of PEs", 1)? as usize;
            let weights = words.numbers(pes, "the weight of a PE", 1)?;
            same_weights(&weights).map_err(|reason| format!("line {}: {reason}", words.line()))?;
            Arc::new(Flat::new(pes).map_err(at_line)?)
        }
        "hcub" => {
            Arc::new(Hypercube::new(words.number("a number of dimensions", 1)? as usize).map_err(at_line)?)
        }
        "mesh2d" => grid(&mut words, 2, false)?,
        "mesh3d" => grid(&mut words, 3, false)?,
        "torus2d" => grid(&mut words, 2, true)?,
        "torus3d" => grid(&mut words, 3, true)?,
        "meshxd" | "torusxd" => {
            let dimensions = words.number("a number of dimensions", 1)? as usize;
            grid(&mut words, dimensions, name.to_lowercase() == "torusxd")?
        }
        "tleaf" => Arc::new(tree(&mut words)?),
        "ltleaf" => labeled(&mut words)?,
        "deco" => Arc::new(decomposition(spec, &mut words)?),
        "sub" | "dist" | "varcmplt" | "varhcub" => {
            return Err(at_line(format!(
                "the architecture {name} is not supported; give the machine itself (for a part, an allocation \
                 such as scotch:FILE.tgt[0-3])"
            )));
        }
        _ => {
            return Err(at_line(format!(
                "there is no architecture `{name}`; supported are cmplt, cmpltw, hcub, mesh2D, mesh3D, meshXD, \
                 torus2D, torus3D, torusXD, tleaf, ltleaf and deco"
            )));
        }
    };
    if words.left() > 0 {
        let word = words.word("")?;
        return Err(format!("line {}: the architecture ends before `{word}`; remove the rest", words.line()));
    }
    Ok(machine)
}

fn same_weights(weights: &[u32]) -> Result<(), String> {
    match weights.iter().find(|&weight| *weight != weights[0]) {
        None => Ok(()),
        Some(other) => Err(format!(
            "PEs have different weights, {} and {other}; speeds of PEs belong into databases (give all PEs the \
             same weight)",
            weights[0]
        )),
    }
}

fn grid(words: &mut Words, dimensions: usize, wraps: bool) -> Result<Arc<dyn Topology>, String> {
    let sizes = words.numbers(dimensions, "the size of a dimension", 1)?;
    let sizes: Vec<(usize, bool)> = sizes.into_iter().map(|size| (size as usize, wraps)).collect();
    Ok(Arc::new(Grid::new(&sizes).map_err(|reason| format!("line {}: {reason}", words.line()))?))
}

fn tree(words: &mut Words) -> Result<Tree, String> {
    let levels = words.number("a number of levels", 1)?;
    let mut tree = Vec::new();
    for _ in 0..levels {
        let arity = words.number("the number of parts of a level", 1)?;
        tree.push((arity as usize, words.number("the distance between the parts of a level", 1)?));
    }
    Tree::new(&tree).map_err(|reason| format!("line {}: {reason}", words.line()))
}

/// A tree whose leaves are relabelled by a periodic permutation.
fn labeled(words: &mut Words) -> Result<Arc<dyn Topology>, String> {
    let tree = tree(words)?;
    let period = words.number("the length of a permutation", 1)? as usize;
    let labels = words.numbers(period, "the label of a leaf", 0)?;
    let at_line = |reason: String| format!("line {}: {reason}", words.line());
    let mut leaf_of = vec![None; period];
    for (leaf, &label) in labels.iter().enumerate() {
        let place = leaf_of.get_mut(label as usize);
        if place.and_then(|place| place.replace(leaf)).is_some() || label as usize >= period {
            return Err(at_line(format!(
                "the labels must be a permutation of 0 to {}; {label} is out of range or repeated",
                period - 1
            )));
        }
    }
    if !tree.pes().is_multiple_of(period) {
        return Err(at_line(format!(
            "the number of leaves of the tree, {}, is not a multiple of the {period} labels",
            tree.pes()
        )));
    }
    if labels.is_sorted() {
        return Ok(Arc::new(tree));
    }
    let leaf = |pe: usize| pe - pe % period + leaf_of[pe % period].unwrap_or(0);
    let leaves = (0..tree.pes()).map(|pe| leaf(pe) as u32).collect();
    Ok(Arc::new(Allocation::new(Arc::new(tree), leaves).map_err(at_line)?))
}

/// The distances of the terminals of a decomposition, ordered by label.
///
/// Domain 1 is the whole machine, and domain `d` is split into `2d` and `2d + 1`. Raw files list the terminals (label,
/// weight, domain) and the distances of each to the previous ones; compiled files list all domains (label, size,
/// weight), and the distances of each to the previous ones.
fn decomposition(spec: &str, words: &mut Words) -> Result<DistanceMatrix, String> {
    let kind = words.number("the kind of the decomposition, 0 or 1", 0)?;
    let pes = words.number("a number of terminals", 1)? as usize;
    let domains = words.number("the highest domain", 1)? as usize;
    let at_line = |words: &Words, reason: String| format!("line {}: {reason}", words.line());
    if kind > 1 {
        return Err(at_line(words, format!("the kind of a decomposition is 0 or 1, found {kind}")));
    }
    if pes > MAX_TABLE_PES || domains < pes || domains > MAX_PES {
        return Err(at_line(
            words,
            format!(
                "a decomposition has 1 to {MAX_TABLE_PES} terminals among its domains, found {pes} of {domains}"
            ),
        ));
    }
    // For each terminal, in file order: its label, its weight, and its position in the list of distances.
    let mut terminals: Vec<(u32, u32, usize)> = Vec::with_capacity(pes);
    let listed = if kind == 0 { pes } else { domains };
    for place in 0..listed {
        let label = words.number("a label", 0)?;
        let second = words.number("a weight or a size", 0)?;
        let third = words.number("a domain or a weight", 0)?;
        match kind {
            0 => terminals.push((label, second, place)),
            _ if second == 1 => terminals.push((label, third, place)),
            _ => (),
        }
    }
    if terminals.len() != pes {
        return Err(at_line(
            words,
            format!(
                "the file has {}, but the header says {pes}",
                table::count(terminals.len() as u64, "terminal")
            ),
        ));
    }
    let weights: Vec<u32> = terminals.iter().map(|terminal| terminal.1).collect();
    same_weights(&weights).map_err(|reason| at_line(words, reason))?;
    let mut pe_at = vec![None; listed];
    let mut is_taken = vec![false; pes];
    for &(label, _, place) in &terminals {
        match is_taken.get_mut(label as usize) {
            Some(is_taken) if !*is_taken => *is_taken = true,
            _ => {
                return Err(at_line(
                    words,
                    format!("labels are 0 to {}, each once; {label} is out of range or repeated", pes - 1),
                ));
            }
        }
        pe_at[place] = Some(label as usize);
    }
    check_table(pes).map_err(|reason| at_line(words, reason))?;
    let mut distances = vec![0; pes * pes];
    for row in 1..listed {
        for column in 0..row {
            let between = pe_at[row].zip(pe_at[column]);
            let distance = words.number("a distance", u32::from(between.is_some()))?;
            if let Some((a, b)) = between {
                (distances[a * pes + b], distances[b * pes + a]) = (distance, distance);
            }
        }
    }
    Ok(DistanceMatrix::of(spec, pes, distances))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::super::tests::{check, row};
    use super::*;

    /// Files and the specs of their machines.
    const GOLDEN: &[(&str, &str)] = &[
        ("cmplt 8\n", "flat:8"),
        ("cmpltw 3 2 2 2\n", "flat:3"),
        ("hcub\n4\n", "hypercube:4"),
        ("mesh2D 3 2", "mesh:3x2"),
        ("mesh3D 2 4 3\n", "mesh:2x4x3"),
        ("meshXD 4 2 1 2 3\n", "mesh:2x1x2x3"),
        ("torus2D 4 4\n", "torus:4x4"),
        ("torus3D\n4\n3 2\n", "torus:4x3x2"),
        ("torusXD 1 6\n", "torus:6"),
        ("tleaf 2 4 10 2 1\n", "tree:4:2/10:1"),
        ("ltleaf 2 2 10 3 1 3 0 1 2\n", "tree:2:3/10:1"),
        ("ltleaf 2 2 10 3 1 3 2 0 1\n", "tree:2:3/10:1[1-2,0,4-5,3]"),
        ("ltleaf 1 4 1 4 3 1 2 0\n", "tree:4/1[3,1-2,0]"),
    ];

    /// Three terminals with labels 2, 0 and 1, raw and compiled.
    const RAW: &str = "deco\n0 3 5\n2 1 4\n0 1 5\n1 1 3\n1\n2 3\n";
    const COMPILED: &str =
        "deco\n1\n3\t5\n0\t3\t3\n0\t2\t2\n1\t1\t1\n2\t1\t1\n0\t1\t1\n1 2 2 2 1 2 1 3 1 1\n";

    #[test]
    fn converts_architectures_to_machines() {
        for (text, spec) in GOLDEN {
            let machine = read("", text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(machine.spec(), *spec, "{text}");
        }
    }

    #[test]
    fn decompositions_give_distances_by_label() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("deco.tgt");
        std::fs::write(&file, RAW).expect("a file");
        let machine = parse(&format!("scotch:{}", file.display())).expect("a machine");
        check(&*machine);
        // The first distance is between 0 and 2, then 1 and 2, then 1 and 0.
        assert_eq!([row(&*machine, 0), row(&*machine, 1)], [[0, 3, 1], [3, 0, 2]]);
        // Domains 3, 4 and 5 have labels 1, 2 and 0; their distances are the 6th, the 9th and the 10th.
        let compiled = read("", COMPILED).expect("a machine");
        assert_eq!([row(&*compiled, 0), row(&*compiled, 1)], [[0, 1, 1], [1, 0, 2]]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("", "line 1: expected the name of an architecture, found the end of the file"),
            ("ring 4\n", "line 1: there is no architecture `ring`; supported are cmplt"),
            ("cmplt\nfour\n", "line 2: expected a number of PEs, a number of at least 1, found `four`"),
            ("cmplt 99999999\n", "line 1: sizes multiply to at most"),
            ("cmpltw 2 1\n3\n", "line 2: PEs have different weights, 1 and 3"),
            (
                "cmpltw 9 1\n",
                "line 1: expected 9 numbers, each the weight of a PE, but the file ends after 1 word",
            ),
            ("hcub 99\n", "line 1: a hypercube has at most 24 dimensions"),
            ("mesh2D 3\n", "line 1: expected 2 numbers, each the size of a dimension"),
            ("torus2D 4 0\n", "line 1: expected the size of a dimension, a number of at least 1, found `0`"),
            ("torus2D 4 4\n\n5\n", "line 3: the architecture ends before `5`"),
            ("tleaf 2 4 1 2 10\n", "line 1: distances are at least 1 and do not grow towards the leaves"),
            (
                "ltleaf 1 4 1 2 0 0\n",
                "line 1: the labels must be a permutation of 0 to 1; 0 is out of range or repeated",
            ),
            (
                "ltleaf 1 4 1 3 0 1 2\n",
                "line 1: the number of leaves of the tree, 4, is not a multiple of the 3 labels",
            ),
            ("sub 2 0 1\ncmplt 4\n", "line 1: the architecture sub is not supported"),
            ("deco\n2 3 5\n", "line 2: the kind of a decomposition is 0 or 1, found 2"),
            (
                "deco\n0 2 3\n0 1 2\n0 1 3\n1\n",
                "line 4: labels are 0 to 1, each once; 0 is out of range or repeated",
            ),
            ("deco\n0 2 3\n0 1 2\n1 1 3\n0\n", "line 5: expected a distance, a number of at least 1"),
            ("deco\n0 2 3\n0 1 2\n1 1 3\n", "line 4: expected a distance, found the end of the file"),
            ("deco 0 99999 99999\n", "line 1: a decomposition has 1 to 16384 terminals"),
        ] {
            let error = read("", text).err().expect(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        }
    }

    proptest! {
        #[test]
        fn no_architecture_panics(golden in 0..GOLDEN.len() + 2, at in 0..60usize, word in "[0-9a-z ]{0,3}") {
            let text = GOLDEN.get(golden).map_or([RAW, COMPILED][golden % 2], |golden| golden.0);
            let _ = read("", &crate::testing::mutated(text, at, &word));
        }
    }
}
