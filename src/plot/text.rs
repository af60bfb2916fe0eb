//! Text: its fonts, how wide it becomes, and where its lines break.
//!
//! Viewers draw with fonts of their own. Widths are those of DejaVu Sans, the widest of the usual
//! ones, so that what fits with it fits with Helvetica and Arial, too.

use plotters::prelude::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, TextStyle};

/// Fonts with plain figures that most systems have, then any without serifs.
const FONT: &str = "Helvetica, Arial, sans-serif";
/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(51, 51, 51);

/// The widths of the characters from the blank to the tilde [thousandths of the size].
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
/// The width of any other character [thousandths of the size].
const OTHER: u16 = 838;
/// The width of bold text, relative to that of plain text.
const BOLD: f64 = 1.15;

/// The width of `text` of `size` pixels [pixels].
pub(super) fn width(text: &str, size: f64) -> f64 {
    let of = |character: char| {
        let index = (character as usize).checked_sub(usize::from(b' '));
        let known = index.and_then(|index| WIDTHS.get(index));
        f64::from(*known.unwrap_or(&OTHER))
    };
    text.chars().map(of).sum::<f64>() * size / 1000.0
}

/// The width of bold `text` of `size` pixels [pixels].
pub(super) fn bold_width(text: &str, size: f64) -> f64 {
    BOLD * width(text, size)
}

/// `text` in lines that `width_of` finds no wider than `most`; a word that is wider itself is
/// broken.
pub(super) fn lines(text: &str, most: f64, width_of: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = match line.is_empty() {
            true => word.to_owned(),
            false => format!("{line} {word}"),
        };
        if width_of(&longer) <= most {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            line.push(character);
            if width_of(&line) > most && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, character.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Text of `size` units.
pub(super) fn plain(size: f64) -> TextStyle<'static> {
    styled(size, FontStyle::Normal)
}

/// Bold text of `size` units.
pub(super) fn bold(size: f64) -> TextStyle<'static> {
    styled(size, FontStyle::Bold)
}

fn styled(size: f64, style: FontStyle) -> TextStyle<'static> {
    // The back end divides by this again: it takes a size for the height of a line.
    const LINE_HEIGHT: f64 = 1.24;
    FontDesc::new(FontFamily::Name(FONT), size * LINE_HEIGHT, style).color(&INK)
}

/// Anchored at the left, in the middle of its height.
pub(super) fn middle(style: TextStyle) -> TextStyle {
    style.pos(Pos::new(HPos::Left, VPos::Center))
}

/// Anchored at the right, in the middle of its height.
pub(super) fn right(style: TextStyle) -> TextStyle {
    style.pos(Pos::new(HPos::Right, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_have_all_characters_and_fit(text in "[a-zA-Z ]{0,80}", most in 30.0..300.0f64) {
            let of = |line: &str| width(line, 13.0);
            let lines = lines(&text, most, of);
            let joined: String = lines.concat().split_whitespace().collect();
            let all: String = text.split_whitespace().collect();
            prop_assert_eq!(joined, all);
            for line in &lines {
                prop_assert!(of(line) <= most && !line.is_empty(), "{lines:?}");
            }
        }
    }
}
