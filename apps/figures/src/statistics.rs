//! Statistics of measured numbers: means, correlations, exponents of growth.

/// The growth exponent of y in x: the slope of log y over log x, by least squares.
pub(crate) fn exponent(points: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let logs: Vec<(f64, f64)> = points.into_iter().map(|it| (it.0.ln(), it.1.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let covariance: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    covariance / logs.iter().map(|log| (log.0 - x).powi(2)).sum::<f64>()
}

/// The mean.
pub(crate) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The correlation of two costs (K. Pearson, 1895); NaN if one of them is constant up to rounding.
pub(crate) fn pearson(pairs: &[(f64, f64)]) -> f64 {
    let is_same = |of: fn(&(f64, f64)) -> f64| {
        let (least, most) =
            (pairs.iter().map(of).fold(f64::INFINITY, f64::min), pairs.iter().map(of).fold(0.0, f64::max));
        most - least <= SAME * most
    };
    if is_same(|pair| pair.0) || is_same(|pair| pair.1) {
        return f64::NAN;
    }
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

/// The fraction of the pairs of mappings with different times that a cost orders wrongly. A pair with equal costs counts
/// half.
pub(crate) fn misordered(pairs: &[(f64, f64)]) -> f64 {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (at, a) in pairs.iter().enumerate() {
        for b in &pairs[..at] {
            let (cost, time) = (a.0 - b.0, a.1 - b.1);
            if time.abs() <= SAME * a.1 {
                continue;
            }
            all += 1.0;
            wrong += match cost.abs() <= SAME * a.0.abs() {
                true => 0.5,
                false => f64::from(u8::from((cost > 0.0) != (time > 0.0))),
            };
        }
    }
    wrong / all
}

/// The largest relative difference between numbers that are equal up to rounding.
pub(crate) const SAME: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_slopes_of_logarithms() {
        let points = |of: fn(f64) -> f64| [4.0, 10.0, 50.0].map(|n| (n, of(n)));
        assert!((exponent(points(|n| 3.0 * n.powf(1.5))) - 1.5).abs() < 1e-9);
        assert!(exponent(points(|_| 7.0)).abs() < 1e-9);
    }

    #[test]
    fn correlations_and_misordered_pairs_are_counted() {
        let line: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x), 30.0 - 2.0 * f64::from(x))).collect();
        assert!((pearson(&line) + 1.0).abs() < 1e-12);
        assert_eq!(misordered(&line), 1.0);
        let pairs = [(1.0, 1.0), (2.0, 2.0), (2.0, 4.0), (3.0, 3.0)];
        // Of six pairs one is wrong and one is undecided.
        assert_eq!(misordered(&pairs), 0.25);
        assert!((pearson(&pairs) - 0.6324555).abs() < 1e-6, "{}", pearson(&pairs));
        // Times that differ only by rounding have no correlation.
        assert!(pearson(&[(1.0, 5.0), (2.0, 5.0 + 1e-12), (3.0, 5.0 + 2e-12)]).is_nan());
        assert!(pearson(&[(2.0, 5.0), (2.0, 6.0)]).is_nan());
    }
}
