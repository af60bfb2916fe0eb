//! The published latencies of single operations, by the machine file that is compared with them.
//!
//! Called by [`super::super::figures_of`] for the column `validated` of `sme latency`.

use crate::latency::budget::Operation;

/// A machine file, an operation, the links it crosses, and the id of the figure that
/// [`super::estimator`] compares with it.
pub const LATENCIES: [(&str, Operation, u32, &str); 3] = [
    (
        "sme-prototype",
        Operation::RemoteLoad,
        0,
        "sme.load_latency.local_engine",
    ),
    (
        "sme-prototype",
        Operation::RemoteLoad,
        1,
        "sme.load_latency.remote",
    ),
    (
        "sme-asic",
        Operation::RemoteLoad,
        1,
        "sme.fig4.asic_remote_load",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::papers::sme::estimator;
    use crate::validate::papers::sme::points::{Point, Variant};

    #[test]
    fn each_figure_is_of_a_load_on_that_machine() {
        for (machine, operation, hops, id) in LATENCIES {
            assert_eq!(operation, Operation::RemoteLoad, "{id}");
            let variant = match machine {
                "sme-prototype" => Variant::Prototype,
                _ => Variant::Asic,
            };
            let load = Point::Load {
                variant,
                loopback: hops == 0,
            };
            let estimator = estimator(id).expect("it has an estimator");
            assert!((estimator.points)().contains(&load), "{id}");
        }
    }
}
