//! The fields that `sme plot` chooses, and the bars and curves that it makes of them.

use std::fs;

use crate::command::{sme_in, text};
use crate::plot::done;

/// Without flags the field along the bottom is an input, not a result, and curves are named by
/// words that a reader knows.
#[test]
fn inputs_are_chosen_before_results() {
    let directory = tempfile::tempdir().unwrap();
    let said = |rows: &str, flags: &str| {
        fs::write(directory.path().join("r.csv"), rows).unwrap();
        done(directory.path(), &format!("plot r.csv -o r.svg {flags}"))
    };
    let sweep = "machine,machine_hash,set,nodes,latency_us,latency_p99_us\n\
                 m,01,link.wire=1ns,2,1,2\nm,01,link.wire=1ns,4,2,3\n\
                 m,02,link.wire=9ns,2,3,4\nm,02,link.wire=9ns,4,5,6\n";
    let chosen = "plotted: latency_us over nodes, a curve for each set\n";
    assert_eq!(said(sweep, ""), chosen);
    // Where only settings vary there is a bar for each.
    assert_eq!(
        said(sweep, "--where nodes=2"),
        "plotted: latency_us over set\n"
    );
    // A time is an input where each comes with every setting.
    let delays = "set,delay_us,latency_us\na=1,1,5\na=1,2,6\na=2,1,7\na=2,2,8\n";
    let chosen = "plotted: latency_us over delay_us, a curve for each set\n";
    assert_eq!(said(delays, ""), chosen);
    let network = "traffic,bound_load,zero_load_latency_ns,load,latency_mean_ns\n\
                   uniform,0.9,5,0.1,6\nuniform,0.9,5,0.2,7\n\
                   tornado,0.5,4,0.1,8\ntornado,0.5,4,0.2,9\n";
    let chosen = "plotted: latency_mean_ns over load, a curve for each traffic\n";
    assert_eq!(said(network, ""), chosen);
    let messages = "machine,ranks,size_bytes,latency_us\n\
                    scc,48,8,1\nscc,48,64,2\nmppa256,16,8,3\nmppa256,16,64,4\n";
    let chosen = "plotted: latency_us over size_bytes, a curve for each machine\n";
    assert_eq!(said(messages, ""), chosen);
}

/// A measured x is another number in each row, and so tells every field: what curves need to go one
/// way is a series all the same.
#[test]
fn a_measured_x_does_not_join_curves() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "traffic,load,accepted,latency_us\nu,1,1.01,5\nu,2,2.02,6\nu,3,2.9,9\n\
                t,1,0.99,7\nt,2,1.5,20\nt,3,1.51,90\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let told = |flags: &str| done(directory.path(), &format!("plot r.csv -o r.svg {flags}"));
    let chosen = told("--x accepted --y latency_us");
    assert_eq!(
        chosen,
        "plotted: latency_us over accepted, a curve for each traffic\n"
    );
    // One way already, or no way with any field.
    let one = told("--x accepted --y latency_us --where traffic=u");
    assert_eq!(one, "plotted: latency_us over accepted\n");
    let rows = "name,t_s,y_us\na,1,1\nb,3,2\na,2,3\nb,1.5,4\na,0.5,4\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    assert_eq!(told("--x t_s --y y_us"), "plotted: y_us over t_s\n");
}

/// The series of stacked bars are parts of one thing: those that no flag names are not.
#[test]
fn only_parts_that_are_named_stand_on_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "nodes,kind,latency_us\n2,a,1\n2,b,2\n4,a,3\n4,b,4\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let told = |flags: &str| done(directory.path(), &format!("plot r.csv -o r.svg {flags}"));
    let chosen = told("--bars --x kind --y latency_us");
    assert_eq!(
        chosen,
        "plotted: latency_us over kind, a bar for each nodes\n"
    );
    assert_eq!(told("--bars --x kind --y latency_us --series nodes"), "");
}

/// The field of the panels has one value in each: it is no x.
#[test]
fn the_field_of_panels_is_not_the_x() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "nodes,cores,latency_us\n2,1,1\n2,4,2\n4,1,3\n4,4,4\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let told = done(directory.path(), "plot r.csv -o r.svg --panels nodes");
    assert_eq!(told, "plotted: latency_us over cores\n");
    let refused = sme_in(
        directory.path(),
        "plot r.csv -o r.svg --x nodes --panels nodes",
    );
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert_eq!(said, "sme: --panels: is the field of --x, too\n");
}

/// Curves that double back on themselves lack a field, which is named.
#[test]
fn several_rows_at_one_place_of_a_curve_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "machine,set,nodes,latency_us\nm,,2,1\nm,,4,2\nm,a=1,2,3\nm,a=1,4,4\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let draw = |series: &str| {
        let flags = format!("--x nodes --y latency_us --series {series}");
        done(directory.path(), &format!("plot r.csv -o r.svg {flags}"))
    };
    let lacks = "warning: several rows of curve m have the same nodes: --series lacks a field, \
                 such as set, or --where takes fewer rows\n";
    assert_eq!(draw("machine"), lacks);
    assert_eq!(draw("machine,set"), "");
    // Only the hash tells them apart, or nothing does.
    let rows = "machine,machine_hash,nodes,latency_us\nm,1,2,1\nm,2,2,2\nn,3,2,1\nn,3,2,2\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    assert_eq!(draw("machine"), lacks.replace("as set", "as machine_hash"));
    assert_eq!(draw("machine --where machine=n"), "");
}

/// Counts are results as times are, and words stand along the bottom where no number is an input.
#[test]
fn counts_are_no_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "machine,set,nodes,latency_us,remote_loads,remote_stores\n\
                a,s=1,4,1,7,8\na,s=2,4,2,9,10\nb,s=1,4,3,11,14\nb,s=2,4,4,13,12\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let said = done(directory.path(), "plot r.csv -o r.svg");
    assert_eq!(
        said,
        "plotted: latency_us over machine, a bar for each set\n"
    );
}

/// Alternatives have bars of their own: only what `--bars` says is a part is added up.
#[test]
fn only_parts_are_added_up() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "machine,algorithm,seed,time_us\n\
                one,tree,1,2\none,flat,1,3\ntwo,tree,1,4\ntwo,flat,1,5\n";
    fs::write(directory.path().join("r.csv"), rows).unwrap();
    let flags = "--x machine --y time_us --series algorithm";
    let names = |more: &str| {
        let command = format!("plot r.csv -o r.svg {flags} {more}");
        assert_eq!(done(directory.path(), &command), "");
        let svg = fs::read_to_string(directory.path().join("r.svg")).unwrap();
        let is_name = |line: &&str| line.starts_with("one") || line.starts_with("two");
        let names = svg.lines().filter(is_name).map(str::to_owned);
        names.collect::<Vec<String>>()
    };
    assert_eq!(
        names(""),
        ["one, tree", "one, flat", "two, tree", "two, flat"]
    );
    assert_eq!(names("--bars"), ["one", "two"]);
    // Several rows in one bar are told.
    fs::write(
        directory.path().join("r.csv"),
        rows.to_owned() + "one,tree,2,2\n",
    )
    .unwrap();
    let doubled = "warning: several rows are added up in bar one, tree: --x lacks a field\n";
    let command = |more: &str| format!("plot r.csv -o r.svg {flags} {more}");
    assert_eq!(done(directory.path(), &command("")), doubled);
    assert_eq!(done(directory.path(), &command("--bars")), "");
}

/// A cell that is no number among numbers is refused, and does not change what is drawn.
#[test]
fn a_column_of_numbers_has_no_words() {
    let directory = tempfile::tempdir().unwrap();
    let said = |last: &str| {
        let rows = format!("nodes,machine,time_us\n1,m,.5\n2,m,+2\n4,m,3.\n8,m,{last}\n");
        fs::write(directory.path().join("r.csv"), rows).unwrap();
        let output = sme_in(directory.path(), "plot r.csv -o r.svg");
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let drawn = "plotted: time_us over nodes\n".to_owned();
    assert_eq!(said("4"), (Some(0), drawn));
    for word in ["n/a", "NaN", "inf", "1e400"] {
        let (code, why) = said(word);
        assert_eq!(code, Some(2), "{why}");
        let expected = format!("r.csv: line 5: time_us is {word:?}, which is no number");
        assert!(why.contains(&expected), "{why}");
    }
}

#[test]
fn nothing_is_drawn_twice() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.csv"), "n,a_us\n1,2\n2,3\n").unwrap();
    for (arguments, why) in [
        ("r.csv ./r.csv", "./r.csv: is given twice"),
        ("r.csv --x n --y a_us,a_us", "--y: a_us is given twice"),
    ] {
        let output = sme_in(directory.path(), &format!("plot {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let said = text(&output.stderr);
        assert!(said.contains(why), "{arguments}: {said}");
    }
    fs::write(directory.path().join("l.json"), "[{\"n\":1}]\n").unwrap();
    let output = sme_in(directory.path(), "plot l.json");
    let said = text(&output.stderr);
    let why = "l.json: line 1: begins a list of JSON; write one object per line";
    assert!(said.contains(why), "{said}");
}
