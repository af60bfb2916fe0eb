//! Words in error messages: user's text quoted on one line, and the known word it resembles.

use std::cmp::Reverse;

/// `text` in double quotes, on one line, cut after 40 characters.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for (count, character) in text.chars().enumerate() {
        if count == 40 {
            quoted.push('…');
            break;
        }
        match character {
            '"' => quoted.push('"'),
            plain if !plain.is_control() => quoted.push(plain),
            control => quoted.extend(control.escape_default()),
        }
    }
    quoted.push('"');
    quoted
}

/// The one of `known` that `word` is most probably a misspelling of: at most every third
/// character differs, upper and lower case aside.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A word of any length is the user's; the distance is quadratic in it.
    if word.len() > 100 {
        return None;
    }
    let word = word.to_lowercase();
    let length = word.chars().count();
    known
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|&(distance, _)| distance <= (length / 3).max(1) && distance < length)
        .min_by_key(|&(distance, candidate)| {
            // Of several as near, one that begins alike, then the longest: GB is GiB, not B.
            let begins_alike = candidate.to_lowercase().chars().next() == word.chars().next();
            (distance, !begins_alike, Reverse(candidate.len()))
        })
        .map(|(_, candidate)| candidate)
}

/// `a, b or c`.
pub(super) fn listed(words: &[&str], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} {conjunction} {last}", most.join(", ")),
    }
}

/// `; did you mean "x"?` or, where nothing resembles `word`, nothing.
pub(super) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| {
        format!("; did you mean {}?", quoted(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_recognized_and_a_strange_one_is_not() {
        let known = || ["clock", "cycles", "credits"].into_iter();
        assert_eq!(nearest("clok", known()), Some("clock"));
        assert_eq!(nearest("CLOCK", known()), Some("clock"));
        assert_eq!(nearest("cyclse", known()), Some("cycles"));
        assert_eq!(nearest("frequency", known()), None);
        assert_eq!(nearest("x", ["s"].into_iter()), None);
        assert_eq!(nearest("", known()), None);
    }

    #[test]
    fn quotes_stay_on_one_line() {
        assert_eq!(quoted("a\nb\u{7}"), "\"a\\nb\\u{7}\"");
        assert_eq!(quoted(&"x".repeat(41)), format!("\"{}…\"", "x".repeat(40)));
    }
}
