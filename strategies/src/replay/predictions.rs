//! The output of `replay --predict`: how well predictors of loads would have done on recorded steps.

use std::fmt;

use equipoise_model::table::{aligned, count, pairs};
use equipoise_model::{Database, Topology};
use serde::Serialize;

use super::ReplayError;
use crate::descriptor::Choice;
use crate::predict::{Judged, Predictor, best, judge};

/// Predictors on the steps of a database.
#[derive(Clone, Debug, Serialize)]
pub struct Predictions {
    /// The recorded program; empty if unknown.
    pub program: String,
    /// The spec of the machine.
    pub topology: String,
    /// The strategy that placed the objects by predicted loads.
    pub strategy: String,
    /// The number of steps.
    pub steps: usize,
    /// First what known loads would give, then every predictor.
    pub predictors: Vec<Judged>,
    /// The best predictor.
    pub best: Option<Predictor>,
    /// What the reader of the database ignored; not part of the output.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl Predictions {
    /// Judges the predictors of loads by the steps of a program on a machine: the strategy places the objects.
    ///
    /// # Errors
    /// With fewer than two steps, if a step is inconsistent or has other PEs than the machine, or if the strategy gives no answer.
    pub fn of(
        program: String,
        steps: &[Database],
        machine: &dyn Topology,
        choice: &Choice,
        seed: u64,
    ) -> Result<Predictions, ReplayError> {
        let [first, _, ..] = steps else { return Err(ReplayError::NoLaterStep) };
        for database in steps {
            let refused = |inconsistent| ReplayError::Inconsistent { step: database.step, inconsistent };
            database.check().map_err(refused)?;
            let (recorded, pes) = (database.pes.len(), machine.pes());
            if recorded != pes {
                return Err(ReplayError::Pes { recorded, topology: machine.spec(), pes });
            }
        }
        let failed = |error| ReplayError::Strategy { name: choice.spec.clone(), step: first.step, error };
        let rows = judge(steps, machine, choice, seed).map_err(failed)?;
        Ok(Predictions {
            program,
            topology: machine.spec(),
            strategy: choice.spec.clone(),
            steps: steps.len(),
            best: best(&rows),
            predictors: rows,
            warnings: Vec::new(),
        })
    }
}

impl fmt::Display for Predictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [("program", &self.program), ("topology", &self.topology)];
        let known: Vec<_> = known.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        f.write_str(&pairs(&known))?;
        let placed = count(self.steps as u64 - 1, "time");
        writeln!(
            f,
            "\n{} places the objects {placed} by predicted loads; the loads of the step after show the result.\n",
            self.strategy
        )?;
        let head = ["loads", "error of loads", "max/avg after"].map(String::from).into();
        let row = |row: &Judged| -> Vec<String> {
            let predictor = row.predictor.map_or("(known)".into(), |predictor| predictor.to_string());
            let error = format!("{:.2} %", 100.0 * row.load_error);
            vec![predictor, error, format!("{:.3}", row.max_over_avg)]
        };
        let rows: Vec<_> = [head].into_iter().chain(self.predictors.iter().map(row)).collect();
        f.write_str(&aligned(&rows))?;
        let of = |predictor| self.predictors.iter().find(|row| row.predictor == predictor);
        if let (Some(best), Some(last)) = (of(self.best), of(Some(Predictor::Last))) {
            let (name, after) = (self.best.unwrap_or_default(), best.max_over_avg);
            if name == Predictor::Last {
                return writeln!(f, "\nBest: --lb-predict {name}, the default, with max/avg {after:.3}.");
            }
            writeln!(
                f,
                "\nBest: --lb-predict {name}, with max/avg {after:.3}; last gives {:.3}.",
                last.max_over_avg
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_best_predictor() {
        let row = |predictor, load_error, max_over_avg| Judged { predictor, load_error, max_over_avg };
        let predictions = Predictions {
            program: "heat".into(),
            topology: "torus:2".into(),
            strategy: "GreedyLB".into(),
            steps: 3,
            predictors: vec![
                row(None, 0.0, 1.0),
                row(Some(Predictor::Last), 0.2, 1.5),
                row(Some(Predictor::Trend(3)), 0.125, 1.25),
            ],
            best: Some(Predictor::Trend(3)),
            warnings: Vec::new(),
        };
        let expected = "\
program   heat
topology  torus:2

GreedyLB places the objects 2 times by predicted loads; the loads of the step after show the result.

loads    error of loads  max/avg after
(known)          0.00 %          1.000
last            20.00 %          1.500
trend=3         12.50 %          1.250

Best: --lb-predict trend=3, with max/avg 1.250; last gives 1.500.
";
        assert_eq!(predictions.to_string(), expected);
    }
}
