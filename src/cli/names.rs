//! Names on the command line: parsed with the nearest known one suggested, and which parameters
//! each algorithm looks at.
//!
//! Called by [`super::args`] and [`super::row`].

use clap::ValueEnum;

/// The value called `text`, or a sentence that says which are known and which is nearest.
pub fn parse<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| unknown(text, &all::<T>()))
}

/// What `value` is called.
pub fn of<T: ValueEnum>(value: &T) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What every value of `T` is called.
pub fn all<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().map(of).collect()
}

/// "'tre' is not known; did you mean 'tree'? (one of flat, tree)"
pub fn unknown(text: &str, known: &[String]) -> String {
    let mut message = format!("'{text}' is not known");
    if let Some(near) = nearest(text, known) {
        message.push_str(&format!("; did you mean '{near}'?"));
    }
    if !known.is_empty() {
        message.push_str(&format!(" (one of {})", known.join(", ")));
    }
    message
}

/// The known name most like `text`, where one is like it at all.
pub fn nearest<'a>(text: &str, known: &'a [String]) -> Option<&'a str> {
    // Jaro-Winkler looks at every pair of characters: a novel on the command line is not a typo.
    if text.len() > 200 {
        return None;
    }
    let text = text.to_lowercase();
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(&text, name), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name.as_str())
}

/// Which parameters an algorithm looks at.
pub mod applies {
    use crate::experiment::Algorithm;

    /// `--placement`
    pub fn placement(algorithm: Algorithm) -> bool {
        algorithm == Algorithm::FlagPhase
    }

    /// `--fan-in` and `--tree-shape`
    pub fn tree(algorithm: Algorithm) -> bool {
        algorithm == Algorithm::Tree
    }

    /// `--mapping`: the order of the nodes' masters.
    pub fn mapping(algorithm: Algorithm) -> bool {
        !matches!(algorithm, Algorithm::FlagPhase | Algorithm::Pthread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Algorithm, Placement};

    #[test]
    fn every_name_parses_to_its_value() {
        for value in Algorithm::value_variants() {
            assert_eq!(parse::<Algorithm>(&of(value)), Ok(*value));
        }
        assert_eq!(of(&Algorithm::FlagPhase), "flag-phase");
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest() {
        let error = parse::<Placement>("engin").unwrap_err();
        assert_eq!(
            error,
            "'engin' is not known; did you mean 'engine'? (one of local, engine, remote, coherent)"
        );
        let error = parse::<Algorithm>("zzz").unwrap_err();
        assert!(!error.contains("did you mean"), "{error}");
    }
}
