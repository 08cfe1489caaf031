//! One program with what crosses processes in ways of its own: sections and their reductions, prefixes, timers, elements that
//! elements create, bound elements, callbacks, priorities, a `main` that waits. Prints a sum that depends on every message.

use equipoise::prelude::*;
use equipoise::reduce;
use std::time::Duration;

const MEMBERS: i32 = 12;

/// Bound to a member: counts what the member tells it without a message.
#[derive(Serialize, Deserialize)]
struct Notes {
    sum: u64,
}

#[chare(index = [i32; 1])]
impl Notes {
    #[entry]
    fn give(&mut self, cx: &Cx<Self>, members: Array<Member>) {
        members.at(cx, cx.index()).noted(self.sum);
    }
}

/// Works for the member that created it.
#[derive(Serialize, Deserialize)]
struct Helper {
    done: u64,
}

#[chare(index = [i32; 1])]
impl Helper {
    #[entry(priority = -(number as i64))]
    fn square(&mut self, cx: &Cx<Self>, number: u64, result: Callback<u64>) {
        self.done += 1;
        result.send(cx, number * number);
    }
}

#[derive(Serialize, Deserialize)]
struct Member {
    sum: u64,
}

#[chare(index = [i32; 1], sync)]
impl Member {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>, notes: Array<Notes>, helpers: Array<Helper>) {
        let me: i32 = cx.index()[0];
        // Those with the same remainder are a section.
        let section: Section<Member> = cx.array().section(cx, |[other]| other % 3 == me % 3);
        section.all(cx).contribute_in(&section).summed(me as u64);
        when!(part(sum) => self.sum += sum);
        at_sync!(cx);
        section.all(cx).contribute_in(&section).prefix().summed(me as u64 + 1);
        when!(part(sum) => self.sum += 10 * sum);
        cx.peer([(me + 5) % MEMBERS]).after(Duration::from_millis(1)).late(me as u64);
        when!(late(from) => self.sum += 100 * from);
        for number in 1u64..4 {
            let on = Pe((me as u32 + number as u32) % cx.pes() as u32);
            let helper = helpers.create_on(cx, on, Helper { done: 0 });
            helpers.at(cx, helper).square(number, cx.peer([me]).callback().squared());
        }
        for _ in 0u64..3 {
            when!(squared(square) => self.sum += 1000 * square);
        }
        at_sync!(cx);
        let sum = self.sum;
        notes.local(cx, [me], |notes| notes.sum += sum).expect("bound elements are on one PE");
        notes.at(cx, [me]).give(cx.array());
        when!(noted(sum) => self.sum = sum);
        let total: u64 = reduce!(cx, reduce::sum, self.sum);
        if me == 0 {
            when!(ask(reply) => reply.send(cx, total));
        }
    }

    #[entry(reduce = reduce::sum)]
    fn summed(&mut self, cx: &Cx<Self>, sum: u64) {
        cx.peer(cx.index()).part(sum);
    }

    #[entry]
    fn part(sum: u64);

    #[entry]
    fn late(from: u64);

    #[entry]
    fn squared(square: u64);

    #[entry]
    fn noted(sum: u64);

    #[entry]
    fn ask(reply: Reply<u64>);
}

fn main() {
    let report = equipoise::run(equipoise::parse(), |pe, done| {
        let members = pe.array([MEMBERS], |_| Member { sum: 0 });
        let notes = pe.array_bound(&members, |_| Notes { sum: 0 });
        let helpers = pe.chares::<Helper>();
        pe.main_async(async move |pe| {
            members.all(&pe).life(notes, helpers);
            let total = pe.ask(|reply| members.at(&pe, [0]).ask(reply)).await;
            done.exit(&pe, total);
        });
    });
    println!("{}", report.result);
}
