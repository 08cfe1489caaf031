//! The flags that describe the simulated machine, and their validation.

use super::{ConfigError, flag};
use clap::ValueEnum;
use equipoise_model::costs::LinkLimits;
use equipoise_model::topology::Topology;
use equipoise_network::models::{self, Network};
use equipoise_network::trace::Speeds;
use parking_lot::Mutex;
use std::str::FromStr;
use std::sync::Arc;

// Through `concat!`, because clap shows `///` as the description of every program that flattens `Config`.
#[doc = concat!("The machine that `--transport simulated` simulates. With a network the run takes place in virtual time, on
the links of `--topology`. Without a network, messages arrive in an order sampled with the seed, and there is no
time.

Every PE executes one delivery at a time. A delivery takes the time it charges
([`Cx::charge`](crate::Cx::charge)), a message sent after a charge leaves after the charged time, and the network
determines the latency of a message. Broadcasts, reductions and load-balancing steps go along a tree of
PEs. Where work is measured, load is the measured time multiplied by the PE's speed at the load-balancing step.")]
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Simulated machine")]
pub struct Machine {
    /// Simulate this network in virtual time, on the links of --topology; `help` lists all kinds (requires --transport
    /// simulated)
    #[arg(long, value_name = "SPEC")]
    pub network: Option<String>,

    /// Virtual time of work that is not charged: none, or the time measured on this computer
    #[arg(long, value_enum, default_value_t, requires = "network")]
    pub uncharged: Uncharged,

    /// Speed factor of PEs, as in `3=0.5` or `0-63=2`; may be repeated [default: 1 for every PE]
    ///
    /// `all@1.5=0.25` gives all PEs the factor 0.25 from the virtual time 1.5 s on.
    #[arg(long, value_name = "PES[@SECONDS]=FACTOR", requires = "network")]
    pub speed: Vec<String>,

    /// Time a PE needs to take a message from its queue, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Machine::default().delivery, requires = "network",
          allow_negative_numbers = true, hide_short_help = true)]
    pub delivery: f64,

    /// Time a PE needs to send a message to another PE, and to receive one, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.0,
        requires = "network",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub overhead: f64,

    /// Virtual time of a strategy at a load-balancing step: seconds; `measured`, its time on this computer; or
    /// `cost-model`, its time in the file of --cost-model [default: 0, or `measured` with --uncharged measured]
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "network",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub strategy_seconds: Option<StrategySeconds>,

    /// Let PEs fail at virtual times, as in `3@1.5,2@4`; at the first failure the run ends with exit code 1, and --restart
    /// continues it from its last checkpoint
    #[arg(long, value_name = "PE@SECONDS", value_delimiter = ',', requires = "network")]
    pub fail: Vec<PeFailure>,

    /// Rate at which each PE writes and reads its part of a checkpoint, in bytes per second
    #[arg(long, value_name = "BYTES_PER_SECOND", default_value_t = Machine::default().checkpoint_bandwidth,
          requires = "network", allow_negative_numbers = true, hide_short_help = true)]
    pub checkpoint_bandwidth: f64,
}

/// A PE that fails, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeFailure {
    /// The PE.
    pub pe: u32,
    /// The virtual time, in seconds.
    pub seconds: f64,
}

impl std::fmt::Display for PeFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.pe, self.seconds)
    }
}

impl FromStr for PeFailure {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.strip_suffix('s').unwrap_or(text).split_once('@');
        let failure = parts.and_then(|(pe, seconds)| {
            Some(PeFailure { pe: pe.parse().ok()?, seconds: seconds.parse().ok()? })
        });
        let is_time = |failure: &PeFailure| failure.seconds.is_finite() && failure.seconds >= 0.0;
        failure.filter(is_time).ok_or("write PE@SECONDS, as in 3@1.5 for PE 3 at 1.5 s of virtual time")
    }
}

/// The virtual time of work that is not charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Uncharged {
    /// No time: the same seed gives the same run.
    #[default]
    Free,
    /// The time measured on this computer, divided by the speed of the PE.
    Measured,
}

/// The virtual time of a strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StrategySeconds {
    /// The time measured on this computer, even where no other work is measured.
    Measured,
    /// A fixed time, in seconds.
    Charged(f64),
    /// The time that the cost model has of the strategy, else none. A strategy that tries others takes the times of those that it
    /// tried.
    CostModel,
}

impl FromStr for StrategySeconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "measured" => Ok(StrategySeconds::Measured),
            "cost-model" => Ok(StrategySeconds::CostModel),
            _ => {
                let seconds = text.parse().map(StrategySeconds::Charged);
                seconds.map_err(|_| "write seconds, as in 1e-3, `measured` or `cost-model`")
            }
        }
    }
}

impl Default for Machine {
    /// No simulated machine.
    fn default() -> Self {
        Machine {
            network: None,
            uncharged: Uncharged::Free,
            speed: Vec::new(),
            // About the time on this computer. Above 0, so that time passes while an element sends only to itself.
            delivery: 1e-8,
            overhead: 0.0,
            strategy_seconds: None,
            fail: Vec::new(),
            // About a solid-state disk for each PE.
            checkpoint_bandwidth: 1e9,
        }
    }
}

/// The simulated machine of a run.
pub(crate) struct Simulation {
    /// The spec of the network.
    pub(crate) spec: String,
    /// The idle network; none once the run has taken it.
    pub(crate) network: Mutex<Option<Box<dyn Network>>>,
    /// What limits the bytes on the links of the network.
    pub(crate) limits: Option<LinkLimits>,
    pub(crate) uncharged: Uncharged,
    /// Speeds by PE; empty if every PE always has speed 1.
    pub(crate) speeds: Vec<Speeds>,
    pub(crate) delivery: f64,
    pub(crate) overhead: f64,
    pub(crate) strategy_seconds: StrategySeconds,
    /// In order of time.
    pub(crate) failures: Vec<PeFailure>,
    /// In bytes per second and PE.
    pub(crate) checkpoint_bandwidth: f64,
}

impl Machine {
    /// Validates the flags for `topology`; none if no machine is to be simulated.
    pub(crate) fn resolve(&self, topology: &Arc<dyn Topology>) -> Result<Option<Simulation>, ConfigError> {
        let Some(spec) = &self.network else {
            // On the command line clap reports this.
            let Machine { speed, strategy_seconds, fail, .. } = self;
            if !speed.is_empty() || strategy_seconds.is_some() || !fail.is_empty() {
                return Err(flag(
                    "--speed, --strategy-seconds and --fail need a simulated machine; add --network SPEC"
                        .into(),
                ));
            }
            return Ok(None);
        };
        let in_network = |error: &dyn std::fmt::Display| flag(format!("--network {spec}: {error}"));
        let model = models::parse(spec).map_err(|error| in_network(&error))?;
        // A network that does not fit the topology is reported before any PE is built.
        let network = model.on(topology).map_err(|error| in_network(&error))?;
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
                    format!("{name} {seconds}: give seconds from 0 to {}, as in 1e-6", TIMES.end());
                return Err(flag(sentence));
            }
        }
        if !BANDWIDTHS.contains(&self.checkpoint_bandwidth) {
            let (rate, least, most) = (self.checkpoint_bandwidth, BANDWIDTHS.start(), BANDWIDTHS.end());
            let sentence = format!(
                "--checkpoint-bandwidth {rate}: give bytes per second from {least} to {most:e}, as in 1e9"
            );
            return Err(flag(sentence));
        }
        let mut failures = self.fail.clone();
        failures.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        if let Some(fail) = failures.iter().find(|fail| fail.pe as usize >= topology.pes()) {
            let (pe, last) = (fail.pe, topology.pes() - 1);
            return Err(flag(format!("--fail: there is no PE {pe}; PEs are 0 to {last}")));
        }
        Ok(Some(Simulation {
            spec: spec.clone(),
            network: Mutex::new(Some(network)),
            limits: model.limits(),
            uncharged: self.uncharged,
            speeds: speeds(&self.speed, topology.pes())?,
            delivery: self.delivery,
            overhead: self.overhead,
            strategy_seconds: strategy,
            failures,
            checkpoint_bandwidth: self.checkpoint_bandwidth,
        }))
    }
}

impl Simulation {
    /// The speeds of a PE over time.
    pub(crate) fn speeds_of(&self, pe: u32) -> Speeds {
        self.speeds.get(pe as usize).cloned().unwrap_or_default()
    }

    /// The virtual time of a strategy that took `measured` seconds on this computer, and `modelled` seconds by the cost model. A time
    /// for the whole strategy is 0 if it `was_charged` before.
    pub(crate) fn strategy(&self, measured: f64, modelled: f64, was_charged: bool) -> f64 {
        match self.strategy_seconds {
            StrategySeconds::Measured => measured,
            _ if was_charged => 0.0,
            StrategySeconds::Charged(seconds) => seconds,
            StrategySeconds::CostModel => modelled,
        }
    }
}

/// Valid times, in seconds, and speed factors of the flags. Within these ranges, sums of times keep enough precision
/// to distinguish successive events.
const TIMES: std::ops::RangeInclusive<f64> = 0.0..=1e6;
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Valid rates of `--checkpoint-bandwidth`.
const BANDWIDTHS: std::ops::RangeInclusive<f64> = 1.0..=1e18;

/// The speeds that `--speed` describes, by PE.
fn speeds(specs: &[String], pes: usize) -> Result<Vec<Speeds>, ConfigError> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = vec![Vec::new(); pes];
    for spec in specs {
        let Some((first, last, from, speed)) = speed(spec, pes) else {
            return Err(flag(format!(
                "--speed {spec}: write PES=FACTOR or PES@SECONDS=FACTOR; PES is a number below {pes}, a range or \
                 `all`, SECONDS is from 0 to {}, FACTOR is from {} to {}, as in 3=0.5, 0-3@1.5=2 or all=0.9",
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
        // The sort is stable and lookup searches from the end, so the last flag for a time wins.
        changes.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Speeds(changes)
    };
    Ok(changes.into_iter().map(sorted).collect())
}

/// The first and the last PE, the time and the speed of one `--speed`.
fn speed(spec: &str, pes: usize) -> Option<(usize, usize, f64, f64)> {
    let (left, factor) = spec.split_once('=')?;
    let (range, from) = left.split_once('@').unwrap_or((left, "0"));
    let from = from.strip_suffix('s').unwrap_or(from);
    let (first, last) = match range.split_once('-') {
        _ if range == "all" => (0, pes - 1),
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        None => (range.parse().ok()?, range.parse().ok()?),
    };
    let (from, factor): (f64, f64) = (from.parse().ok()?, factor.parse().ok()?);
    let valid = first <= last && last < pes && TIMES.contains(&from) && FACTORS.contains(&factor);
    valid.then_some((first, last, from, factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_by_pe_and_time() {
        let specs = ["all=0.5".to_string(), "1-2@3=2".into(), "2@1s=0.25".into(), "2@3=4".into()];
        let speeds = speeds(&specs, 4).expect("speeds");
        assert_eq!(*speeds[0].0, [(0.0, 0.5)]);
        assert_eq!(*speeds[1].0, [(0.0, 0.5), (3.0, 2.0)]);
        assert_eq!(*speeds[2].0, [(0.0, 0.5), (1.0, 0.25), (3.0, 2.0), (3.0, 4.0)]);
    }

    #[test]
    fn refuses_malformed_speeds_and_shows_the_format() {
        for spec in ["", "3", "4=1", "2-1=1", "1=0", "1=-1", "1=inf", "1@-1=1", "1@x=1", "-1=1", "0-9=1"] {
            let error = speeds(&[spec.to_string()], 4).expect_err(spec).to_string();
            assert!(error.contains("as in 3=0.5"), "{error}");
        }
    }

    #[test]
    fn refuses_machines_that_cannot_be_simulated() {
        let machine = equipoise_model::topology::flat(4);
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
        assert_eq!("cost-model".parse(), Ok(StrategySeconds::CostModel));
        assert!(ideal().resolve(&machine).is_ok_and(|simulation| simulation.is_some()));
        assert!(Machine::default().resolve(&machine).is_ok_and(|simulation| simulation.is_none()));
    }
}
