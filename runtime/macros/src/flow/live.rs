//! The variables that the points of a flow need.

use super::graph::{Fragment, Graph, Kind, Point, Step, Var};
use crate::errors::Errors;
use crate::types::not_owned;
use quote::ToTokens;
use std::collections::BTreeSet;

/// By point, the variables that it needs.
pub type Live = Vec<BTreeSet<Var>>;

/// The variables that each point needs: computed backward until nothing changes.
pub fn needed(graph: &Graph) -> Live {
    let mut live = vec![BTreeSet::new(); graph.nodes.len()];
    loop {
        let mut changes = false;
        for point in (0..graph.nodes.len()).rev() {
            let needs = at(graph, &live, point);
            changes |= needs.len() > live[point].len();
            live[point] = needs;
        }
        if !changes {
            return live;
        }
    }
}

fn at(graph: &Graph, live: &Live, point: Point) -> BTreeSet<Var> {
    let node = &graph.nodes[point];
    let Kind::Wait(cases) = &node.kind else { return of_code(live, &node.code) };
    let mut needs = BTreeSet::new();
    for case in cases {
        needs.extend(&live[case.then]);
        needs.extend(case.guard.iter().flat_map(|guard| &guard.mentions).map(|(_, var)| var));
        needs.extend(case.left.map(|(var, _)| var));
        for argument in case.arguments.iter().flatten() {
            needs.remove(argument);
        }
    }
    needs
}

fn of_code(live: &Live, code: &[Step]) -> BTreeSet<Var> {
    let mut needs = BTreeSet::new();
    for step in code.iter().rev() {
        match step {
            Step::Goto(to, _) => needs = live[*to].clone(),
            Step::Rust(fragment, declares) => {
                needs.retain(|var| !declares.contains(var));
                add(&mut needs, live, fragment);
            }
            Step::Choice { head, arms, .. } => {
                needs.clear();
                for arm in arms {
                    let mut of_arm = of_code(live, &arm.code);
                    of_arm.extend(&arm.uses);
                    of_arm.retain(|var| !arm.declares.contains(var));
                    needs.extend(of_arm);
                }
                add(&mut needs, live, head);
            }
        }
    }
    needs
}

fn add<T>(needs: &mut BTreeSet<Var>, live: &Live, fragment: &Fragment<T>) {
    needs.extend(&fragment.uses);
    fragment.jumps.iter().flatten().for_each(|&to| needs.extend(&live[to]));
}

/// Reports the variables that a point needs and that cannot be kept.
pub fn check(graph: &Graph, live: &Live, errors: &mut Errors) {
    let kept: BTreeSet<Var> = live.iter().flatten().copied().collect();
    for var in kept {
        let variable = &graph.variables[var];
        let name = &variable.name;
        match &variable.ty {
            None if variable.is_let => {
                let sentence = format!(
                    "`{name}` is used after a wait, so the flow keeps it: write its type, as in `let {name}: f64 = ..`"
                );
                errors.report(name, sentence);
            }
            None => {
                let sentence = format!(
                    "`{name}` is used after a wait, so the flow keeps it, and a pattern says no type: copy it to a variable with a \
                     type, as in `let kept: f64 = {name};`"
                );
                errors.report(name, sentence);
            }
            Some(ty) if not_owned(ty).is_some() => {
                let sentence = format!(
                    "`{name}` is used after a wait, so the flow keeps it, and it borrows: keep an owned value, or borrow again \
                     after the wait"
                );
                errors.report(ty, sentence);
            }
            Some(ty) if ty.to_token_stream().to_string().split(' ').any(|token| token == "_") => {
                errors.report(
                    ty,
                    format!("`{name}` is used after a wait, so the flow keeps it: write its whole type"),
                );
            }
            Some(_) => {}
        }
    }
}
