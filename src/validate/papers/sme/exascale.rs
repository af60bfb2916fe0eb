//! Sec. VI-C: the authors' extrapolation repeated, and beside it, not judged, the same size
//! simulated.
//!
//! Called by [`super::of`].

use sme_sim::parts::fabric::NetworkKind;

use super::points::{Point, Variant, network};
use super::{Finding, Measurements};
use crate::fit::Surface;

/// Cores of the Jaguar, as the authors count them.
const JAGUAR_CORES: u32 = 220_000;

/// The machine that the study cited in Sec. VI-C expects.
pub(super) fn study() -> Result<Finding, String> {
    let found = by_eq2(262_144.0, 768.0, 282.0)?;
    // Minutes: too long for every validation.
    Ok(found.noting("simulated directly, 224,000 nodes of 741 cores: docs/exascale.md"))
}

/// The Jaguar with `cores` a node, in whole nodes.
pub(super) fn points(cores: u32) -> Vec<Point> {
    let nodes = (JAGUAR_CORES + cores / 2) / cores;
    let large = |variant, grid| Point::Large {
        variant,
        grid,
        nodes,
        cores,
    };
    let mut points = vec![large(Variant::Exascale, NetworkKind::Torus3d)];
    // The formula was fitted to nodes of 16 on a 2D mesh: there a logarithm of the nodes cannot
    // know how many hops these make.
    if cores == 16 {
        points.push(large(Variant::Prototype, NetworkKind::Mesh2d));
    }
    points
}

/// The Jaguar with `cores` a node, for which the authors printed `printed` microseconds.
pub(super) fn jaguar(measured: &Measurements, cores: u32, printed: f64) -> Result<Finding, String> {
    let mut simulated = Vec::new();
    for point in points(cores) {
        let latency = measured.microseconds(point)?;
        if let Point::Large {
            variant,
            grid,
            nodes,
            ..
        } = point
        {
            let machine = variant.machine().0.unwrap_or("this machine");
            let network = network(grid, nodes);
            simulated.push(format!("{latency:.1} us ({machine}, {network})"));
        }
    }
    let found = by_eq2(
        f64::from(JAGUAR_CORES) / f64::from(cores),
        f64::from(cores),
        printed,
    )?;
    Ok(found.noting(format!("simulated directly: {}", simulated.join("; "))))
}

/// Eq. 2 at one size. The authors printed whole microseconds, rounded or cut off.
fn by_eq2(nodes: f64, cores: f64, printed: f64) -> Result<Finding, String> {
    let calculated = Surface::PUBLISHED.at(nodes, cores);
    let repeated = calculated.round() == printed || calculated.floor() == printed;
    let what = format!(
        "Eq. 2: (0.0216*{cores} + 2.4928) * ln({nodes}) + (0.0561*{cores} + 0.377) = {calculated:.1} us"
    );
    Ok(Finding::default().provided(repeated, what))
}
