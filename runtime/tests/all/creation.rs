//! Chares without an index of the program's own, and indices with names.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{Report, reduce, try_run};
use std::collections::BTreeSet;

const DEPTH: u32 = 5;

/// A node of a tree, which creates its children.
#[derive(Serialize, Deserialize)]
struct Node {
    rng: Rng,
    depth: u32,
    forester: Array<Forester>,
}

#[chare(index = [i32; 1], sync)]
impl Node {
    #[entry]
    fn grow(&mut self, cx: &Cx<Self>) {
        for child in 0..u64::from(self.depth > 0) * 2 {
            let node = Node { rng: Rng::new(child, cx.index()[0] as u64), depth: self.depth - 1, ..*self };
            let on = Pe(self.rng.sample(cx.pes()) as u32);
            let child = match self.rng.sample(3) {
                0 => cx.array().create(cx, node),
                1 => cx.array().create_on(cx, on, node),
                _ => {
                    self.forester.at(cx, ()).plant(node);
                    continue;
                }
            };
            cx.peer(child).grow();
        }
        match self.rng.sample(5) {
            // The index of an element that ended is not used again.
            0 => {
                self.forester.at(cx, ()).report(cx.index());
                cx.destroy()
            }
            1 => cx.migrate(Pe(self.rng.sample(cx.pes()) as u32)),
            _ => {}
        }
    }

    #[entry]
    fn balance(&mut self, cx: &Cx<Self>) {
        cx.at_sync().tell();
    }

    #[entry]
    fn tell(&mut self, cx: &Cx<Self>) {
        self.forester.at(cx, ()).contribute().counted(vec![cx.index()[0]]);
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        Node { rng: self.rng.clone(), ..*self }
    }
}

#[derive(Serialize, Deserialize)]
struct Forester {
    nodes: Option<Array<Node>>,
    ended: Vec<i32>,
    /// How often the forest grows from a new root.
    roots: u32,
    done: Exit<(Vec<i32>, Vec<i32>)>,
}

#[chare(index = ())]
impl Forester {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, nodes: Array<Node>) {
        self.nodes = Some(nodes);
        self.root(cx);
    }

    #[entry]
    fn root(&mut self, cx: &Cx<Self>) {
        self.roots += 1;
        let rng = Rng::new(cx.seed(), u64::from(self.roots));
        self.plant(cx, Node { rng, depth: DEPTH, forester: cx.array() });
        if self.roots == 3 {
            self.nodes.expect("it has begun").all(cx).at_quiescence().balance();
        } else {
            cx.peer(()).at_checkpoint().root();
        }
    }

    #[entry]
    fn plant(&mut self, cx: &Cx<Self>, node: Node) {
        let nodes = self.nodes.expect("it has begun");
        let index = nodes.create(cx, node);
        nodes.at(cx, index).grow();
    }

    #[entry]
    fn report(&mut self, _cx: &Cx<Self>, index: [i32; 1]) {
        self.ended.push(index[0]);
    }

    #[entry(reduce = reduce::concat)]
    fn counted(&mut self, cx: &Cx<Self>, alive: Vec<i32>) {
        self.done.exit(cx, (alive, std::mem::take(&mut self.ended)));
    }
}

fn grow(config: Config) -> Report<(Vec<i32>, Vec<i32>)> {
    equipoise::run(config, |pe, done| {
        let forester = pe.array((), |()| Forester { nodes: None, ended: Vec::new(), roots: 0, done });
        let nodes = pe.chares();
        pe.main(move |pe| forester.at(pe, ()).begin(nodes));
    })
}

#[track_caller]
fn check(report: &Report<(Vec<i32>, Vec<i32>)>) {
    let (alive, ended) = &report.result;
    let all: BTreeSet<i32> = alive.iter().chain(ended).copied().collect();
    assert_eq!(all.len(), alive.len() + ended.len(), "every index is used once");
    assert_eq!(all.len(), 3 * ((1 << (DEPTH + 1)) - 1));
    assert!(!ended.is_empty() && alive.is_sorted());
}

#[test]
fn created_elements_have_fresh_indices_also_after_a_restart_on_other_pes() {
    everywhere(60, 24, |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let config = saves(config, dir.path(), None);
        let report = grow(config.clone());
        check(&report);
        assert_eq!(report.lb_steps.len(), 1);
        let other = if config.seed % 3 == 0 { threads(config.seed + 3) } else { simulated(config.seed + 4) };
        let folders = Checkpoint::all(dir.path()).expect("checkpoints");
        assert_eq!(folders.len(), 2, "{folders:?}");
        for folder in folders {
            let other = Config { seed: config.seed, ..other.clone() };
            let other = restarts_on(Config { checkpoints: config.checkpoints.clone(), ..other }, &folder);
            let again = tempfile::tempdir().expect("a folder");
            check(&grow(saves(other.clone(), again.path(), None)));
        }
    });
}

/// An index with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
struct Cell {
    x: i32,
    y: u8,
    mirrored: bool,
    level: i64,
}

const SHAPE: Cell = Cell { x: 3, y: 4, mirrored: true, level: 2 };

#[derive(Serialize, Deserialize)]
struct Block {
    done: Exit<Vec<Cell>>,
}

#[chare(index = Cell, sync)]
impl Block {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let Cell { x, .. } = cx.index();
        cx.peer(Cell { x: (x + 1) % cx.shape().x, ..cx.index() }).next();
    }

    #[entry]
    fn next(&mut self, cx: &Cx<Self>) {
        cx.at_sync().end();
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        cx.peer(Cell { x: 2, y: 0, mirrored: true, level: 1 }).contribute().all(vec![cx.index()]);
    }

    #[entry(reduce = reduce::concat)]
    fn all(&mut self, cx: &Cx<Self>, cells: Vec<Cell>) {
        self.done.exit(cx, cells);
    }
}

#[test]
fn a_struct_names_the_dimensions_of_an_index() {
    let mut expected = Vec::new();
    for level in 0..2 {
        for mirrored in [false, true] {
            for y in 0..4 {
                expected.extend((0..3).map(|x| Cell { x, y, mirrored, level }));
            }
        }
    }
    assert_eq!(equipoise::Index::count(SHAPE), Some(48));
    for (rank, &cell) in (0..).zip(&expected) {
        assert_eq!(equipoise::Index::rank(cell, SHAPE), Some(rank));
        assert_eq!(<Cell as equipoise::Index>::unrank(rank, SHAPE), cell);
        let Cell { x, y, mirrored, level } = cell;
        let coordinates = [x, i32::from(y), i32::from(mirrored), level as i32];
        assert_eq!(equipoise::Index::coordinates(cell).coordinates(), coordinates);
    }
    let expected = Box::leak(Box::new(expected));
    everywhere(30, 8, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = equipoise::run(config, |pe, done| {
            let blocks = pe.array(SHAPE, |_| Block { done });
            pe.main(move |pe| blocks.all(pe).begin());
        });
        assert_eq!(report.result, *expected);
    });
}

#[test]
fn an_index_with_names_has_bounds() {
    use equipoise::Index as _;
    let origin = Cell { x: 0, y: 0, mirrored: false, level: 0 };
    assert_eq!(Cell { x: 3, ..origin }.rank(SHAPE), None);
    assert_eq!(Cell { x: -1, ..origin }.rank(SHAPE), None);
    assert_eq!(Cell { level: 1 << 40, ..origin }.rank(SHAPE), None);
    assert_eq!(Cell { mirrored: true, ..origin }.rank(Cell { mirrored: false, ..SHAPE }), None);
    assert_eq!(Cell::count(Cell { mirrored: false, ..SHAPE }), Some(24));
    assert_eq!(Cell::count(Cell { x: -1, ..SHAPE }), None);
    assert_eq!(Cell::count(Cell { level: 1 << 40, ..SHAPE }), None);
    assert_eq!(Cell::count(Cell { x: i32::MAX, y: 255, ..SHAPE }), None);
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
    struct Pair(u32, u32);
    assert_eq!(Pair(2, 1).rank(Pair(4, 3)), Some(6));
    assert_eq!(Pair::unrank(6, Pair(4, 3)), Pair(2, 1));
}

#[derive(Serialize, Deserialize)]
struct Leaf;

#[chare(index = [i32; 1])]
impl Leaf {
    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}
}

#[test]
fn wrong_calls_are_refused() {
    type Call = fn(&PeCx, Array<Leaf>, Array<Leaf>);
    let calls: [(Call, &str); 4] = [
        (
            |pe, chares, _| chares.insert(pe, [0], Leaf),
            "Leaf has indices that the runtime chooses; call `create`, or make the array with `sparse`",
        ),
        (
            |pe, _, sparse| _ = sparse.create(pe, Leaf),
            "Leaf has indices that the program chooses; call `insert`, or make the array with `chares`",
        ),
        (|pe, chares, _| _ = chares.create_on(pe, Pe(2), Leaf), "there is no PE 2; PEs are 0 to 1"),
        (|pe, _, sparse| sparse.insert_on(pe, [0], Pe(7), Leaf), "there is no PE 7; PEs are 0 to 1"),
    ];
    for (call, sentence) in calls {
        let run = try_run(Config::threads(2), move |pe, _: Exit<()>| {
            let (chares, sparse) = (pe.chares(), pe.sparse([4]));
            pe.main(move |pe| call(pe, chares, sparse));
        });
        let Err(error) = run else { panic!("accepted: {sentence}") };
        assert!(error.to_string().contains(sentence), "{error}");
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        created_elements_have_fresh_indices_also_after_a_restart_on_other_pes,
        a_struct_names_the_dimensions_of_an_index,
    ]);
}
