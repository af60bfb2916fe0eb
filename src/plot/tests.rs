//! Charts as a whole: where things stand in them, which are measured in the SVG text.

use super::*;
use proptest::prelude::*;

fn chart(points: Vec<(f64, f64)>, ticks: Vec<f64>) -> Chart {
    scaled(Scaling::Linear, points, ticks)
}

fn scaled(scaling: Scaling, points: Vec<(f64, f64)>, ticks: Vec<f64>) -> Chart {
    let axis = |label: &str, ticks| Axis {
        label: label.into(),
        ticks,
        scaling,
    };
    Chart {
        title: "A <chart> & more".into(),
        subtitle: String::new(),
        x: axis("nodes", ticks),
        y: axis("latency [µs]", Vec::new()),
        curves: vec![Curve {
            group: "tree".into(),
            label: "16".into(),
            points: points.clone(),
            colour: (8, 48, 107),
            stroke: Stroke::Solid,
        }],
        marks: vec![Marks {
            group: "published".into(),
            label: "figure".into(),
            points,
            symbol: Symbol::Diamond,
        }],
        caption: Vec::new(),
    }
}

#[test]
fn everything_is_in_the_picture_as_text() {
    let svg = chart(vec![(1.0, 2.0), (64.0, 14.0)], vec![1.0, 32.0, 64.0])
        .to_svg()
        .unwrap();
    for text in [
        "A &lt;chart&gt; &amp; more",
        "nodes",
        "latency [µs]",
        "tree",
        "published",
        "64",
        "14",
    ] {
        assert!(svg.lines().any(|line| line == text), "{text}\n{svg}");
    }
    assert!(svg.contains("font-family=\"Helvetica, Arial, sans-serif\""));
    assert_eq!(svg.matches("<polygon").count(), 6);
}

#[test]
fn a_curve_stays_within_the_plot() {
    let svg = chart(vec![(0.0, 0.0), (64.0, 13.9)], vec![0.0, 32.0, 64.0])
        .to_svg()
        .unwrap();
    let curve = svg
        .lines()
        .find(|line| line.contains("#08306B") && line.contains("points"));
    let points = curve
        .unwrap()
        .split("points=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    for point in points.split_whitespace() {
        let (x, y) = point.split_once(',').unwrap();
        let (x, y): (u32, u32) = (x.parse().unwrap(), y.parse().unwrap());
        assert!(x < 1000 - 236 && (70..620).contains(&y), "{points}");
    }
}

proptest! {
    #[test]
    fn no_figures_panic(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6), ticks in prop::collection::vec(any::<f64>(), 0..4)) {
        for scaling in [Scaling::Linear, Scaling::Logarithmic] {
            let _ = scaled(scaling, points.clone(), ticks.clone()).to_svg();
        }
    }
}

/// A chart with curves of these names, and long words everywhere.
fn wordy(names: &[String], scaling: Scaling) -> Panel {
    let points = |index: usize| -> Vec<(f64, f64)> {
        (1..9)
            .map(|n| (10f64.powi(n), 1e3 * (n * (index as i32 + 1)) as f64))
            .collect()
    };
    let long = "a sentence that is longer than a column is wide, and that must not be cut";
    let chart = scaled(scaling, points(1), Vec::new());
    let curves = names.iter().enumerate().map(|(index, name)| Curve {
        group: if index < 2 {
            long.into()
        } else {
            "other".into()
        },
        label: name.clone(),
        points: points(index),
        colour: COLOURS[index % COLOURS.len()],
        stroke: [
            Stroke::Dotted,
            Stroke::Marked,
            Stroke::Dashed,
            Stroke::Points,
        ][index % 4],
    });
    let errors = ErrorBars {
        points: points(0)
            .iter()
            .map(|&(x, y)| (x, y / 2.0, y * 2.0))
            .collect(),
        colour: COLOURS[0],
    };
    Panel {
        errors: vec![errors],
        ..Panel::from(Chart {
            title: long.into(),
            subtitle: format!("{long}; {long}"),
            curves: curves.collect(),
            caption: vec![format!("{long}; {long}"), "short".into()],
            ..chart
        })
    }
}

const fn page(size: Size, style: Style) -> Page {
    Page { size, style }
}

const PAGES: [Page; 5] = [
    page(Size::Screen, Style::Screen),
    page(Size::SingleColumn, Style::Screen),
    page(Size::SingleColumn, Style::Paper),
    page(Size::DoubleColumn, Style::Screen),
    page(Size::DoubleColumn, Style::Paper),
];

/// The texts that stick out of the picture, and those that lie over others, by the outlines of a
/// real font.
#[cfg(feature = "cli")]
fn misplaced(svg: &str) -> Vec<String> {
    let tree = export::tree(svg, dejavu::sans::regular()).unwrap();
    let texts = export::texts(tree.root());
    let boxes: Vec<_> = texts.iter().map(|text| text.abs_bounding_box()).collect();
    let of = |index: usize| -> String {
        texts[index]
            .chunks()
            .iter()
            .map(|chunk| chunk.text())
            .collect()
    };
    let (width, height) = (tree.size().width(), tree.size().height());
    let mut wrong = Vec::new();
    for (index, one) in boxes.iter().enumerate() {
        if one.left() < 0.0 || one.top() < 0.0 || one.right() > width || one.bottom() > height {
            wrong.push(format!(
                "{:?} sticks out: {one:?} of {width} x {height}",
                of(index)
            ));
        }
        for (other, two) in boxes.iter().enumerate().skip(index + 1) {
            let apart = one.right() <= two.left()
                || two.right() <= one.left()
                || one.bottom() <= two.top()
                || two.bottom() <= one.top();
            if !apart {
                wrong.push(format!("{:?} lies over {:?}", of(index), of(other)));
            }
        }
    }
    wrong
}

#[cfg(feature = "cli")]
#[test]
fn no_text_sticks_out_or_lies_over_another() {
    let names = |count: usize| -> Vec<String> {
        let name = |n: usize| "name ".repeat(1 + 7 * n % 11) + &n.to_string();
        (0..count).map(name).collect()
    };
    for page in PAGES {
        for scaling in [Scaling::Linear, Scaling::Logarithmic] {
            for count in [0, 1, 3, 10, 24] {
                let panel = wordy(&names(count), scaling);
                let svg = panel.to_svg(page).unwrap();
                let none: [String; 0] = [];
                assert_eq!(misplaced(&svg), none, "{page:?} {scaling:?} {count}");
                let sheet = compared(&[panel.clone(), wordy(&names(2), scaling)], 2, page);
                assert_eq!(
                    misplaced(&sheet.unwrap()),
                    none,
                    "{page:?} {scaling:?} {count}"
                );
            }
        }
        let bars = stacked(&names(12));
        let none: [String; 0] = [];
        assert_eq!(misplaced(&bars.to_svg(page).unwrap()), none, "{page:?}");
    }
}

#[cfg(feature = "cli")]
#[test]
fn misplaced_text_is_noticed() {
    let svg = |texts: &str| {
        format!(
            "<svg width=\"100\" height=\"50\" viewBox=\"0 0 100 50\" \
             xmlns=\"http://www.w3.org/2000/svg\">{texts}</svg>"
        )
    };
    let text = |x: i32, y: i32| format!("<text x=\"{x}\" y=\"{y}\" font-size=\"10\">words</text>");
    assert_eq!(misplaced(&svg(&(text(5, 20) + &text(5, 40)))).len(), 0);
    assert_eq!(misplaced(&svg(&text(90, 20))).len(), 1);
    assert_eq!(misplaced(&svg(&text(5, 4))).len(), 1);
    assert_eq!(misplaced(&svg(&(text(5, 20) + &text(15, 24)))).len(), 1);
}

/// Bars of these names, of three parts.
fn stacked(names: &[String]) -> bars::Bars {
    let part = |label: &str, factor: f64| bars::BarPart {
        label: label.into(),
        lengths: (0..names.len()).map(|bar| factor * bar as f64).collect(),
    };
    bars::Bars {
        title: "Costs".into(),
        subtitle: String::new(),
        axis: Axis {
            label: "duration [ns]".into(),
            ticks: Vec::new(),
            scaling: Scaling::Linear,
        },
        reference: Some(1000.0),
        names: names.to_vec(),
        parts: vec![
            part("core", 1000.0),
            part(
                "queueing, a link that is busy with what came before it",
                250.0,
            ),
            part("none", 0.0),
        ],
        caption: Vec::new(),
    }
}

/// The numbers of an attribute in each element of a name and a colour.
fn numbers(svg: &str, element: &str, with: &str, attribute: &str) -> Vec<f64> {
    let lines = svg
        .lines()
        .filter(|line| line.starts_with(element) && line.contains(with));
    let value = |line: &str| {
        let (_, rest) = line.split_once(&format!(" {attribute}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    lines.map(value).collect()
}

/// Returns the number of circles that lie within the grid of a chart.
fn circles_within(svg: &str) -> usize {
    let grid = |attribute| numbers(svg, "<line", "#E4E4E4", attribute);
    let ends = |of: Vec<f64>| {
        let least = of.iter().copied().fold(f64::INFINITY, f64::min);
        (least, of.into_iter().fold(0.0, f64::max))
    };
    let (x, y) = (
        ends([grid("x1"), grid("x2")].concat()),
        ends([grid("y1"), grid("y2")].concat()),
    );
    let circles = |attribute| numbers(svg, "<circle", "", attribute);
    let places = circles("cx").into_iter().zip(circles("cy"));
    let is_in = |&(cx, cy): &(f64, f64)| (x.0..=x.1).contains(&cx) && (y.0..=y.1).contains(&cy);
    places.filter(is_in).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every point has its mark, and that lies on the grid; one more is in the legend.
    #[test]
    fn every_mark_lies_within_the_plot(
        points in prop::collection::vec((1e-3..1e6f64, 1e-3..1e6f64), 1..20),
        page in prop::sample::select(&PAGES[..]),
        negative in any::<bool>(),
    ) {
        for scaling in [Scaling::Linear, Scaling::Logarithmic] {
            let sign = if negative && scaling == Scaling::Linear { -1.0 } else { 1.0 };
            let points: Vec<_> = points.iter().map(|&(x, y)| (x, sign * y)).collect();
            let mut chart = scaled(scaling, points.clone(), Vec::new());
            chart.marks.clear();
            chart.curves[0].stroke = Stroke::Points;
            let svg = Panel::from(chart).to_svg(page).unwrap();
            prop_assert_eq!(circles_within(&svg), points.len());
            prop_assert_eq!(svg.matches("<circle").count(), points.len() + 1);
        }
    }
}

#[test]
fn a_mark_beside_the_plot_is_noticed() {
    let mut chart = chart(vec![(1.0, 2.0), (3.0, 4.0)], Vec::new());
    chart.curves[0].stroke = Stroke::Points;
    let svg = chart.to_svg().unwrap();
    assert_eq!(circles_within(&svg), 2);
    let at = svg.find("cx=\"").unwrap() + 4;
    let moved = format!("{}9{}", &svg[..at], &svg[at..]);
    assert_eq!(circles_within(&moved), 1);
}

#[test]
fn panels_that_are_compared_have_one_scale() {
    let low = || Panel::from(chart(vec![(1.0, 1.0)], vec![1.0]));
    let high = || Panel::from(chart(vec![(1.0, 90.0)], vec![1.0]));
    let count = |svg: &str| svg.lines().filter(|line| *line == "80").count();
    let compared = |panels: &[Panel]| compared(panels, 2, Page::default()).unwrap();
    assert_eq!(count(&compared(&[low(), high()])), 2);
    assert_eq!(count(&sheet(&[low(), high()], 2).unwrap()), 1);
    let mut other = high();
    other.chart.y.label = "another".into();
    assert_eq!(count(&compared(&[low(), other])), 1);
}

#[test]
fn bars_are_as_long_as_their_parts() {
    let names = ["none", "one", "two"].map(String::from);
    let svg = stacked(&names).to_svg(Page::default()).unwrap();
    // The last of each colour is in the legend.
    let widths = |colour: &str| {
        let mut widths = numbers(&svg, "<rect", colour, "width");
        widths.pop();
        widths
    };
    let (core, queueing) = (widths("#0072B2"), widths("#D55E00"));
    assert_eq!((core.len(), queueing.len()), (2, 2), "{svg}");
    for (of, expected) in [
        (core[1] / core[0], 2.0),
        (core[0] / queueing[0], 4.0),
        (core[1] / queueing[1], 4.0),
    ] {
        assert!((of - expected).abs() < 0.1, "{core:?} {queueing:?}");
    }
}

#[test]
fn a_paper_has_no_title() {
    let panel = wordy(&["a".to_owned()], Scaling::Linear);
    let told = |page| panel.to_svg(page).unwrap().contains("a sentence that");
    let [screen, paper] = [Style::Screen, Style::Paper].map(|style| Page {
        size: Size::SingleColumn,
        style,
    });
    assert!(told(screen));
    // The legend keeps its groups.
    let svg = panel.to_svg(paper).unwrap();
    assert!(!svg.lines().any(|line| line.starts_with("short")), "{svg}");
    assert!(svg.len() < panel.to_svg(screen).unwrap().len());
}
