//! Every cost by name: what `equipoise evaluate --cost` understands, and the lines of its tables.
//!
//! A cost has the name of its field in a document, and is a number with its unit for a person.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Serialize;

use super::contention::{Estimate, Speeds};
use super::criterion::Cost;
use super::mcf_optimal::{self, Optimal, Unsolved, Ways};
use super::{Communication, Metrics, cuts};
use crate::program::Model;
use crate::spelling::{nearest, suggestion};
use crate::table::{bytes, seconds};
use crate::{Database, Topology};

/// Every cost, in the order tables show them.
pub const ALL: &[Named] = &[
    Named {
        name: "max_load_seconds",
        title: "largest load",
        on_request: false,
        of: |placed| Amount::Seconds(placed.metrics.max_load_seconds),
    },
    Named {
        name: "average_load_seconds",
        title: "average load",
        on_request: false,
        of: |placed| Amount::Seconds(placed.metrics.average_load_seconds),
    },
    Named {
        name: "lower_bound_seconds",
        title: "lower bound of the largest",
        on_request: false,
        of: |placed| Amount::Seconds(placed.metrics.lower_bound_seconds),
    },
    Named {
        name: "heaviest_object_seconds",
        title: "heaviest object alone",
        on_request: false,
        of: |placed| Amount::Seconds(placed.metrics.heaviest_object_seconds),
    },
    Named {
        name: "imbalance",
        title: "max/avg load",
        on_request: false,
        of: |placed| Amount::Imbalance(placed.metrics.imbalance),
    },
    Named {
        name: "total_messages",
        title: "messages",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Count(c.total_messages.into())),
    },
    Named {
        name: "remote_messages",
        title: "messages between PEs",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Count(c.remote_messages.into())),
    },
    Named {
        name: "total_bytes",
        title: "bytes",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Bytes(c.total_bytes)),
    },
    Named {
        name: "remote_bytes",
        title: "bytes between PEs",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Bytes(c.remote_bytes)),
    },
    Named {
        name: "hop_bytes",
        title: "hop-bytes",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Count(c.hop_bytes)),
    },
    Named {
        name: "hop_bytes_lower_bound",
        title: "lower bound of hop-bytes",
        on_request: false,
        of: |placed| placed.communication(|c| c.hop_bytes_lower_bound.map_or(Amount::Unknown, Amount::Count)),
    },
    Named {
        name: "hops_per_byte",
        title: "hops per byte",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Ratio(c.hops_per_byte)),
    },
    Named {
        name: "hops_per_remote_byte",
        title: "hops per byte between PEs",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Ratio(c.hops_per_remote_byte)),
    },
    Named {
        name: "max_dilation",
        title: "longest dilation",
        on_request: false,
        of: |placed| placed.communication(|c| Amount::Count(c.max_dilation.into())),
    },
    Named {
        name: "max_link_bytes",
        title: "bytes over the busiest link",
        on_request: false,
        of: |placed| placed.communication(|c| c.max_link_bytes.map_or(Amount::Unknown, Amount::Bytes)),
    },
    Named {
        name: "mean_link_bytes",
        title: "bytes over a link on average",
        on_request: false,
        of: |placed| placed.communication(|c| c.mean_link_bytes.map_or(Amount::Unknown, Amount::MeanBytes)),
    },
    Named {
        name: "contention",
        title: "estimated end, with contention",
        of: |placed| placed.communication(|_| Amount::Seconds(placed.contention_seconds())),
        on_request: true,
    },
    Named {
        name: "migrations",
        title: "objects moved",
        on_request: false,
        of: |placed| Amount::Count(placed.metrics.migrations.into()),
    },
    Named {
        name: "migrated_bytes",
        title: "bytes moved",
        on_request: false,
        of: |placed| placed.metrics.migrated_bytes.map_or(Amount::Unknown, Amount::Bytes),
    },
    Named {
        name: "qap:hops",
        title: "bytes times hops",
        on_request: true,
        // The same integer.
        of: |placed| placed.communication(|c| Amount::Count(c.hop_bytes)),
    },
    Named {
        name: "qap:bandwidth",
        title: "bytes times seconds per byte when all PEs send to all",
        on_request: true,
        of: |placed| placed.criterion("qap:bandwidth", Amount::Seconds),
    },
    Named {
        name: "qap:rtt",
        title: "bytes times round-trip seconds",
        on_request: true,
        of: |placed| placed.criterion("qap:rtt", Amount::Ratio),
    },
    Named {
        name: "mcf",
        title: "time of the busiest link",
        on_request: true,
        of: |placed| placed.criterion("mcf", Amount::Seconds),
    },
    Named {
        name: "mcf:optimal",
        title: "the same with the best routes",
        on_request: true,
        of: |placed| {
            let best = || placed.best_routes().map(|best| Amount::Seconds(best.seconds));
            placed.known("mcf:optimal", best)
        },
    },
    Named {
        name: "mcf:shortest",
        title: "the same with the best shortest routes",
        on_request: true,
        of: |placed| placed.criterion("mcf:shortest", Amount::Seconds),
    },
    Named {
        name: "mcf:cuts",
        title: "what no routes can go below, by cuts",
        on_request: true,
        of: |placed| {
            let bound = || cuts::bound(placed.database, placed.topology, placed.pe_of).map(Amount::Seconds);
            placed.known("mcf:cuts", bound)
        },
    },
];

/// A cost as the command line knows it.
pub struct Named {
    /// Its name, which is its field in documents.
    pub name: &'static str,
    /// What a table calls it.
    pub title: &'static str,
    /// Whether it is only computed where it is asked for by its name: it takes long, or is of use to few.
    pub on_request: bool,
    /// What a placement costs.
    pub of: fn(&Placed) -> Amount,
}

/// A placement on a machine, and the metrics that many costs are taken from.
pub struct Placed<'a> {
    /// The objects, and who sends how much to whom.
    pub database: &'a Database,
    /// The machine.
    pub topology: &'a dyn Topology,
    /// The PE of each object.
    pub pe_of: &'a [u32],
    /// [`Metrics::full`] of these three.
    pub metrics: Metrics,
    /// What else is known of the objects where they are the processes of a program.
    pub program: Option<&'a Model>,
    /// The best routing, once somebody has asked for it.
    best_routes: OnceCell<Result<Optimal, Unsolved>>,
    /// The costs by name that were asked for and take long, or why they are unknown.
    known: RefCell<BTreeMap<&'static str, Result<Amount, String>>>,
}

/// The costs that tables show where none is asked for.
pub fn usual() -> impl Iterator<Item = &'static Named> {
    ALL.iter().filter(|cost| !cost.on_request)
}

impl<'a> Placed<'a> {
    /// The placement of object `i` of `database` on PE `pe_of[i]` of `topology`.
    ///
    /// # Panics
    /// As [`Metrics::of`].
    pub fn new(database: &'a Database, topology: &'a dyn Topology, pe_of: &'a [u32]) -> Self {
        let metrics = Metrics::full(database, topology, pe_of);
        let (best_routes, known) = (OnceCell::new(), RefCell::default());
        Placed { database, topology, pe_of, metrics, program: None, best_routes, known }
    }

    /// The best routing of its messages.
    ///
    /// # Errors
    /// Where it is not known; costs are unknown then.
    pub fn best_routes(&self) -> Result<&Optimal, Unsolved> {
        let solve = || mcf_optimal::solve(self.database, self.topology, self.pe_of, Ways::Any);
        self.best_routes.get_or_init(solve).as_ref().map_err(|unsolved| *unsolved)
    }

    /// Whether somebody has asked for the best routing, which takes a linear program.
    pub fn is_solved(&self) -> bool {
        self.best_routes.get().is_some()
    }

    /// A cost that searches know by this name, as that kind of amount; unknown where the machine is too large.
    fn criterion(&self, name: &'static str, amount: fn(f64) -> Amount) -> Amount {
        let of = |cost: Cost| cost.of(self.database, self.topology, self.pe_of).map_err(|e| e.to_string());
        self.known(name, || name.parse().and_then(of).map(amount))
    }

    /// A cost of its communication, which is computed when it is asked for first; unknown where it is not known, of which
    /// the reason is kept, and where no communication was recorded.
    fn known<E: fmt::Display>(&self, name: &'static str, cost: impl FnOnce() -> Result<Amount, E>) -> Amount {
        self.communication(|_| {
            let found = self.known.borrow().get(name).cloned();
            let found = found.unwrap_or_else(|| {
                let found = cost().map_err(|reason| reason.to_string());
                self.known.borrow_mut().insert(name, found.clone());
                found
            });
            found.unwrap_or(Amount::Unknown)
        })
    }

    /// Of the costs that were asked for and are unknown although communication was recorded: their names, and why.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let known = self.known.borrow();
        known.iter().filter_map(|(name, found)| Some((*name, found.as_ref().err()?.clone()))).collect()
    }

    /// The same, of the processes of a program of which more is known.
    pub fn with_program(mut self, program: Option<&'a Model>) -> Self {
        self.program = program;
        self
    }

    /// When the slowest PE is done by the estimate of [`super::contention`], in seconds.
    fn contention_seconds(&self) -> f64 {
        let made = || Model::of_database(self.database, self.topology);
        let model = self.program.map_or_else(|| Cow::Owned(made()), Cow::Borrowed);
        let speeds = Speeds::of(self.database, &model);
        let mut places = self.pe_of.to_vec();
        // Ends of edges that are PEs stay there, whatever stands here.
        places.resize(model.tasks.len(), 0);
        let ticks = Estimate::of(&model, self.topology, &speeds, &places);
        Model::cycles(ticks) * model.cycle_seconds
    }

    /// A cost of its communication, unknown where that was not recorded.
    fn communication(&self, cost: impl FnOnce(&Communication) -> Amount) -> Amount {
        self.metrics.communication.as_ref().map_or(Amount::Unknown, cost)
    }
}

/// How much something costs: a bare number in a document, one with its unit for a person.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// A time.
    Seconds(f64),
    /// max/avg - 1, which a person is shown as max/avg.
    Imbalance(f64),
    /// So many of something.
    Count(u128),
    /// A volume.
    Bytes(u64),
    /// A volume on average.
    MeanBytes(f64),
    /// Something per something.
    Ratio(f64),
    /// What was not recorded, or would take too long to compute.
    Unknown,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Amount::Seconds(time) => f.write_str(&seconds(time)),
            Amount::Imbalance(imbalance) => write!(f, "{:.3}", imbalance + 1.0),
            Amount::Count(count) => write!(f, "{count}"),
            Amount::Bytes(volume) => f.write_str(&bytes(volume)),
            Amount::MeanBytes(mean) => f.write_str(&bytes(mean.round() as u64)),
            Amount::Ratio(ratio) => write!(f, "{ratio:.3}"),
            Amount::Unknown => f.write_str("unknown"),
        }
    }
}

/// A name that no cost has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no cost `{name}`{}; known are {known}", suggestion(.nearest))]
pub struct UnknownCost {
    /// The name as written.
    pub name: String,
    /// The known name that is closest to it, if any is close.
    pub nearest: Option<String>,
    /// Every known name.
    pub known: String,
}

/// The cost of that name.
///
/// # Errors
/// When there is none.
pub fn parse(name: &str) -> Result<&'static Named, UnknownCost> {
    ALL.iter().find(|cost| cost.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|cost| cost.name).collect();
        UnknownCost { name: name.to_string(), nearest: nearest(name, &known), known: known.join(", ") }
    })
}

/// What a person can write where costs are asked for.
pub fn help() -> String {
    let width = ALL.iter().map(|cost| cost.name.len()).max().unwrap_or(0);
    ALL.iter().fold(String::new(), |mut text, cost| {
        _ = writeln!(text, "{:width$}  {}", cost.name, cost.title);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Edge, End};
    use crate::{testing, topology};

    /// Two objects on different PEs of a ring of four, one of which moved there.
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
            // How large the problem is costs nothing.
            assert!(fields.remove("pes").is_some() && fields.remove("objects").is_some());
            for (name, value) in fields {
                let amount = (parse(&name).expect("a cost").of)(placed);
                let text = serde_json::to_string(&amount).expect("a number");
                assert_eq!(text, value.to_string(), "{name}");
            }
        });
    }

    #[test]
    fn a_person_sees_units() {
        check(|placed| {
            let shown = |name| (parse(name).expect(name).of)(placed).to_string();
            for (name, expected) in [
                ("max_load_seconds", "2.00 s"),
                ("imbalance", "2.667"),
                ("hop_bytes", "3000"),
                ("max_link_bytes", "1.50 kB"),
                ("mean_link_bytes", "375 B"),
                ("hops_per_byte", "2.000"),
                ("migrated_bytes", "unknown"),
                // 1500 bytes over two links of 1e9 bytes per second and 1 us, one way; a ring has another. Three of
                // all pairs of PEs cross such a link.
                ("qap:hops", "3000"),
                ("qap:bandwidth", "4.50 us"),
                ("qap:rtt", "0.399"),
                ("mcf", "1.50 us"),
                ("mcf:optimal", "750 ns"),
                ("mcf:shortest", "750 ns"),
                ("mcf:cuts", "750 ns"),
            ] {
                assert_eq!(shown(name), expected, "{name}");
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
            assert_eq!((parse(name).expect(name).of)(&placed).to_string(), shown);
            assert_eq!(document.get(name).is_none(), shown == "unknown", "{name}");
        }
        let communication = ["messages", "total_bytes", "remote", "hop", "dilation", "link", "qap", "mcf"];
        for cost in ALL.iter().filter(|cost| communication.iter().any(|word| cost.name.contains(word))) {
            assert_eq!((cost.of)(&placed), Amount::Unknown, "{}", cost.name);
            assert_eq!(document.get(cost.name), None, "{}", cost.name);
        }
    }

    #[test]
    fn what_is_unknown_has_a_reason_and_nothing_sent_costs_nothing() {
        let of = |machine: &str, database: &Database, name: &str| {
            let machine = topology::parse(machine).expect("a machine");
            let places = database.placement();
            let placed = Placed::new(database, &*machine, &places);
            let amount = (parse(name).expect(name).of)(&placed);
            (amount, placed.reasons())
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
            ("torus:9000", &many, "qap:bandwidth", "distances of at most 8192 PEs are kept"),
            ("torus:2x2*mesh:2", &cores, "mcf:optimal", "cross links that do not meet"),
            ("torus:2x2*mesh:2", &cores, "mcf:shortest", "cross links that do not meet"),
            ("torus:2x2*mesh:2", &cores, "mcf:cuts", "cross links that do not meet"),
        ] {
            let (amount, reasons) = of(machine, database, name);
            assert_eq!(amount, Amount::Unknown, "{name}");
            assert!(
                matches!(&reasons[..], [(of, told)] if *of == name && told.contains(reason)),
                "{reasons:?}"
            );
        }
        cores.edges.clear();
        for name in ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf", "mcf:optimal", "mcf:shortest", "mcf:cuts"]
        {
            let (amount, reasons) = of("torus:4x2", &cores, name);
            assert!(reasons.is_empty() && !amount.to_string().contains('-'), "{name}: {amount}");
            let document = serde_json::to_string(&amount).expect("a number");
            assert!(matches!(&document[..], "0" | "0.0"), "{name}: {document}");
        }
    }

    #[test]
    fn a_name_that_no_cost_has_is_answered_with_all_that_some_have() {
        let error = parse("hop_byte").err().expect("no such cost").to_string();
        assert!(
            error.starts_with("there is no cost `hop_byte` (did you mean `hop_bytes`?); known are max_load")
        );
        for cost in ALL {
            assert!(error.contains(cost.name) && help().contains(cost.name), "{}", cost.name);
            assert_eq!(ALL.iter().filter(|other| other.name == cost.name).count(), 1, "{}", cost.name);
        }
    }
}
