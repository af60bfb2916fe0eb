//! Names on the command line: parsed with the nearest known one suggested.
//!
//! Called by [`super::read`], [`super::args`] and others. What has a name says itself what
//! the names are, by [`sme_barrier::names!`].

use std::str::FromStr;

use sme_barrier::UnknownName;

/// The value called `text`, or a sentence that says which are known and which is nearest.
pub fn parse<T: FromStr<Err = UnknownName>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|UnknownName { name, known, .. }| unknown(&name, known))
}

/// "'tre' is not known; did you mean 'tree'? (one of flat, tree)"
pub fn unknown(text: &str, known: &[&str]) -> String {
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
fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    // Jaro-Winkler looks at every pair of characters: a novel on the command line is not a typo.
    if text.len() > 200 {
        return None;
    }
    let text = text.to_lowercase();
    known
        .iter()
        .map(|&name| (strsim::jaro_winkler(&text, name), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Algorithm, Pin, VariablePlacement};

    #[test]
    fn every_name_parses_to_its_value() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(parse(algorithm.name()), Ok(algorithm));
        }
        for &placement in VariablePlacement::ALL {
            assert_eq!(parse(placement.name()), Ok(placement));
        }
        for &pin in Pin::ALL {
            assert_eq!(parse(pin.name()), Ok(pin));
        }
        assert_eq!(Algorithm::FlagPhase.name(), "flag-phase");
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest() {
        let error = parse::<VariablePlacement>("engin").unwrap_err();
        assert_eq!(
            error,
            "'engin' is not known; did you mean 'engine'? (one of local, engine, remote, coherent, buffer, memory)"
        );
        let error = parse::<Algorithm>("zzz").unwrap_err();
        assert!(!error.contains("did you mean"), "{error}");
    }
}
