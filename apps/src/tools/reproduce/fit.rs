//! Lines through measured points.

/// The exponent with which numbers grow: the slope of the logarithms of the second of each pair in those of the first, by
/// least squares.
pub(super) fn exponent(points: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let logs: Vec<(f64, f64)> = points.into_iter().map(|it| (it.0.ln(), it.1.ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let covariance: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    covariance / logs.iter().map(|log| (log.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_slopes_of_logarithms() {
        let points = |of: fn(f64) -> f64| [4.0, 10.0, 50.0].map(|n| (n, of(n)));
        assert!((exponent(points(|n| 3.0 * n.powf(1.5))) - 1.5).abs() < 1e-9);
        assert!(exponent(points(|_| 7.0)).abs() < 1e-9);
    }
}
