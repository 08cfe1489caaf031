//! Values of PEs over steps or time, in at most 512 rows and 512 columns.

use serde::Serialize;

use crate::digits::rounded;

/// The largest number of rows, and of columns.
pub const MAX_BINS: usize = 512;

/// Values of PEs, by column. Row `r` has PEs `r * pes_per_row` and following. A cell is the largest value of its PEs and steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// PEs per row.
    pub pes_per_row: usize,
    /// Rows.
    pub rows: usize,
    /// By column: the number of its first step, or the time where it begins.
    pub columns: Vec<f64>,
    /// By column: its largest value, in the unit of the values.
    pub scales: Vec<f64>,
    /// The largest of `scales`.
    pub largest: f64,
    /// Values, column by column, in thousandths of the largest value of the column.
    pub cells: Vec<u16>,
    /// By column: max/avg of its step, of several steps the largest; empty if values are no loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub max_over_avg: Vec<f64>,
    /// What [`Heat::finished`] turns into `cells`.
    #[serde(skip)]
    values: Vec<f32>,
    /// Steps per column.
    #[serde(rename = "steps_per_column")]
    stride: usize,
    /// The number of steps.
    steps: usize,
}

impl Heat {
    /// Adds the values of all PEs at a step, and their max/avg if they are loads. If there are too many columns, each two become one.
    pub fn push(&mut self, step: f64, values: &[f64], max_over_avg: Option<f64>) {
        if self.stride == 0 {
            self.stride = 1;
            self.pes_per_row = values.len().div_ceil(MAX_BINS).max(1);
            self.rows = values.len().div_ceil(self.pes_per_row);
        }
        if self.steps.is_multiple_of(self.stride) {
            if self.columns.len() == MAX_BINS {
                self.halve();
            }
            self.columns.push(step);
            self.values.resize(self.columns.len() * self.rows, 0.0);
            self.max_over_avg.extend(max_over_avg.map(|_| 1.0));
        }
        if let Some((all, of_step)) = self.max_over_avg.last_mut().zip(max_over_avg) {
            *all = all.max(of_step);
        }
        let first = (self.columns.len() - 1) * self.rows;
        for (pe, &value) in values.iter().enumerate() {
            let cell = self.values.get_mut(first + pe / self.pes_per_row);
            cell.into_iter().for_each(|cell| *cell = cell.max(value as f32));
        }
        self.steps += 1;
    }

    /// The number of steps so far.
    pub fn steps(&self) -> usize {
        self.steps
    }

    fn halve(&mut self) {
        let rows = self.rows;
        let half = self.columns.len() / 2;
        for column in 0..half {
            for row in 0..rows {
                let [a, b] = [2 * column, 2 * column + 1].map(|from| self.values[from * rows + row]);
                self.values[column * rows + row] = a.max(b);
            }
        }
        self.columns = self.columns.iter().copied().step_by(2).collect();
        self.max_over_avg =
            self.max_over_avg.chunks(2).map(|two| two.iter().copied().fold(1.0, f64::max)).collect();
        self.values.truncate(half * rows);
        self.stride *= 2;
    }

    /// With the cells that are written.
    pub fn finished(mut self) -> Heat {
        for column in self.values.chunks(self.rows.max(1)) {
            let scale = column.iter().fold(0.0f32, |all, &value| all.max(value));
            let thousandths =
                |&value: &f32| if scale > 0.0 { (1000.0 * value / scale).round() as u16 } else { 0 };
            self.cells.extend(column.iter().map(thousandths));
            self.scales.push(rounded(scale.into(), 4));
        }
        self.largest = self.scales.iter().copied().fold(0.0, f64::max);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_and_pes_share_cells_and_keep_the_largest_value() {
        let mut heat = Heat::default();
        for step in 0..1500 {
            let mut loads = vec![1.0; 1000];
            loads[999] = if step == 1234 { 4.0 } else { 2.0 };
            heat.push(f64::from(step), &loads, Some(loads[999]));
        }
        let heat = heat.finished();
        assert_eq!((heat.pes_per_row, heat.rows, heat.columns.len()), (2, 500, 375));
        assert_eq!((heat.columns[1], heat.largest), (4.0, 4.0));
        assert_eq!((heat.steps, heat.scales[1234 / 4], heat.scales[0]), (1500, 4.0, 2.0));
        let cells = |column: usize| &heat.cells[column * 500..][..500];
        assert_eq!((cells(0)[0], cells(0)[499]), (500, 1000), "thousandths of the largest load of the step");
        assert_eq!((cells(1234 / 4)[0], cells(1234 / 4)[499]), (250, 1000));
        assert_eq!([0, 1234 / 4].map(|column| heat.max_over_avg[column]), [2.0, 4.0]);
        assert_eq!(heat.max_over_avg.len(), 375);
    }
}
