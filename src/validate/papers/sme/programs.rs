//! Sec. VII, Fig. 12 and 13: the FFT on the cluster. The paper gives no numbers and no number of
//! points, so what is read off are shapes, and the points are chosen: as few as still give each of
//! 256 threads a row of the matrix of its own.

use super::points::Point;
use super::{Finding, Measurements, Points};
use crate::program::Mapped;

/// Binary logarithm of the points for the speed-up over nodes: 256 rows.
const SPREAD: u32 = 16;
/// And for the speed-up within a node, which needs fewer: 64 rows.
const WITHIN: u32 = 12;

fn fft(mapped: Mapped, log2n: u32, nodes: u32, cores: u32) -> Point {
    Point::Fft {
        mapped,
        log2n,
        nodes,
        cores,
    }
}

fn within(cores: u32) -> Point {
    fft(Mapped::Uncached, WITHIN, 1, cores)
}

fn over(nodes: u32) -> Point {
    fft(Mapped::Uncached, SPREAD, nodes, 4)
}

fn cached() -> Point {
    fft(Mapped::Cached, SPREAD, 1, 4)
}

pub(super) const KNEE: Points = || vec![within(2), within(4), within(8)];
pub(super) const SCALING: Points = || vec![over(1), over(16), over(32), over(64), cached()];

/// More than four threads share a slot for loads.
pub(super) fn knee(measured: &Measurements) -> Result<Finding, String> {
    let time = |cores| measured.microseconds(within(cores));
    let (to_four, to_eight) = (time(2)? / time(4)?, time(4)? / time(8)?);
    let four = to_four > 1.5;
    let no_more = to_eight < 1.1;
    let knee = match (four, no_more) {
        (true, true) => 4.0,
        (true, false) => 8.0,
        _ => 2.0,
    };
    Ok(Finding::of(knee)
        .provided(
            four,
            format!("from 2 to 4 threads by more than 1.5: {to_four:.2}"),
        )
        .provided(
            no_more,
            format!("from 4 to 8 by less than 1.1: {to_eight:.2}"),
        )
        .noting(format!("2^{WITHIN} points, one node, data on all 64")))
}

/// Speed-up over nodes, as long as the network carries it.
pub(super) fn scaling(measured: &Measurements) -> Result<Finding, String> {
    let time = |nodes| measured.microseconds(over(nodes));
    let alone = time(1)?;
    let efficiency = |nodes| Ok::<f64, String>(alone / time(nodes)? / f64::from(nodes));
    let (at_16, at_32, at_64) = (efficiency(16)?, efficiency(32)?, efficiency(64)?);
    let gain = alone / measured.microseconds(cached())?;
    let near = at_16 > 0.85 && at_32 > 0.85;
    let behind = at_64 < at_32;
    let falls_at = match (near, behind) {
        (true, true) => 64.0,
        (false, _) => 32.0,
        (true, false) => 128.0,
    };
    Ok(Finding::of(falls_at)
        .provided(
            near,
            format!("efficiency above 0.85: {at_16:.3} at 16 nodes, {at_32:.3} at 32"),
        )
        .provided(behind, format!("less at 64: {at_64:.3}"))
        .provided(
            gain > 2.0,
            format!("cached faster by far: {gain:.1} times, on one node"),
        )
        .noting(format!(
            "2^{SPREAD} points, 4 threads per node, data on all 64"
        )))
}
