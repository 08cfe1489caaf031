//! Numbers with fewer digits.

/// `value` rounded to `digits` significant digits, because the digits of a report make most of its size.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    // Of tiny numbers the scale overflows; they are 0 on every picture.
    if scale.is_finite() { (value * scale).round() / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn numbers_keep_their_first_digits() {
        assert_eq!(rounded(123_456.0, 4), 123_500.0);
        assert_eq!(rounded(-0.001_234_56, 4), -0.001_235);
        assert_eq!((rounded(0.0, 4), rounded(f64::NAN, 4), rounded(1e-320, 4)), (0.0, 0.0, 0.0));
    }
}
