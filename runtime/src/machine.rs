//! The simulated machine: the flags that describe it, and what they mean.

use crate::options::ConfigError;
use clap::ValueEnum;
use equipoise_strategies::network::{self, Network};
use equipoise_strategies::topology::Topology;
use equipoise_strategies::trace::Speeds;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// The machine that `--transport simulated` simulates, where it is to simulate one: with a network it
/// runs in virtual time, on the links of `--topology`; without, messages arrive in an order drawn from
/// the seed and time means nothing.
///
/// Every PE does one thing at a time. A delivery takes what it charges ([`Cx::charge`](crate::Cx::charge)),
/// whatever is sent after a charge leaves after it, and a message takes what the network says. Broadcasts go along
/// a tree of PEs, parts of reductions from every PE to PE 0. Where work is measured, load is what was measured
/// times the PE's speed at the load-balancing step.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Simulated machine")]
pub struct Machine {
    /// Simulate a machine in virtual time, with this network on the links of --topology; `help` lists
    /// all kinds (with --transport simulated)
    #[arg(long, value_name = "SPEC")]
    pub network: Option<String>,

    /// What work takes that is not charged: no time, or what it takes here
    #[arg(long, value_enum, default_value_t, requires = "network")]
    pub uncharged: Uncharged,

    /// Speeds of PEs where they differ from 1, from some virtual second on: `3=0.5`, `0-63=2`,
    /// `all@1.5=0.25`; may be repeated
    #[arg(long, value_name = "PES[@SECONDS]=FACTOR", requires = "network")]
    pub speed: Vec<String>,

    /// Seconds it costs a PE to take a message from its queue
    #[arg(long, value_name = "SECONDS", default_value_t = Machine::default().delivery, requires = "network", allow_negative_numbers = true)]
    pub delivery: f64,

    /// Seconds it costs a PE to send a message to another PE, and to receive one
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.0,
        requires = "network",
        allow_negative_numbers = true
    )]
    pub overhead: f64,

    /// Seconds a strategy takes at a load-balancing step, or `measured`: what it takes here [default: none, or
    /// what it takes here with --uncharged measured]
    #[arg(long, value_name = "SECONDS", requires = "network", allow_negative_numbers = true)]
    pub strategy_seconds: Option<StrategySeconds>,

    /// Write what happened (executions, messages and what depends on what) to this file, for
    /// `equipoise simulate --events` (.json: as JSON)
    #[arg(long, value_name = "FILE", requires = "network")]
    pub record: Option<PathBuf>,
}

/// What work takes in virtual time if it is not charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Uncharged {
    /// Nothing: the same seed gives the same run.
    #[default]
    Free,
    /// What it takes on this machine, over the speed of the PE.
    Measured,
}

/// What a strategy takes in virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StrategySeconds {
    /// What it takes on this machine, wherever else nothing is measured.
    Measured,
    /// So many seconds.
    Charged(f64),
}

impl FromStr for StrategySeconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = || text.parse().map(StrategySeconds::Charged);
        if text == "measured" {
            Ok(StrategySeconds::Measured)
        } else {
            seconds().map_err(|_| "write seconds, as in 1e-3, or `measured`")
        }
    }
}

impl Default for Machine {
    /// None.
    fn default() -> Self {
        Machine {
            network: None,
            uncharged: Uncharged::Free,
            speed: Vec::new(),
            // About what it costs here. It is not 0 so that time passes while somebody only talks to itself.
            delivery: 1e-8,
            overhead: 0.0,
            strategy_seconds: None,
            record: None,
        }
    }
}

/// What the flags mean.
pub(crate) struct Simulation {
    /// The spec of the network.
    pub(crate) spec: String,
    /// The network, with nothing under way, until the run takes it.
    pub(crate) network: Mutex<Option<Box<dyn Network>>>,
    pub(crate) uncharged: Uncharged,
    /// By PE; empty if all are 1 throughout.
    pub(crate) speeds: Vec<Speeds>,
    pub(crate) delivery: f64,
    pub(crate) overhead: f64,
    pub(crate) strategy_seconds: StrategySeconds,
    pub(crate) record: Option<PathBuf>,
}

impl Machine {
    /// What the flags mean on `topology`; none if no machine is to be simulated.
    pub(crate) fn resolve(&self, topology: &Arc<dyn Topology>) -> Result<Option<Simulation>, ConfigError> {
        let Some(spec) = &self.network else {
            // On the command line clap says so.
            let Machine { speed, strategy_seconds, record, .. } = self;
            if !speed.is_empty() || strategy_seconds.is_some() || record.is_some() {
                return Err(ConfigError::Flag(
                    "speeds, seconds of strategies and traces are of a simulated machine; give it a network"
                        .into(),
                ));
            }
            return Ok(None);
        };
        let named = |error: &dyn std::fmt::Display| ConfigError::Flag(format!("--network {spec}: {error}"));
        let model = network::parse(spec).map_err(|error| named(&error))?;
        // Whether it serves this machine is found now, not when PEs have been built.
        let network = model.on(topology).map_err(|error| named(&error))?;
        let strategy = self.strategy_seconds.unwrap_or(match self.uncharged {
            Uncharged::Free => StrategySeconds::Charged(0.0),
            Uncharged::Measured => StrategySeconds::Measured,
        });
        let charged = if let StrategySeconds::Charged(seconds) = strategy { seconds } else { 0.0 };
        let times =
            [("--delivery", self.delivery), ("--overhead", self.overhead), ("--strategy-seconds", charged)];
        for (name, seconds) in times {
            if !TIMES.contains(&seconds) {
                let sentence =
                    format!("{name}: a time in seconds is a number from 0 to {}, as in 1e-6", TIMES.end());
                return Err(ConfigError::Flag(sentence));
            }
        }
        Ok(Some(Simulation {
            spec: spec.clone(),
            network: Mutex::new(Some(network)),
            uncharged: self.uncharged,
            speeds: speeds(&self.speed, topology.pes())?,
            delivery: self.delivery,
            overhead: self.overhead,
            strategy_seconds: strategy,
            record: self.record.clone(),
        }))
    }
}

impl Simulation {
    /// How fast a PE is when.
    pub(crate) fn speeds_of(&self, pe: u32) -> Speeds {
        self.speeds.get(pe as usize).cloned().unwrap_or_default()
    }

    /// What a strategy that took `measured` seconds here takes there.
    pub(crate) fn strategy(&self, measured: f64) -> f64 {
        match self.strategy_seconds {
            StrategySeconds::Measured => measured,
            StrategySeconds::Charged(seconds) => seconds,
        }
    }
}

/// The times and the factors of speed that flags can give: with these, what is added up stays a time that can be told from
/// the next.
const TIMES: std::ops::RangeInclusive<f64> = 0.0..=1e6;
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The speeds that `--speed` describes, by PE.
fn speeds(specs: &[String], pes: usize) -> Result<Vec<Speeds>, ConfigError> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = vec![Vec::new(); pes];
    for spec in specs {
        let Some((first, last, from, speed)) = speed(spec, pes) else {
            return Err(ConfigError::Flag(format!(
                "--speed {spec}: write PES=FACTOR or PES@SECONDS=FACTOR with PES a number, a range or `all` below \
                 {pes}, seconds from 0 to {} and a factor from {} to {}, as in 3=0.5, 0-3@1.5=2 or all=0.9",
                TIMES.end(),
                FACTORS.start(),
                FACTORS.end()
            )));
        };
        for changes in &mut changes[first..=last] {
            changes.push((from, speed));
        }
    }
    let sorted = |mut changes: Vec<(f64, f64)>| {
        // Of the same time, the last one said counts: the search goes from the end.
        changes.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Speeds(changes)
    };
    Ok(changes.into_iter().map(sorted).collect())
}

/// The first and the last PE, the time and the speed of one `--speed`.
fn speed(spec: &str, pes: usize) -> Option<(usize, usize, f64, f64)> {
    let (left, factor) = spec.split_once('=')?;
    let (who, from) = left.split_once('@').unwrap_or((left, "0"));
    let (first, last) = match who.split_once('-') {
        _ if who == "all" => (0, pes - 1),
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        None => (who.parse().ok()?, who.parse().ok()?),
    };
    let (from, factor): (f64, f64) = (from.parse().ok()?, factor.parse().ok()?);
    let sane = first <= last && last < pes && TIMES.contains(&from) && FACTORS.contains(&factor);
    sane.then_some((first, last, from, factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_by_pe_and_time() {
        let specs = ["all=0.5".to_string(), "1-2@3=2".into(), "2@1=0.25".into(), "2@3=4".into()];
        let speeds = speeds(&specs, 4).expect("speeds");
        assert_eq!(*speeds[0].0, [(0.0, 0.5)]);
        assert_eq!(*speeds[1].0, [(0.0, 0.5), (3.0, 2.0)]);
        assert_eq!(*speeds[2].0, [(0.0, 0.5), (1.0, 0.25), (3.0, 2.0), (3.0, 4.0)]);
    }

    #[test]
    fn a_speed_that_is_none_is_refused_with_its_form() {
        for spec in ["", "3", "4=1", "2-1=1", "1=0", "1=-1", "1=inf", "1@-1=1", "1@x=1", "-1=1", "0-9=1"] {
            let error = speeds(&[spec.to_string()], 4).expect_err(spec).to_string();
            assert!(error.contains("as in 3=0.5"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_with_the_remedy() {
        let machine = equipoise_strategies::topology::flat(4);
        let refused = |machine_flags: Machine, sentence: &str| {
            let error = machine_flags.resolve(&machine).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(sentence)), "{error:?}: {sentence}");
        };
        let ideal = || Machine { network: Some("ideal".into()), ..Machine::default() };
        refused(Machine { network: Some("ideel".into()), ..Machine::default() }, "did you mean `ideal`");
        refused(Machine { network: Some("ideal:latency=-1".into()), ..Machine::default() }, "at least 0");
        refused(Machine { overhead: f64::NAN, ..ideal() }, "--overhead");
        refused(
            Machine { strategy_seconds: Some(StrategySeconds::Charged(-1.0)), ..ideal() },
            "--strategy-seconds",
        );
        assert!("soon".parse::<StrategySeconds>().is_err_and(|error| error.contains("`measured`")));
        assert_eq!("1e-3".parse(), Ok(StrategySeconds::Charged(1e-3)));
        assert!(ideal().resolve(&machine).is_ok_and(|simulation| simulation.is_some()));
        assert!(Machine::default().resolve(&machine).is_ok_and(|simulation| simulation.is_none()));
    }
}
