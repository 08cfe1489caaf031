//! Wrong uses of sections have sentences.

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{reduce, try_run};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Wrong {
    NoMember,
    OtherEntry,
    OtherArray,
    Missing,
    Again,
    Prefix,
    PrefixOfOthers,
    Postponed,
    Stranger,
}

#[derive(Serialize, Deserialize)]
struct Odd {
    /// A section of another run.
    stranger: Option<Section<Odd>>,
    other: Option<Array<Odd>>,
    /// Whether it ends after its contribution, and inserts another element in its place.
    ends: bool,
}

#[chare(index = [i32; 1])]
impl Odd {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, wrong: Wrong) {
        let (one, is_last) = (cx.peer([0]), cx.index() == [2]);
        let section = cx.array().section(cx, |[at]| at < 3);
        match wrong {
            Wrong::NoMember if is_last => one.contribute_in(&cx.array().section_of(cx, [[0], [1]])).sum(1),
            Wrong::OtherEntry if is_last => one.contribute_in(&section).product(1),
            Wrong::OtherArray if is_last => {
                self.other.expect("another").at(cx, [0]).contribute_in(&section).sum(1)
            }
            Wrong::Missing if is_last => {}
            Wrong::Again if is_last => cx.peer([1]).go(wrong),
            Wrong::Again if cx.index() == [1] && self.ends => {
                one.contribute_in(&section).sum(1);
                cx.array().insert(cx, [1], Odd { stranger: None, other: None, ends: false });
                cx.destroy();
            }
            Wrong::Prefix => one.contribute_in(&section).prefix().sum(1),
            Wrong::PrefixOfOthers => cx.peers().contribute_in(&section).prefix().sum(1),
            Wrong::Postponed => cx.peers().at_quiescence().contribute_in(&section).sum(1),
            Wrong::Stranger => self.stranger.as_ref().expect("a section").all(cx).go(wrong),
            _ => one.contribute_in(&section).sum(1),
        }
    }

    #[entry(reduce = reduce::sum)]
    fn sum(&mut self, _cx: &Cx<Self>, _sum: u32) {}

    #[entry(reduce = reduce::product)]
    fn product(&mut self, _cx: &Cx<Self>, _product: u32) {}
}

/// A section of elements that no other run has.
fn stranger() -> Section<Odd> {
    let report = equipoise::run(Config::simulated(1, 0), |pe, done: Exit<Section<Odd>>| {
        let odds = pe.array([9], |_| Odd { stranger: None, other: None, ends: false });
        pe.main(move |pe| done.exit(pe, odds.section_of(pe, [[8], [1]])));
    });
    report.result
}

#[test]
fn wrong_uses_of_sections_have_sentences() {
    everywhere(24, 8, |config| {
        for (wrong, expected) in [
            (
                Wrong::NoMember,
                "Odd[2] contributes to a section of 2 elements of Odd, and is not a member; only its members contribute",
            ),
            (Wrong::OtherEntry, "reduction 1 of a section of Odd is inconsistent: Odd["),
            (Wrong::OtherArray, "`sum` of Odd[0] in array 1 of the setup"),
            (
                Wrong::Missing,
                "reduction of a section of Odd to entry `sum`: 2 of 3 elements have contributed; missing Odd[2]",
            ),
            (
                Wrong::Again,
                "an element contributed twice to reduction 1 of a section of Odd: it was inserted where another member ended",
            ),
            (
                Wrong::Prefix,
                "the prefixes of a reduction go to the elements that contribute; call `cx.peers()",
            ),
            (Wrong::PrefixOfOthers, "the prefixes of a reduction go to the elements that contribute"),
            (Wrong::Postponed, "a contribution to Odd cannot be postponed; call `contribute` without"),
            (
                Wrong::Stranger,
                "a section has element 8 of Odd, which has 3 elements in this run; use a section only in the run that made it",
            ),
        ] {
            let (stranger, ends) = ((wrong == Wrong::Stranger).then(stranger), wrong == Wrong::Again);
            let error = try_run(config.clone(), move |pe, _: Exit<u32>| {
                let other = pe.array([3], |_| Odd { stranger: None, other: None, ends });
                let odds = pe.array([3], |_| Odd { stranger: stranger.clone(), other: Some(other), ends });
                pe.main(move |pe| odds.all(pe).go(wrong));
            });
            let error = error.map(|report| report.result).expect_err("it is wrong").to_string();
            assert!(error.contains(expected), "{wrong:?}: {error}");
        }
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[wrong_uses_of_sections_have_sentences]);
}
