//! Arguments arrive unchanged: at one and at several elements, guarded, reduced, after quiescence; even arguments
//! that are not `Clone` or have their own encoding.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Once(Vec<u32>);

#[derive(Serialize, Deserialize)]
struct Block {
    turn: u32,
    seen: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 1])]
impl Block {
    #[entry]
    fn start(&mut self, cx: &Cx<Self>) {
        if cx.index() == [0] {
            // The guard enforces the order of delivery.
            for turn in (0..4).rev() {
                cx.peer([1]).turn(turn, vec![turn as u8; 3], (turn as f64, "x".repeat(turn as usize)));
            }
            cx.peer([1]).once(Once(vec![7, 7]));
            cx.peers().at_quiescence().finish(5);
        }
    }

    #[entry(when = turn == self.turn)]
    fn turn(&mut self, _cx: &Cx<Self>, turn: u32, bytes: Vec<u8>, rest: (f64, String)) {
        assert_eq!((bytes, rest), (vec![turn as u8; 3], (turn as f64, "x".repeat(turn as usize))));
        self.seen.push(turn);
        self.turn += 1;
    }

    #[entry]
    fn once(&mut self, _cx: &Cx<Self>, once: Once) {
        assert_eq!(once.0, [7, 7]);
        self.seen.push(7);
    }

    #[entry]
    fn finish(&mut self, cx: &Cx<Self>, n: u32) {
        let mut seen = self.seen.clone();
        seen.retain(|&seen| seen != 7);
        seen.push(n + self.seen.len() as u32);
        cx.peer([0]).contribute().collect(seen);
    }

    /// Not associative, but there are only two contributions.
    #[entry(reduce = |a, b| if a.len() > b.len() { a } else { b })]
    fn collect(&mut self, cx: &Cx<Self>, longest: Vec<u32>) {
        self.done.exit(cx, longest);
    }
}

#[test]
fn arguments_arrive_as_they_were_sent() {
    for seed in 0..20 {
        let report = equipoise::run(Config::simulated(2, seed), |pe, done| {
            let blocks = pe.array([2], |_| Block { turn: 0, seen: vec![], done });
            pe.main(move |pe| blocks.all(pe).start());
        });
        assert_eq!(report.result, [0, 1, 2, 3, 10], "seed {seed}");
    }
}
