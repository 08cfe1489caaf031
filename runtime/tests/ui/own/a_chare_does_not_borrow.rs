//! A chare with a lifetime cannot migrate.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block<'a> {
    name: &'a str,
}

#[chare(index = [i32; 2])]
impl<'a> Block<'a> {
    #[entry]
    fn show(&mut self, _cx: &equipoise::Cx<Self>) {
        println!("{}", self.name);
    }
}

fn main() {}
