//! `sme plot`: rows of every command as pictures, and files that are none.
//!
//! docs/plot.svg is drawn by commands that docs/plot.md shows, and docs/scale.svg and
//! docs/scale-memory.svg by those of BENCHMARKS.md; with `UPDATE=1` in the environment they are
//! drawn anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{sme_in, text};

/// Runs a command line that must succeed; what it says on stderr.
pub fn done(directory: &Path, arguments: &str) -> String {
    let output = sme_in(directory, arguments);
    let said = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {said}");
    said
}

/// The quickest runs of commands that write rows, with the file of the rows in the place of FILE.
const COMMANDS: [&str; 25] = [
    "barrier --nodes 4 --cores 2 --episodes 3 -o FILE",
    "barrier --nodes 4 --cores 2 --episodes 3 --per-thread FILE -o row.csv",
    "barrier --nodes 4 --cores 2 --episodes 3 --link-load FILE -o row.csv",
    "barrier --nodes 4 --cores 2 --episodes 3 --explain-to FILE -o row.csv",
    "sweep --nodes 2..8*2 --cores 1,2 --algorithm flat,tree --episodes 2 --seed 1,2 -o FILE",
    "extrapolate --fit-nodes 2,4,8 --fit-cores 1,2 --episodes 2 --nodes 64,128 --cores 1,4 -o FILE",
    "extrapolate --fit-nodes 2,4,8 --fit-cores 1,2 --episodes 2 --lines FILE -o row.csv",
    "latency --nodes 4 -o FILE",
    "lock --nodes 2 --cores 2 --acquisitions 2 -o FILE",
    "fft --log2n 6 --nodes 1..4*2 --cores 1,2 -o FILE",
    "fft --log2n 4 --nodes 2 --cores 1 --coherence-point none --no-check --stale --stale-list FILE",
    "lu --n 16 --block 8 --nodes 1,2 --cores 1 -o FILE",
    "radix --keys 64 --nodes 1,2 --cores 1 -o FILE",
    "native --threads 1,2 --repetitions 1 --turn 1ms -o FILE",
    "network --topology mesh:2x2 --load 0.1,0.4 --warmup 1us --measure 5us --drain 9us -o FILE",
    "litmus --cycle PodWW,Coe,PodWR,Fre --runs 20 -o FILE",
    "mpi pingpong --machine scc --sizes 8,64 --rounds 1 -o FILE",
    "mpi collective allreduce --machine scc --ranks 2,4 --sizes 8 --algorithm all -o FILE",
    "mpi pscw --machine scc --targets 1,2 --rounds 3 -o FILE",
    "mpi pscw --machine scc --targets 1 --sync deferred --rounds 3 --timeline FILE -o row.csv",
    "mpi pingpong --machine scc --sizes 64 --rounds 2 --explain-to FILE -o row.csv",
    "rtl lockstep --block fifo --cycles 100 -o FILE",
    "validate --paper rcce --no-programs -o FILE",
    "coherence bench --transitions LMM --sizes 4096,65536 -o FILE",
    "coherence curves --paper 2 --sizes 16384,65536 -o FILE",
];

/// The two formats have the same rows, and so the same picture.
#[test]
fn the_rows_of_every_command_are_plotted_with_no_flag() {
    let mut failed = Vec::new();
    for command in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let mut pictures = Vec::new();
        // These write CSV alone.
        let is_csv = ["--per-thread FILE", "--link-load FILE", "--timeline FILE"]
            .iter()
            .any(|flag| command.contains(flag));
        let endings: &[&str] = if is_csv { &["csv"] } else { &["csv", "json"] };
        for ending in endings {
            let file = format!("rows.{ending}");
            let ran = sme_in(directory.path(), &command.replace("FILE", &file));
            let rows = fs::read_to_string(directory.path().join(&file)).unwrap_or_default();
            if rows.is_empty() {
                failed.push(format!("{command}: {}", text(&ran.stderr)));
                continue;
            }
            let output = sme_in(directory.path(), &format!("plot {file}"));
            let said = text(&output.stderr);
            if output.status.code() != Some(0) || !said.starts_with("plotted: ") {
                failed.push(format!("{command}: {said}"));
            }
            pictures.push(text(&output.stdout).to_owned());
        }
        // Native times are others each time.
        if !command.starts_with("native") && pictures.windows(2).any(|pair| pair[0] != pair[1]) {
            failed.push(format!("{command}: CSV and JSON give different pictures"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A file of rows, and what is complained of it with these flags.
#[test]
fn what_cannot_be_plotted_is_one_line_and_changes_nothing() {
    const ROWS: &str = "nodes,name,latency_us,bytes\n1,a,2.5,0\n2,b,3.5,4\n";
    let deep = format!("{{\"a\":{}", "[".repeat(5000));
    let wide = "x".repeat(2 << 20);
    let many: String = (0..250).map(|n| format!("{},{n},{n}\n", n % 50)).collect();
    let many = format!("a,b,c\n{many}");
    for (rows, flags, expected) in [
        ("", "", "in.csv: no row to plot"),
        ("nodes,latency_us\n", "", "in.csv: no row to plot"),
        ("nodes,latency_us\n1\n", "", "in.csv: line 2: has 1 cells"),
        ("nodes,nodes\n1,1\n", "", "in.csv: line 1: names the column"),
        ("a,b\n1,\"2\n", "", "in.csv: line 2: is no CSV row"),
        (
            "{\"a\":1}\n{\"a\":\n",
            "",
            "in.csv: line 2: is no JSON object",
        ),
        (
            "{\"a\":1,\"a\":2}\n",
            "",
            "in.csv: line 1: is no JSON object",
        ),
        ("{\"a\":NaN}\n", "", "in.csv: line 1: is no JSON object"),
        ("{\"a\":1e999}\n", "", "in.csv: line 1: is no JSON object"),
        (&deep, "", "in.csv: line 1: is no JSON object"),
        (&wide, "", "in.csv: line 1: is longer than"),
        ("a,b\nx,y\n", "", "too few fields hold numbers"),
        ("a,b\n1,2\n3,NaN\n", "--x a --y b", "line 3: b is \"NaN\""),
        (
            "a,b\n1,2\n3,1e999\n",
            "--x a --y b",
            "line 3: b is \"1e999\"",
        ),
        (
            "a,b\n1,2\n3,1e18\n",
            "--x a --y b",
            "line 3: b is 1e18, and an axis",
        ),
        (
            "a,b\n1,2\n3,-1\n",
            "--bars --x a --y b",
            "line 3: b is -1, less",
        ),
        (
            ROWS,
            "--y latncy",
            "--y: 'latncy' is not known; did you mean 'latency_us'? (one of nodes, name, latency_us, bytes)",
        ),
        (ROWS, "--x node", "--x: 'node'"),
        (ROWS, "--series nam", "--series: 'nam'"),
        (ROWS, "--errors a,b", "--errors: 'a'"),
        (ROWS, "--errors nodes", "--errors: two fields"),
        (ROWS, "--published p", "--published: 'p'"),
        (ROWS, "--panels p", "--panels: 'p'"),
        (ROWS, "--where name", "--where name: FIELD=VALUE"),
        (ROWS, "--where nam=a", "--where: 'nam'"),
        (
            ROWS,
            "--where name=c",
            "--where name=c: no row to plot has that",
        ),
        (
            ROWS,
            "--y name",
            "line 2: name is \"a\", which is no number",
        ),
        (
            ROWS,
            "--y bytes --log y",
            "line 2: bytes is 0, which has no place",
        ),
        (ROWS, "--y bytes,latency_us", "have different units"),
        (
            ROWS,
            "--y latency_us --errors latency_us,bytes",
            "have different units",
        ),
        (ROWS, "--x nodes,bytes", "--x: several fields name bars"),
        (ROWS, "--bars --log y", "--log: lengths of stacked bars"),
        (
            &many,
            "--x b --y c --panels a",
            "--panels: more than 16 panels",
        ),
        (
            &many,
            "--x b --y c --series a",
            "--series: 50 curves are too many",
        ),
        (&many, "--bars --x b --y c", "--bars: more than"),
        (ROWS, "--size huge", "--size"),
        (ROWS, "--log z", "--log"),
        (ROWS, "--title 遅延", "its font has no"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("in.csv"), rows).unwrap();
        fs::write(directory.path().join("out.pdf"), "before").unwrap();
        let output = sme_in(directory.path(), &format!("plot in.csv -o out.pdf {flags}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        assert_eq!(said.lines().count(), 1, "{flags}: {said}");
        assert!(said.contains(expected), "{flags}: {said}");
        let kept = fs::read_to_string(directory.path().join("out.pdf")).unwrap();
        assert_eq!(kept, "before", "{flags}");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            2,
            "{flags}"
        );
    }
}

#[test]
fn no_input_is_replaced_and_other_endings_are_refused_before_reading() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.svg"), "x,y_ns\n1,2\n2,3\n").unwrap();
    for (line, expected) in [
        (
            "plot a.svg -o ./a.svg",
            "-o ./a.svg: is a file that is read",
        ),
        (
            "plot missing -o a.txt",
            "-o a.txt: pictures are written as .svg, .pdf or .png",
        ),
        ("plot missing -o a", "-o a: pictures are written as"),
        ("plot missing -o b.svg", "missing: cannot be read"),
        ("plot . -o b.svg", ".: cannot be read"),
        ("plot - - -o b.svg", "standard input can be read once"),
    ] {
        let output = sme_in(directory.path(), line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = "sweep --nodes 2..8*2 --cores 1,2 --topology mesh:4x2 --episodes 3 --no-host";
    done(directory.path(), &format!("{sweep} -o s.csv"));
    for (ending, begin) in [
        ("svg", &b"<svg "[..]),
        ("pdf", b"%PDF-"),
        ("png", b"\x89PNG"),
    ] {
        let draw = |name: &str| {
            let file = format!("{name}.{ending}");
            let flags = "--errors latency_min_us,latency_p99_us --size single-column";
            done(directory.path(), &format!("plot s.csv {flags} -o {file}"));
            fs::read(directory.path().join(file)).unwrap()
        };
        let once = draw("a");
        assert!(once.starts_with(begin), "{ending}");
        assert!((1..4).all(|_| draw("b") == once), "{ending}");
    }
}

/// The polylines of a picture with a stroke of this colour.
fn lines_of<'s>(svg: &'s str, colour: &str) -> Vec<&'s str> {
    let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
    lines.filter(|line| line.contains(colour)).collect()
}

#[test]
fn fields_go_where_the_flags_say() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "nodes,kind,latency_us,low_us,high_us,published_us\n\
                1,a,2,1,3,\n2,a,4,3,5,4.5\n4,a,8,7,9,\n1,b,3,1,4,\n2,b,5,4,6,4.5\n4,b,,,,\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let draw = |flags: &str| {
        let said = done(directory.path(), &format!("plot r.csv -o r.svg {flags}"));
        (
            said,
            fs::read_to_string(directory.path().join("r.svg")).unwrap(),
        )
    };
    let has = |svg: &str, words: &str| svg.lines().any(|line| line == words);

    let (said, svg) = draw("");
    let chosen = "plotted: latency_us over nodes, a curve for each kind\n";
    let left_out = "left out: 1 row without these numbers\n";
    assert_eq!(said, format!("{chosen}{left_out}"));
    for words in [
        "nodes",
        "latency [µs]",
        "kind",
        "a",
        "b",
        "Published",
        "published",
    ] {
        assert!(has(&svg, words), "{words}\n{svg}");
    }
    let points = |line: &str| line.matches(',').count();
    let counts = |svg: &str| {
        let of = |colour| lines_of(svg, colour).into_iter().map(points);
        [of("#0072B2").max(), of("#D55E00").max()]
    };
    assert_eq!(counts(&svg), [Some(3), Some(2)]);
    // The same point is published for both kinds, and drawn once; another is in the legend.
    assert_eq!(svg.matches("#333333\" points").count(), 2);

    let (said, svg) = draw("--x nodes --y latency_us --series kind --errors low_us,high_us");
    assert_eq!(said, left_out);
    // A bar and its two ends for each of five rows.
    let thin = svg
        .lines()
        .filter(|line| line.contains("stroke-width=\"1\"") && line.starts_with("<polyline"));
    assert_eq!(thin.filter(|line| !line.contains("#333333")).count(), 3 * 5);

    let (_, svg) = draw("--where kind=a --series=");
    assert_eq!(counts(&svg)[1], None);
    let (_, svg) = draw("--panels kind --style paper");
    assert!(
        has(&svg, "nodes (kind a)") && has(&svg, "nodes (kind b)"),
        "{svg}"
    );
    let (_, svg) = draw("--y low_us,high_us --series kind");
    assert!(has(&svg, "time [µs]") && has(&svg, "low: kind"), "{svg}");
    let (_, svg) = draw("--title Words --log xy");
    assert!(has(&svg, "Words"), "{svg}");
    let (_, svg) = draw("--bars --x nodes --y low_us --series kind");
    assert!(
        has(&svg, "low [µs]") && svg.matches("<rect").count() >= 5,
        "{svg}"
    );
}

/// Both ends of a broken picture are noticed by the test above: a bar of errors that is the wrong
/// way round is refused.
#[test]
fn errors_have_a_lower_and_an_upper_end() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("r.csv"),
        "n,y_us,l_us,h_us\n1,2,3,1\n",
    )
    .unwrap();
    let output = sme_in(
        directory.path(),
        "plot r.csv --x n --y y_us --errors l_us,h_us",
    );
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("r.csv: line 2: l_us is more than h_us"),
        "{said}"
    );
}

#[test]
fn several_files_and_standard_input_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    for (name, latency) in [("one.csv", 3), ("two.csv", 5)] {
        let rows = format!("nodes,latency_us\n1,{latency}\n2,{}\n", 2 * latency);
        fs::write(directory.path().join(name), rows).unwrap();
    }
    let said = done(directory.path(), "plot one.csv two.csv -o a.svg");
    assert_eq!(
        said,
        "plotted: latency_us over nodes, a curve for each source_file\n"
    );
    let svg = fs::read_to_string(directory.path().join("a.svg")).unwrap();
    for name in ["one.csv", "two.csv"] {
        assert!(svg.lines().any(|line| line == name), "{name}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(["plot", "-"])
        .current_dir(directory.path())
        .stdin(Stdio::from(
            fs::File::open(directory.path().join("one.csv")).unwrap(),
        ))
        .output()
        .unwrap();
    let alone = sme_in(directory.path(), "plot one.csv");
    assert_eq!(output.stdout, alone.stdout);
    assert!(output.stdout.starts_with(b"<svg "));
}

/// The parts of the bar are those of the critical path, and as long.
#[test]
fn a_critical_path_is_a_bar_of_what_it_cost() {
    let directory = tempfile::tempdir().unwrap();
    let run = "barrier --nodes 4 --cores 4 --episodes 2 --no-host --explain-to path.csv";
    done(directory.path(), run);
    let said = done(directory.path(), "plot path.csv -o path.svg");
    assert_eq!(
        said,
        "plotted: duration_ns, a part for each part, queued_for\n"
    );
    let path = fs::read_to_string(directory.path().join("path.csv")).unwrap();
    let svg = fs::read_to_string(directory.path().join("path.svg")).unwrap();
    let mut link = 0.0;
    let mut total = 0.0;
    for row in path.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let duration: f64 = cells[1].parse().unwrap();
        total += duration;
        link += if cells[3] == "link" { duration } else { 0.0 };
    }
    assert!(link > 0.0 && svg.lines().any(|line| line == "link"));
    // Bars lie at the same height; blocks of the legend are 30 pixels wide.
    let number = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let rects = || {
        svg.lines()
            .filter(|line| line.starts_with("<rect") && line.contains("height=\"22\""))
    };
    let all: f64 = rects().map(|line| number(line, "width")).sum();
    let legend: Vec<&str> = svg.lines().collect();
    let label = legend.iter().position(|line| *line == "link").unwrap();
    let block = legend[..label]
        .iter()
        .rev()
        .find(|line| line.starts_with("<rect"))
        .unwrap();
    let (_, colour) = block.split_once(" fill=\"").unwrap();
    let colour = colour.split_once('"').unwrap().0;
    let of_link: f64 = rects()
        .filter(|line| line.contains(colour))
        .map(|line| number(line, "width"))
        .sum();
    assert!(
        (of_link / all - link / total).abs() < 0.02,
        "{of_link} of {all}, {link} of {total}"
    );
}

/// A bar for each figure that was simulated, as long as its ratio, in the colour of its verdict.
#[test]
fn published_figures_are_bars_of_their_ratios() {
    let directory = tempfile::tempdir().unwrap();
    let header = "paper,id,comparison,published,simulated,simulated_over_published,verdict\n";
    let rows = "p,p.one,~,4,3,0.75,reproduced\np,p.two,>,2,4,2,deviates\np,p.three,~,5,,,failed\n";
    fs::write(directory.path().join("v.csv"), header.to_owned() + rows).unwrap();
    let said = done(directory.path(), "plot v.csv -o v.svg");
    let chosen = "plotted: simulated_over_published over id, a part for each verdict, comparison\n";
    assert_eq!(
        said,
        format!("{chosen}left out: 1 row without these numbers\n")
    );
    let svg = fs::read_to_string(directory.path().join("v.svg")).unwrap();
    let has = |words: &str| svg.lines().any(|line| line == words);
    let title = "simulated over published by id";
    assert!(
        [title, "p.one", "p.two", "reproduced, ~", "deviates, &gt;"]
            .into_iter()
            .all(has),
        "{svg}"
    );
    assert!(!has("p.three") && !has("failed, ~"), "{svg}");
    // The axis and the line at 1 are as high as all bars.
    let heights = lines_of(&svg, "#333333").into_iter().filter_map(|line| {
        let (_, points) = line.split_once(" points=\"")?;
        let (from, rest) = points.split_once(' ')?;
        let ((x, top), (to, bottom)) = (
            from.split_once(',')?,
            rest.split_once(' ')?.0.split_once(',')?,
        );
        (x == to).then(|| Some(bottom.parse::<i32>().ok()? - top.parse::<i32>().ok()?))?
    });
    assert_eq!(heights.filter(|height| *height > 60).count(), 2, "{svg}");
    let said = done(directory.path(), "plot v.csv --log xy -o v.svg");
    let fallen_back = "plotted: simulated over published\n";
    assert!(said.starts_with(fallen_back), "{said}");
}

/// A picture in the documents is what its command draws; with `UPDATE=1` it is drawn anew.
fn is_drawn(drawn: &str, picture: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(picture);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, drawn).unwrap();
        return;
    }
    let is_same = fs::read_to_string(file).unwrap() == drawn;
    assert!(is_same, "{picture} (.ci/refresh)");
}

/// Pictures of rows that are kept in docs/: BENCHMARKS.md shows the commands.
#[test]
fn the_pictures_of_the_benchmarks_are_drawn_from_their_rows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("BENCHMARKS.md")).unwrap();
    for (field, picture) in [
        ("time_s", "docs/scale.svg"),
        ("memory_mb", "docs/scale-memory.svg"),
    ] {
        let line = format!(
            "plot docs/scale.csv --x threads --y {field} --series= --log xy \
             --size single-column --style paper"
        );
        let shown = format!("sme {line} -o {picture}\n");
        assert!(document.contains(&shown), "BENCHMARKS.md: {shown}");
        let output = sme_in(root, &line);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        is_drawn(text(&output.stdout), picture);
    }
}

/// The example of docs/plot.md.
const EXAMPLE: [&str; 2] = [
    "sweep --nodes 2..64*2 --cores 1,16 --algorithm flat,tree --topology mesh:8x8 --episodes 10 \
     --no-host -o sweep.csv",
    "plot sweep.csv --log x --errors latency_min_us,latency_max_us --size single-column --style paper \
     -o plot.svg",
];

#[test]
fn the_example_is_what_the_program_draws() {
    let directory = tempfile::tempdir().unwrap();
    for line in EXAMPLE {
        done(directory.path(), line);
    }
    let drawn = fs::read_to_string(directory.path().join("plot.svg")).unwrap();
    is_drawn(&drawn, "docs/plot.svg");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/plot.md")).unwrap();
    for line in EXAMPLE {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            document.contains(&format!("$ sme {words}\n")),
            "docs/plot.md: {words}"
        );
    }
}
