//! What a placement must keep, as a line of a table.

use equipoise_model::constraints::{Constraints, PerPe};
use equipoise_model::table::count;

/// The constraints of a step, as clauses.
pub(super) fn clauses(constraints: &Constraints) -> String {
    let Constraints { max_objects, memory, object_bytes, places, groups, phases } = constraints;
    let per_pe = |numbers: &PerPe, what: &str| match numbers {
        PerPe::All(1) => format!("1 {what} on each PE"),
        PerPe::All(number) => format!("{number} {what}s on each PE"),
        PerPe::Each(_) => format!("{what}s by PE"),
    };
    let counts = max_objects.iter().map(|most| {
        format!("{} {}", if most.exact { "exactly" } else { "at most" }, per_pe(&most.most, "object"))
    });
    let memory = memory.iter().map(|memory| format!("memory for {}", per_pe(memory, "byte")));
    let (wishes, places): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.worth_seconds.is_some());
    let numbers = [
        (object_bytes.len(), "given size"),
        (places.len(), "place"),
        (wishes.len(), "wish for a place"),
        (groups.len(), "group"),
        (phases.first().map_or(0, |(_, loads)| loads.len()), "phase"),
    ];
    let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
    let numbers = numbers.map(|(number, what)| match what {
        "wish for a place" if number > 1 => format!("{number} wishes for places"),
        _ => count(number as u64, what),
    });
    counts.chain(memory).chain(numbers).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_model::constraints::{Group, Level, MaxObjects};

    #[test]
    fn kinds_that_are_there_are_named() {
        let group = Group { together: true, level: Level::Node, objects: vec![0, 1] };
        let constraints = Constraints {
            max_objects: Some(MaxObjects { most: PerPe::All(4), exact: true }),
            memory: Some(PerPe::Each(vec![10, 20])),
            groups: vec![group],
            phases: vec![(0, vec![1.0, 2.0])],
            ..Constraints::default()
        };
        let expected = "exactly 4 objects on each PE, memory for bytes by PE, 1 group, 2 phases";
        assert_eq!(clauses(&constraints), expected);
    }
}
