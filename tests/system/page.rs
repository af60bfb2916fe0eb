//! The report of an experiment in a real browser: it loads nothing, everything has its place, and
//! what an experiment file says is text there.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::{skipped, sme_in, text};

const EXPERIMENT: &str = r#"
question = "Is <b>2 & 2</b> \"4\"?"
notes = "<script>document.title = 'no'</script>"

[[runs]]
rows = "latency.csv"
command = "barrier"
flags = { algorithm = ["flat", "tree"], nodes = [2, 4, 8], cores = 2, episodes = 2 }

[[plots]]
picture = "latency.pdf"
rows = ["latency.csv"]
flags = { x = "nodes", y = "latency_mean_us" }
"#;

/// What the browser makes of the page, as JSON in the page's title: what it loaded, the boxes of
/// pictures, and the texts of the first table's rows.
const LOOK: &str = r#"<script>
addEventListener("load", () => {
    const boxes = [...document.querySelectorAll("figure svg")].map((svg) => {
        const box = svg.getBoundingClientRect();
        return [box.width, box.height];
    });
    const rows = [...document.querySelector("table").rows].map((row) =>
        [...row.cells].map((cell) => cell.textContent));
    document.title = JSON.stringify({
        loaded: performance.getEntriesByType("resource").length,
        boxes, rows,
        heading: document.querySelector("h1").textContent,
        scripts: document.scripts.length,
        bold: document.querySelectorAll("b").length,
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        sections: [...document.querySelectorAll("h2")].map((heading) => heading.textContent),
        title_before: document.title,
    });
});
</script>"#;

/// The page's title after the browser has loaded it.
fn looked_at(page: &Path, width: u32) -> Option<Value> {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},900"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let dom = text(&output.stdout);
    let (_, title) = dom.split_once("<title>").unwrap();
    let (title, _) = title.split_once("</title>").unwrap();
    let title = title
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    Some(serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}")))
}

#[test]
fn a_browser_shows_the_report() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return skipped("chromium");
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::write(root.join("e.toml"), EXPERIMENT).unwrap();
    let output = sme_in(root, "run e.toml --report e.html");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = fs::read_to_string(root.join("e.html")).unwrap();
    let looked = root.join("looked.html");
    fs::write(&looked, page.replace("</body>", &format!("{LOOK}</body>"))).unwrap();

    for width in [1200, 500] {
        let seen = looked_at(&looked, width).unwrap();
        assert_eq!(seen["loaded"], 0, "the page is one file");
        assert_eq!(seen["heading"], "Is <b>2 & 2</b> \"4\"?");
        assert_eq!(
            seen["title_before"], seen["heading"],
            "no script of the notes ran"
        );
        assert_eq!(
            (&seen["scripts"], &seen["bold"]),
            (&Value::from(1), &Value::from(0))
        );
        assert_eq!(
            seen["overflow"], 0,
            "nothing is wider than a window of {width}"
        );
        let sections: Vec<&str> = seen["sections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|section| section.as_str().unwrap())
            .collect();
        assert_eq!(
            sections,
            ["latency.csv", "Machines", "Limits", "Repetition"]
        );

        // The picture, and the critical paths.
        let boxes = seen["boxes"].as_array().unwrap();
        assert_eq!(boxes.len(), 2);
        for size in boxes {
            let [width_of, height] = [0, 1].map(|at| size[at].as_f64().unwrap());
            assert!(
                width_of > 300.0 && width_of < f64::from(width) && height > 100.0,
                "{size}"
            );
        }
        let rows = seen["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1 + 6);
        assert_eq!(
            (&rows[0][0], &rows[6][0]),
            (&Value::from("point"), &Value::from("5"))
        );
    }
}
