//! SVG as PDF and as PNG.
//!
//! Text is set in DejaVu Sans, which is part of the program: a computer's own fonts are not looked
//! at, so that a picture is the same on each, and has its text where none is installed. What is
//! bold is the same font with an outline: a second font would be embedded in an order that changes
//! from run to run.

use std::path::Path;
use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Group, Node, Options, Text, Tree, fontdb};
use svg2pdf::{ConversionOptions, PageOptions};

use super::{Page, PlotError};

/// Pixels of an inch, as SVG takes them.
const SVG_DPI: f32 = 96.0;
/// The width of the outline that makes a font bold, of its size.
const BOLD: &str = "0.045em";

/// The format in which a picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Vectors, for browsers.
    Svg,
    /// Vectors, for papers.
    Pdf,
    /// Pixels, 300 an inch.
    Png,
}

impl Kind {
    /// Returns the format that the ending of a file's name says; none if it is another.
    pub fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "pdf" => Some(Self::Pdf),
            "png" => Some(Self::Png),
            _ => None,
        }
    }

    /// The picture that is `svg`, drawn for `page`, as the bytes of a file.
    ///
    /// # Errors
    /// Text that the font does not have, and what the formats refuse.
    pub fn bytes(self, svg: String, page: Page) -> Result<Vec<u8>, PlotError> {
        if self == Self::Svg {
            return Ok(svg.into_bytes());
        }
        let tree = tree(&svg, dejavu::sans::regular())?;
        check(&tree, &svg)?;
        match self {
            Self::Pdf => {
                let page = PageOptions { dpi: SVG_DPI };
                svg2pdf::to_pdf(&tree, ConversionOptions::default(), page)
                    .map_err(|error| PlotError(error.to_string()))
            }
            _ => png(&tree, page.dots()),
        }
    }
}

/// Parses `svg` with the font in `bytes`.
pub(super) fn tree(svg: &str, bytes: &[u8]) -> Result<Tree, PlotError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(bytes.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options {
        dpi: SVG_DPI,
        font_family: "DejaVu Sans".into(),
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let outlined = format!("stroke=\"#333333\" stroke-width=\"{BOLD}\"");
    let svg = svg.replace("font-weight=\"bold\"", &outlined);
    Tree::from_str(&svg, &options).map_err(|error| PlotError(error.to_string()))
}

/// Refuses a picture that would lose text.
fn check(tree: &Tree, svg: &str) -> Result<(), PlotError> {
    let texts = texts(tree.root());
    let glyphs = (texts.iter()).flat_map(|text| text.layouted());
    let mut glyphs = glyphs.flat_map(|span| &span.positioned_glyphs);
    if let Some(glyph) = glyphs.find(|glyph| glyph.id.0 == 0) {
        let text = &glyph.text;
        return Err(PlotError(format!(
            "its font has no {text:?}; write it as .svg, or change the text"
        )));
    }
    // The text of an element stands on a line of its own.
    let lines: Vec<&str> = svg.lines().collect();
    let is_text = |pair: &&[&str]| pair[0].starts_with("<text") && !pair[1].trim().is_empty();
    let asked = lines.windows(2).filter(is_text).count();
    match texts.len() == asked {
        true => Ok(()),
        false => Err(PlotError("its text is lost without a font".into())),
    }
}

/// The texts of a picture.
pub(super) fn texts(group: &Group) -> Vec<&Text> {
    let mut found = Vec::new();
    for node in group.children() {
        match node {
            Node::Group(group) => found.extend(texts(group)),
            Node::Text(text) => found.push(text),
            _ => {}
        }
    }
    found
}

/// The picture with so many dots a pixel.
fn png(tree: &Tree, scale: f32) -> Result<Vec<u8>, PlotError> {
    let side = |length: f32| (length * scale).round() as u32;
    let (width, height) = (side(tree.size().width()), side(tree.size().height()));
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| PlotError(format!("{width} times {height} dots are none, or too many")))?;
    resvg::render(
        tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|error| PlotError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Chart, Scaling, Size, Style};

    fn chart(title: &str, page: Page) -> String {
        let axis = |label: &str| Axis {
            label: label.into(),
            ticks: Vec::new(),
            scaling: Scaling::Linear,
        };
        let chart = Chart {
            title: title.into(),
            subtitle: String::new(),
            x: axis("nodes"),
            y: axis("latency [µs]"),
            curves: Vec::new(),
            marks: Vec::new(),
            caption: Vec::new(),
        };
        super::super::Panel::from(chart).to_svg(page).unwrap()
    }

    const COLUMN: Page = Page {
        size: Size::SingleColumn,
        style: Style::Screen,
    };

    #[test]
    fn the_same_picture_gives_the_same_bytes() {
        for kind in [Kind::Svg, Kind::Pdf, Kind::Png] {
            let svg = chart("A title in bold", COLUMN);
            let first = kind.bytes(svg.clone(), COLUMN).unwrap();
            // Where the order of a hash map shows, it is another one soon.
            for _ in 0..8 {
                assert!(
                    kind.bytes(svg.clone(), COLUMN).unwrap() == first,
                    "{kind:?}"
                );
            }
        }
    }

    #[test]
    fn a_column_is_as_wide_as_it_is_called() {
        let svg = chart("t", COLUMN);
        assert!(svg.starts_with("<svg width=\"3.5"), "{}", &svg[..60]);
        let png = Kind::Png.bytes(svg.clone(), COLUMN).unwrap();
        let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert!(width.abs_diff(1050) <= 3, "{width}");
        let pdf = Kind::Pdf.bytes(svg, COLUMN).unwrap();
        let text = String::from_utf8_lossy(&pdf);
        let (_, page) = text.split_once("/MediaBox [0 0 ").unwrap();
        let width: f64 = page.split(' ').next().unwrap().parse().unwrap();
        assert!((width - 252.0).abs() < 1.0, "{width}");
    }

    #[test]
    fn text_is_not_lost_silently() {
        let refused = |svg: &str, font: &[u8]| {
            let tree = tree(svg, font).unwrap();
            check(&tree, svg).err().map(|error| error.to_string())
        };
        let font = dejavu::sans::regular();
        let svg = chart("Überschrift ≤ 10⁶ µs, Ω", COLUMN);
        assert_eq!(refused(&svg, font), None);
        assert!(refused(&svg, &[]).unwrap().contains("without a font"));
        let svg = chart("遅延", COLUMN);
        assert!(refused(&svg, font).unwrap().contains("its font has no"));
    }

    #[test]
    fn the_ending_decides() {
        let of = |name: &str| Kind::of_file(Path::new(name));
        assert_eq!(of("a/b.pdf"), Some(Kind::Pdf));
        for other in ["a", "a.txt", ".svg", "a.svg/b", "a.PDFX"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
