//! Callbacks: a library sends to receivers that it does not know.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::try_run;

/// A library: squares numbers, and sends the results where the client wants them.
#[derive(Serialize, Deserialize)]
struct Library {
    rng: Rng,
}

#[chare(index = [i32; 1], sync)]
impl Library {
    #[entry]
    fn square(&mut self, cx: &Cx<Self>, number: u64, result: Callback<u64>, over: Callback<()>) {
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        result.send(cx, number * number);
        over.send(cx, ());
    }

    /// Every element of the library contributes to a reduction of the client.
    #[entry]
    fn sum(&mut self, cx: &Cx<Self>, result: Callback<u64>) {
        cx.at_sync().summed(result);
    }

    #[entry]
    fn summed(&mut self, cx: &Cx<Self>, result: Callback<u64>) {
        result.contribute(cx, cx.index()[0] as u64);
    }
}

#[derive(Serialize, Deserialize)]
struct Client {
    library: Array<Library>,
    sum: u64,
    over: u32,
    done: Exit<u64>,
}

const NUMBERS: u64 = 10;

#[chare(index = [i32; 2])]
impl Client {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let over = cx.peers().callback().over();
        for number in 0..NUMBERS {
            // To one element, to several, and to a closure.
            let to_one = cx.peer([1, 2]).callback().square();
            let to_several = cx.array().only(cx, |[x, _]| x == 0).callback().square();
            let me = cx.array();
            let to_closure = cx.reply(move |pe, square| me.at(pe, [1, 0]).square(square)).callback();
            let result = [to_one, to_several, to_closure][number as usize % 3].clone();
            self.library.at(cx, [number as i32 % 5]).square(number, result, over.clone());
        }
    }

    #[entry]
    fn square(&mut self, _cx: &Cx<Self>, square: u64) {
        self.sum += square;
    }

    /// Every element receives it for every number.
    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.over += 1;
        if self.over == NUMBERS as u32 {
            cx.peer([0, 0]).at_quiescence().quiet();
        }
    }

    #[entry]
    fn quiet(&mut self, cx: &Cx<Self>) {
        self.over += 1;
        // All elements have sent `quiet`.
        if self.over == NUMBERS as u32 + 6 {
            self.library.all(cx).sum(cx.peers().callback().library());
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn library(&mut self, cx: &Cx<Self>, sum: u64) {
        cx.peer([0, 0]).contribute().total(self.sum + sum);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.callback().send(cx, sum);
    }
}

#[test]
fn a_library_sends_to_entries_closures_reductions_and_the_end_of_the_run() {
    everywhere(48, 16, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let library = pe.array([5], |[i]| Library { rng: Rng::new(seed, i as u64) });
            let clients = pe.array([2, 3], |_| Client { library, sum: 0, over: 0, done });
            pe.main(move |pe| clients.at(pe, [0, 0]).begin());
        });
        let squares = |rest: u64| (0..NUMBERS).filter(|n| n % 3 == rest).map(|n| n * n).sum::<u64>();
        assert_eq!(report.result, squares(0) + 3 * squares(1) + squares(2) + 6 * 10);
    });
}

/// The error of a run in which every element of the library contributes to a callback.
fn contributing_to(
    callback: impl Fn(&PeCx, Array<Client>, Exit<u64>) -> Callback<u64> + Copy + Sync + 'static,
) -> String {
    let failed = try_run(Config::simulated(2, 1), move |pe, done| {
        let library = pe.array([5], |_| Library { rng: Rng::new(0, 0) });
        let clients = pe.array([2, 3], |_| Client { library, sum: 0, over: 0, done });
        pe.main(move |pe| library.all(pe).summed(callback(pe, clients, done)));
    });
    failed.map(|report| report.result).expect_err("it cannot combine").to_string()
}

#[test]
fn a_contribution_to_a_callback_that_cannot_combine_is_an_error() {
    let error = contributing_to(|pe, clients, _| clients.at(pe, [0, 0]).callback().square());
    assert!(error.contains("the entry `square` of Client has no `reduce`"), "{error}");
    let error = contributing_to(|_, _, done| done.callback());
    assert!(error.contains("the end of the run cannot combine contributions"), "{error}");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[a_library_sends_to_entries_closures_reductions_and_the_end_of_the_run]);
}
