//! DEVIATIONS.md: which misses are explained.
//!
//! Called by [`super::Validation`]. An entry is a heading of the second level that names one or
//! several figures, followed by its explanation:
//!
//! ```text
//! ## sme.fig8.tree.8x8, sme.fig8.tree.64x16
//!
//! The mechanism, and the run in which it is switched off and the figure comes right. Where it does
//! not:
//!
//! *Explained*: the part of the miss that is understood.
//!
//! *Open*: the part that is not.
//! ```

use std::collections::BTreeMap;

/// The file as it is built in.
const BUILT_IN: &str = include_str!("../../DEVIATIONS.md");

/// The figures whose miss has an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deviations {
    explained: BTreeMap<String, Explanation>,
}

/// The share of a miss that an entry explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// All of it: the run of the entry brings the figure right.
    Whole,
    /// Part of it: a paragraph of the entry, which begins with `*Open*`, says which part is left.
    Part,
}

/// The beginning of a paragraph about what an entry leaves unexplained.
const OPEN: &str = "*Open*";

impl Deviations {
    /// The built-in file's entries.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN)
    }

    /// The entries of a text. A heading with nothing below it explains nothing.
    pub fn parse(text: &str) -> Self {
        let mut explained = BTreeMap::new();
        let mut heading: &str = "";
        let mut fenced = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if fenced {
                continue;
            } else if line.starts_with('#') {
                heading = line.strip_prefix("## ").unwrap_or("");
            } else if !line.trim().is_empty() {
                for id in ids(heading) {
                    let known = explained.entry(id).or_insert(Explanation::Whole);
                    if line.starts_with(OPEN) {
                        *known = Explanation::Part;
                    }
                }
            }
        }
        Self { explained }
    }

    /// The share that the entry of figure `id` explains; none where it has no entry.
    pub fn explain(&self, id: &str) -> Option<Explanation> {
        self.explained.get(id).copied()
    }

    /// The explained figures, in alphabetical order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.explained.keys().map(String::as_str)
    }
}

/// The figures that a heading names; none where it is about something else.
fn ids(heading: &str) -> impl Iterator<Item = String> {
    let names: Vec<&str> = heading
        .split(',')
        .map(|name| name.trim().trim_matches('`'))
        .collect();
    let is_id = |name: &&str| name.contains('.') && !name.contains(char::is_whitespace);
    let all = names.iter().all(is_id);
    names.into_iter().filter(move |_| all).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headings_with_text_are_entries() {
        let text = "# Deviations\nWords.\n## How to read this. Well\nx\n## sme.a.b\n\nBecause.\n\
                    ### Run\n## `sme.c`, sme.d\nWhy.\n## sme.empty\n\n## sme.last\n\n```\n## sme.fenced\nx\n```\n";
        let found = Deviations::parse(text);
        assert_eq!(
            found.ids().collect::<Vec<_>>(),
            ["sme.a.b", "sme.c", "sme.d"]
        );
        assert_eq!(found.explain("sme.d"), Some(Explanation::Whole));
        assert_eq!(found.explain("sme.empty"), None);
    }

    #[test]
    fn what_is_left_open_is_known() {
        let text = "## sme.a, sme.b\nSo.\n\n*Explained*: this.\n\n*Open*: that.\n\n## sme.c\nAll *Open*.\n\
                    ```\n*Open*: code\n```\n";
        let found = Deviations::parse(text);
        assert_eq!(found.explain("sme.a"), Some(Explanation::Part));
        assert_eq!(found.explain("sme.b"), Some(Explanation::Part));
        assert_eq!(found.explain("sme.c"), Some(Explanation::Whole));
    }

    #[test]
    fn built_in_entries_with_an_open_part_say_what_is_explained() {
        let mut open = 0;
        for entry in BUILT_IN.split("\n## ").skip(1) {
            let begins = |word: &str| entry.contains(&format!("\n\n{word}: "));
            assert_eq!(begins("*Explained*"), begins(OPEN), "{entry}");
            open += usize::from(begins(OPEN));
        }
        assert!(open > 0);
    }

    #[test]
    fn built_in_entries_are_about_published_figures() {
        let figures = crate::validate::published::built_in().unwrap();
        for id in Deviations::built_in().ids() {
            assert!(
                figures.iter().any(|figure| figure.id == id),
                "{id} is no figure"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}") {
            let _ = Deviations::parse(&text);
        }
    }
}
