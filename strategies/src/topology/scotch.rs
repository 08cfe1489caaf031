//! `scotch:FILE.tgt`: a target architecture of Scotch.
//!
//! Understood are `cmplt`, `cmpltw`, `hcub`, `mesh2D`, `mesh3D`, `meshXD`, `torus2D`, `torus3D`, `torusXD`,
//! `tleaf`, `ltleaf` and `deco` (raw or compiled), which become the machines of this room (a complete graph
//! `flat:`, a tree `tree:`, a decomposition its distances). PEs are the terminal domains by their labels. PEs
//! of different weights are none of the matter of a machine here, and are refused. Of `tleaf` the weight of a
//! level is the distance of two PEs that meet there.
//!
//! Source: F. Pellegrini, "Scotch and libScotch user's guide", target architecture files, and how libscotch 7.0
//! reads them.

use std::sync::Arc;

use super::spec::from_file;
use super::{
    Allocation, DistanceMatrix, Fault, Flat, Grid, Hypercube, Kind, MAX_PES, MAX_TABLE_PES, Topology, Tree,
};

/// `scotch:FILE.tgt` for the table of machines.
pub const KIND: Kind = Kind {
    name: "scotch",
    form: "scotch:FILE.tgt",
    help: "A target architecture of Scotch: complete, hypercube, mesh, torus, tree-leaf or decomposition-defined.",
    parse,
};

fn parse(name: &str) -> Result<Arc<dyn Topology>, Fault> {
    if name.is_empty() {
        return Err("expected the name of a target architecture file such as torus3D 4 4 4".into());
    }
    from_file("target architecture", name, |text| read(&format!("scotch:{name}"), text))
}

/// The words of a file and their lines.
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

    /// Where the last word read stands.
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

    /// A number from `least` on.
    fn number(&mut self, what: &str, least: u32) -> Result<u32, String> {
        let word = self.word(what)?;
        let number = word.parse().ok().filter(|&number| number >= least);
        number.ok_or_else(|| {
            format!("line {}: expected {what}, a number of at least {least}, found `{word}`", self.line())
        })
    }

    /// So many numbers, if there are so many words left.
    fn numbers(&mut self, count: usize, what: &str, least: u32) -> Result<Vec<u32>, String> {
        if count > self.left() {
            return Err(format!(
                "line {}: expected {count} times {what}, and there are {} words left",
                self.line(),
                self.left()
            ));
        }
        (0..count).map(|_| self.number(what, least)).collect()
    }
}

/// The machine of a file with this text, which `spec` reads again.
fn read(spec: &str, text: &str) -> Result<Arc<dyn Topology>, String> {
    let mut words = Words::of(text);
    let name = words.word("the name of an architecture")?;
    let line = words.line();
    let told = |reason: String| format!("line {line}: {reason}");
    let machine: Arc<dyn Topology> = match name.to_lowercase().as_str() {
        "cmplt" => Arc::new(Flat::new(words.number("a number of PEs", 1)? as usize).map_err(told)?),
        "cmpltw" => {
            let pes = words.number("a number of PEs", 1)? as usize;
            let weights = words.numbers(pes, "the weight of a PE", 1)?;
            same_weights(&weights).map_err(|reason| format!("line {}: {reason}", words.line()))?;
            Arc::new(Flat::new(pes).map_err(told)?)
        }
        "hcub" => {
            Arc::new(Hypercube::new(words.number("a number of dimensions", 1)? as usize).map_err(told)?)
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
            return Err(told(format!(
                "the architecture {name} is not understood here; write the machine itself (of a part, an allocation \
                 such as scotch:FILE.tgt[0-3])"
            )));
        }
        _ => {
            return Err(told(format!(
                "there is no architecture `{name}`; understood are cmplt, cmpltw, hcub, mesh2D, mesh3D, meshXD, \
                 torus2D, torus3D, torusXD, tleaf, ltleaf and deco"
            )));
        }
    };
    if words.left() > 0 {
        let word = words.word("")?;
        return Err(format!(
            "line {}: the architecture ends before `{word}`; take out what follows",
            words.line()
        ));
    }
    Ok(machine)
}

fn same_weights(weights: &[u32]) -> Result<(), String> {
    match weights.iter().find(|&weight| *weight != weights[0]) {
        None => Ok(()),
        Some(other) => Err(format!(
            "PEs have the weights {} and {other}; a machine has no speeds here, which databases have (give all the \
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
        let arity = words.number("how many parts a level has", 1)?;
        tree.push((arity as usize, words.number("the distance between the parts of a level", 1)?));
    }
    Tree::new(&tree).map_err(|reason| format!("line {}: {reason}", words.line()))
}

/// A tree whose leaf `i` is the PE that the permutation says, which repeats itself.
fn labeled(words: &mut Words) -> Result<Arc<dyn Topology>, String> {
    let tree = tree(words)?;
    let period = words.number("the length of a permutation", 1)? as usize;
    let labels = words.numbers(period, "the label of a leaf", 0)?;
    let told = |reason: String| format!("line {}: {reason}", words.line());
    let mut leaf_of = vec![None; period];
    for (leaf, &label) in labels.iter().enumerate() {
        let place = leaf_of.get_mut(label as usize);
        if place.and_then(|place| place.replace(leaf)).is_some() || label as usize >= period {
            return Err(told(format!("the labels are a permutation of 0 to {}; {label} is not", period - 1)));
        }
    }
    if !tree.pes().is_multiple_of(period) {
        return Err(told(format!("{period} labels do not divide the {} leaves of the tree", tree.pes())));
    }
    if labels.is_sorted() {
        return Ok(Arc::new(tree));
    }
    let leaf = |pe: usize| pe - pe % period + leaf_of[pe % period].unwrap_or(0);
    let leaves = (0..tree.pes()).map(|pe| leaf(pe) as u32).collect();
    Ok(Arc::new(Allocation::new(Arc::new(tree), leaves).map_err(told)?))
}

/// The distances of the terminals of a decomposition, by their labels.
///
/// Domain 1 is the whole, and domain `d` is cut into `2d` and `2d + 1`. Raw files list the terminals (label,
/// weight, domain) and the distance of each to those before it; compiled ones list all domains (label, size,
/// weight), and of each the distances to those before it.
fn decomposition(spec: &str, words: &mut Words) -> Result<DistanceMatrix, String> {
    let kind = words.number("the kind of the decomposition, 0 or 1", 0)?;
    let pes = words.number("a number of terminals", 1)? as usize;
    let domains = words.number("the highest domain", 1)? as usize;
    let told = |words: &Words, reason: String| format!("line {}: {reason}", words.line());
    if kind > 1 {
        return Err(told(words, format!("the kind of a decomposition is 0 or 1, found {kind}")));
    }
    if pes > MAX_TABLE_PES || domains < pes || domains > MAX_PES {
        return Err(told(
            words,
            format!(
                "a decomposition has 1 to {MAX_TABLE_PES} terminals among its domains, found {pes} of {domains}"
            ),
        ));
    }
    // By terminal, in the order of the file: its label, its weight, and its place in the list of distances.
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
        return Err(told(words, format!("there are {} terminals, and {pes} were promised", terminals.len())));
    }
    let weights: Vec<u32> = terminals.iter().map(|terminal| terminal.1).collect();
    same_weights(&weights).map_err(|reason| told(words, reason))?;
    let mut pe_at = vec![None; listed];
    let mut is_taken = vec![false; pes];
    for &(label, _, place) in &terminals {
        match is_taken.get_mut(label as usize) {
            Some(is_taken) if !*is_taken => *is_taken = true,
            _ => return Err(told(words, format!("labels are 0 to {}, each once; {label} is not", pes - 1))),
        }
        pe_at[place] = Some(label as usize);
    }
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

    /// Files, and the specs of their machines.
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

    /// Three terminals labelled 2, 0 and 1, raw and compiled.
    const RAW: &str = "deco\n0 3 5\n2 1 4\n0 1 5\n1 1 3\n1\n2 3\n";
    const COMPILED: &str =
        "deco\n1\n3\t5\n0\t3\t3\n0\t2\t2\n1\t1\t1\n2\t1\t1\n0\t1\t1\n1 2 2 2 1 2 1 3 1 1\n";

    #[test]
    fn architectures_are_machines_of_this_room() {
        for (text, spec) in GOLDEN {
            let machine = read("", text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(machine.spec(), *spec, "{text}");
        }
    }

    #[test]
    fn decompositions_are_distances_by_label() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("deco.tgt");
        std::fs::write(&file, RAW).expect("a file");
        let machine = parse(&format!("scotch:{}", file.display())).expect("a machine");
        check(&*machine);
        // 0 to 2 is the first distance, then 1 to 2 and 1 to 0.
        assert_eq!([row(&*machine, 0), row(&*machine, 1)], [[0, 3, 1], [3, 0, 2]]);
        // Domains 3, 4 and 5 are 1, 2 and 0: their distances are the 5th and 6th, and the 9th and 10th.
        let compiled = read("", COMPILED).expect("a machine");
        assert_eq!([row(&*compiled, 0), row(&*compiled, 1)], [[0, 1, 1], [1, 0, 2]]);
    }

    #[test]
    fn what_is_wrong_with_an_architecture_is_said_with_its_line() {
        for (text, expected) in [
            ("", "line 1: expected the name of an architecture, found the end of the file"),
            ("ring 4\n", "line 1: there is no architecture `ring`; understood are cmplt"),
            ("cmplt\nfour\n", "line 2: expected a number of PEs, a number of at least 1, found `four`"),
            ("cmplt 99999999\n", "line 1: sizes multiply to at most"),
            ("cmpltw 2 1\n3\n", "line 2: PEs have the weights 1 and 3"),
            ("cmpltw 9 1\n", "line 1: expected 9 times the weight of a PE, and there are 1 words left"),
            ("hcub 99\n", "line 1: a hypercube has at most 24 dimensions"),
            ("mesh2D 3\n", "line 1: expected 2 times the size of a dimension"),
            ("torus2D 4 0\n", "line 1: expected the size of a dimension, a number of at least 1, found `0`"),
            ("torus2D 4 4\n\n5\n", "line 3: the architecture ends before `5`"),
            ("tleaf 2 4 1 2 10\n", "line 1: distances are at least 1 and do not grow towards the leaves"),
            ("ltleaf 1 4 1 2 0 0\n", "line 1: the labels are a permutation of 0 to 1; 0 is not"),
            ("ltleaf 1 4 1 3 0 1 2\n", "line 1: 3 labels do not divide the 4 leaves"),
            ("sub 2 0 1\ncmplt 4\n", "line 1: the architecture sub is not understood here"),
            ("deco\n2 3 5\n", "line 2: the kind of a decomposition is 0 or 1, found 2"),
            ("deco\n0 2 3\n0 1 2\n0 1 3\n1\n", "line 4: labels are 0 to 1, each once; 0 is not"),
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
