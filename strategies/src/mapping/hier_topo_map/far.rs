//! How much longer messages take between the parts of a node (sockets) than inside one part.

use std::str::FromStr;
use std::sync::Arc;

use equipoise_model::database::{Database, Edge};

/// The weight of the messages between two processes of a node: the time that they save inside one part of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Far {
    /// In proportion to their bytes.
    Bytes,
    /// Additional nanoseconds of a message by its bytes, both as measured, with ascending bytes; at least one pair.
    Measured(Arc<[(u64, u64)]>),
}

impl Far {
    /// The weight of a number of messages with a total of `bytes` bytes.
    pub fn weight(&self, messages: u64, bytes: u64) -> u64 {
        match self {
            Far::Bytes => bytes,
            Far::Measured(points) => messages.saturating_mul(nanoseconds(points, bytes / messages.max(1))),
        }
    }

    /// The database with weights in place of bytes; none if they are equal.
    pub(super) fn weighed(&self, database: &Database) -> Option<Database> {
        if *self == Far::Bytes {
            return None;
        }
        let mut database = database.clone();
        for edge in &mut database.edges {
            *edge = Edge { bytes: self.weight(edge.messages, edge.bytes), ..*edge };
        }
        Some(database)
    }
}

/// Interpolated between the points, constant beyond them.
fn nanoseconds(points: &[(u64, u64)], bytes: u64) -> u64 {
    let after = points.partition_point(|point| point.0 <= bytes);
    let (Some(&(low, at_low)), Some(&(high, at_high))) =
        (after.checked_sub(1).and_then(|at| points.get(at)), points.get(after))
    else {
        return points[after.min(points.len() - 1)].1;
    };
    let (part, whole) = (u128::from(bytes - low), u128::from(high - low));
    ((u128::from(at_low) * (whole - part) + u128::from(at_high) * part) / whole) as u64
}

impl FromStr for Far {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected `bytes`, or BYTES/NS:BYTES/NS.. with ascending bytes, as in 0/180:2048/760";
        if text == "bytes" {
            return Ok(Far::Bytes);
        }
        let point = |text: &str| {
            let (bytes, nanoseconds) = text.split_once('/')?;
            Some((bytes.parse().ok()?, nanoseconds.parse().ok()?))
        };
        let points: Option<Vec<(u64, u64)>> = text.split(':').map(point).collect();
        let points = points.filter(|points| points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        points.map(|points| Far::Measured(points.into())).ok_or(EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_interpolated_between_the_measured_sizes() {
        let far: Far = "0/180:1000/600:2000/800".parse().expect("points");
        let check =
            |messages, bytes, weight| assert_eq!(far.weight(messages, bytes), weight, "{messages} {bytes}");
        check(1, 0, 180);
        check(1, 500, 390);
        check(1, 1500, 700);
        check(1, 1_000_000, 800);
        // Three messages of 500 bytes.
        check(3, 1500, 1170);
        check(0, 0, 0);
        assert_eq!("bytes".parse::<Far>().map(|far| far.weight(3, 1500)), Ok(1500));
        let beyond: Far = "100/7".parse().expect("a point");
        assert_eq!([0, 100, 1000].map(|bytes| beyond.weight(2, 2 * bytes)), [14; 3]);
        for wrong in ["", "time", "1/2:1/3", "5/2:1/3", "1", "1/-2", "a/1"] {
            assert!(wrong.parse::<Far>().is_err(), "{wrong}");
        }
    }
}
