//! The parameters that an algorithm looks at.

use super::{Algorithm, VariablePlacement};

/// `--placement`
pub fn placement(algorithm: Algorithm, placement: VariablePlacement) -> bool {
    algorithm == Algorithm::FlagPhase || placement.is_on_chip()
}

/// `--fan-in` and `--tree-shape`
pub fn tree(algorithm: Algorithm) -> bool {
    algorithm == Algorithm::Tree
}

/// `--mapping`: the order of the nodes' masters.
pub fn mapping(algorithm: Algorithm) -> bool {
    !matches!(
        algorithm,
        Algorithm::FlagPhase | Algorithm::Pthread | Algorithm::Counter
    )
}
