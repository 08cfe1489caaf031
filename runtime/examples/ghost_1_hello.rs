//! Tutorial, step 1: an array of blocks, a broadcast, and a reduction that ends the run.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    cells: Vec<f64>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Block {
    /// Contributes the heat of this block to the sum over all blocks.
    #[entry]
    fn measure(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().total(self.cells.iter().sum());
    }

    /// Receives the heat of all blocks.
    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, heat: f64) {
        self.done.exit(cx, heat);
    }
}

fn main() {
    let report = equipoise::run(Config::threads(2), |pe, done| {
        let blocks = pe.array([8], |[i]| Block { cells: vec![f64::from(i); 4], done });
        pe.main(move |pe| blocks.all(pe).measure());
    });
    println!("heat of 8 blocks on {} PEs: {}", report.pes, report.result);
}
