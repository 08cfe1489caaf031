//! Costs by name, compared with the fields of documents.

use equipoise_model::database::{Edge, End};
use equipoise_model::{Database, topology};

use super::*;
use crate::testing;

/// The cost of that name, or `None` if this build lacks its solver.
fn built(name: &str) -> Option<&'static Entry> {
    match parse(name) {
        Err(CostError::NotBuilt { .. }) => None,
        found => Some(found.expect(name)),
    }
}

/// Two objects on different PEs of a ring of 4; one of them has migrated.
fn check(amounts: impl FnOnce(&Placed)) {
    let mut database = testing::database(4, &[(1.0, 0), (2.0, 1)]);
    let edge = Edge { from: End::Object(0), to: End::Object(1), messages: 3, bytes: 1500 };
    database.edges.push(edge);
    let machine = topology::parse("torus:4").expect("a ring");
    amounts(&Placed::new(&database, &*machine, &[0, 2]));
}

#[test]
fn every_field_of_the_metrics_is_a_cost_of_that_name() {
    check(|placed| {
        let document = serde_json::to_value(&placed.metrics).expect("metrics");
        let mut fields = document.as_object().expect("an object").clone();
        // The size of the problem is not a cost.
        assert!(fields.remove("pes").is_some() && fields.remove("objects").is_some());
        for (name, value) in fields {
            let amount = parse(&name).expect("a cost").of(placed);
            let text = serde_json::to_string(&amount).expect("a number");
            assert_eq!(text, value.to_string(), "{name}");
        }
    });
}

#[test]
fn amounts_are_shown_with_units() {
    check(|placed| {
        for (name, expected) in [
            ("max_load_seconds", "2.00 s"),
            ("imbalance", "2.667"),
            ("hop_bytes", "3000"),
            ("max_link_bytes", "1.50 kB"),
            ("mean_link_bytes", "375 B"),
            ("hops_per_byte", "2.000"),
            ("migrated_bytes", "unknown"),
            // 1500 bytes one way over two links of 1e9 bytes per second and 1 us; the ring has a second way. 3 of the
            // pairs of PEs cross each of these links.
            ("qap:hops", "3000"),
            ("qap:bandwidth", "4.50 us"),
            ("qap:rtt", "0.399"),
            ("mcf", "1.50 us"),
            ("mcf:optimal", "750 ns"),
            ("mcf:shortest", "750 ns"),
            ("mcf:cuts", "750 ns"),
            ("load_above_bound", "0.0 %"),
            ("dilation_above_1", "100.0 %"),
        ] {
            let shown = built(name).map(|cost| cost.of(placed).to_string());
            assert!(shown.is_none_or(|shown| shown == expected), "{name}");
        }
    });
}

#[test]
fn what_was_not_recorded_is_unknown_and_not_zero() {
    let mut database = testing::database(4, &[(1.0, 0), (2.0, 1)]);
    database.communication_recorded = false;
    let machine = topology::parse("torus:4").expect("a ring");
    let placed = Placed::new(&database, &*machine, &[0, 2]);
    let document = serde_json::to_value(&placed.metrics).expect("metrics");
    for (name, shown) in [("max_load_seconds", "2.00 s"), ("migrations", "1"), ("hop_bytes", "unknown")] {
        assert_eq!(parse(name).expect(name).of(&placed).to_string(), shown);
        assert_eq!(document.get(name).is_none(), shown == "unknown", "{name}");
    }
    let communication = ["messages", "total_bytes", "remote", "hop", "dilation", "link", "qap", "mcf"];
    for cost in ALL.iter().filter(|cost| communication.iter().any(|word| cost.name.contains(word))) {
        assert_eq!(cost.of(&placed), Amount::Unknown, "{}", cost.name);
        assert_eq!(document.get(cost.name), None, "{}", cost.name);
    }
}

#[test]
fn unknown_costs_have_a_reason_and_sending_nothing_costs_nothing() {
    let of = |machine: &str, database: &Database, name: &str| {
        let machine = topology::parse(machine).expect("a machine");
        let places = database.placement();
        let placed = Placed::new(database, &*machine, &places);
        let amount = built(name)?.of(&placed);
        Some((amount, placed.reasons()))
    };
    let many = testing::database(9000, &[(1.0, 0), (1.0, 1)]);
    let cores = testing::database(8, &[(1.0, 0), (1.0, 7)]);
    let mut sent = [many, cores];
    for database in &mut sent {
        let edge = Edge { from: End::Object(0), to: End::Object(1), messages: 1, bytes: 10 };
        database.edges.push(edge);
    }
    let [many, mut cores] = sent;
    for (machine, database, name, reason) in [
        ("torus:9000", &many, "qap:bandwidth", "a table of distances has at most 8192 PEs"),
        ("torus:2x2*mesh:2", &cores, "mcf:optimal", "links of the machine's routes do not meet"),
        ("torus:2x2*mesh:2", &cores, "mcf:shortest", "links of the machine's routes do not meet"),
        ("torus:2x2*mesh:2", &cores, "mcf:cuts", "links of the machine's routes do not meet"),
    ] {
        let Some((amount, reasons)) = of(machine, database, name) else { continue };
        assert_eq!(amount, Amount::Unknown, "{name}");
        assert!(matches!(&reasons[..], [(of, text)] if *of == name && text.contains(reason)), "{reasons:?}");
    }
    cores.edges.clear();
    for name in ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf", "mcf:optimal", "mcf:shortest", "mcf:cuts"] {
        let Some((amount, reasons)) = of("torus:4x2", &cores, name) else { continue };
        assert!(reasons.is_empty() && !amount.to_string().contains('-'), "{name}: {amount}");
        let document = serde_json::to_string(&amount).expect("a number");
        assert!(matches!(&document[..], "0" | "0.0"), "{name}: {document}");
    }
}

#[test]
fn the_error_for_an_unknown_name_lists_all_costs() {
    let error = parse("hop_byte").err().expect("no such cost").to_string();
    assert!(error.starts_with("there is no cost `hop_byte` (did you mean `hop_bytes`?); known are max_load"));
    for cost in ALL {
        assert!(error.contains(cost.name) && help().contains(cost.name), "{}", cost.name);
        assert_eq!(ALL.iter().filter(|other| other.name == cost.name).count(), 1, "{}", cost.name);
    }
}

#[test]
fn distances_from_a_bound_are_legible() {
    for (value, bound, expected) in [
        (0.0, 0.0, "0.0 %"),
        (3.0, 0.0, "-"),
        (3.0, 3.0, "0.0 %"),
        (3.0, 2.0, "50.0 %"),
        (19.99, 2.0, "899.5 %"),
        (44.0, 2.0, "22 x"),
        (1.0, 2.0, "0.0 %"),
        (1e300, 1e-300, "-"),
    ] {
        assert_eq!(Amount::above(value, bound).to_string(), expected, "{value} above {bound}");
    }
}
