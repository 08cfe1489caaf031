//! The program of the page "From MPI": values travel around a ring, then all elements agree on a sum.

use equipoise::prelude::*;

const ROUNDS: u32 = 10;

#[derive(Serialize, Deserialize)]
struct Rank {
    value: i64,
    round: u32,
    done: Exit<i64>,
}

#[chare(index = [i32; 1])]
impl Rank {
    /// Sends the value to the right neighbor.
    #[entry]
    fn send(&mut self, cx: &Cx<Self>) {
        let ([me], [ranks]) = (cx.index(), cx.shape());
        self.round += 1;
        cx.peer([(me + 1) % ranks]).receive(self.round, self.value);
    }

    /// Receives the value of the left neighbor in this round; values of later rounds wait.
    #[entry(when = round == self.round)]
    fn receive(&mut self, cx: &Cx<Self>, round: u32, value: i64) {
        self.value = value + i64::from(cx.index()[0]);
        if self.round < ROUNDS {
            self.send(cx);
        } else {
            cx.peer([0]).contribute().total(self.value);
        }
    }

    /// Receives the sum over all elements.
    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: i64) {
        self.done.exit(cx, sum);
    }
}

fn main() {
    let report = equipoise::run(Config::threads(2), |pe, done| {
        let ranks = pe.array([8], |[me]| Rank { value: i64::from(me), round: 0, done });
        pe.main(move |pe| ranks.all(pe).send());
    });
    println!("sum {}", report.result);
}
