//! Experiment files that are refused, each in a line that names the place.

use std::fs;

use super::{complaint, names, prepared};

#[test]
fn a_wrong_file_is_refused_in_a_line_and_leaves_nothing() {
    let directory = prepared();
    let root = directory.path();
    fs::write(root.join("machine.toml"), "nonsense").unwrap();
    let run = "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n";
    let plot = "[[plots]]\npicture = 'a.svg'\nrows = ['a.csv']\n";
    for (experiment, named) in [
        ("nonsense".to_owned(), "x.toml: line 1: "),
        (String::new(), "x.toml: there are no runs"),
        (format!("{run}colour = 1"), "x.toml: line 4: unknown field"),
        (
            format!("{run}flags = {{ nodes = [2, 0] }}"),
            "line 1: point 1: --nodes 0",
        ),
        (
            format!("{run}flags = {{ colour = 1 }}"),
            "flags: 'colour' is not known; did you mean 'columns'?",
        ),
        (
            format!("{run}flags = {{ machine = 'no.toml' }}"),
            "no.toml: cannot be read",
        ),
        (
            format!("{run}flags = {{ machine = 'machine.toml' }}"),
            "machine.toml",
        ),
        (
            format!("{run}{run}"),
            "x.toml: line 4: \"a.csv\": another result has this name",
        ),
        (run.replace("a.csv", "../a.csv"), "write the name of a file"),
        (
            run.replace("a.csv", "a.txt"),
            "must end in .csv, .json or .jsonl",
        ),
        (
            run.replace("a.csv", "manifest.json"),
            "another result has this name",
        ),
        (
            run.replace("barrier", "barriers"),
            "did you mean 'barrier'?",
        ),
        (
            run.replace("barrier", "plot"),
            "line 1: command: 'plot' is not known",
        ),
        (
            format!("{run}{}", plot.replace("a.csv", "b.csv")),
            "\"b.csv\" is no run",
        ),
        (
            format!("{run}{}", plot.replace("a.svg", "a.gif")),
            "line 4: -o ",
        ),
        (
            format!("{run}{plot}flags = {{ log = 'z' }}"),
            "line 4: invalid value 'z'",
        ),
        (
            format!("{run}flags = {{ columns = 'nodes,nods' }}"),
            "line 1: point 0: --columns: 'nods' is no column",
        ),
        (
            format!("{run}{plot}flags = {{ y = 'latncy_mean_us' }}"),
            "line 4: --y: 'latncy_mean_us' is not known; did you mean 'latency_mean_us'?",
        ),
        (
            format!("{run}{plot}flags = {{ x = 'host_wall_s' }}"),
            "line 4: --x: 'host_wall_s' is not known",
        ),
        (
            format!("{run}{plot}flags = {{ where = ['nodes=1', 'nods=1'] }}"),
            "line 4: --where: 'nods' is not known",
        ),
        (
            format!(
                "{run}flags = {{ columns = 'nodes' }}\n{plot}flags = {{ errors = 'nodes,seed' }}"
            ),
            "(one of nodes, experiment_id, point)",
        ),
        (
            format!("[machines.m]\nbase = 'none'\n{run}"),
            "x.toml: line 1: machines.m: unknown machine",
        ),
        (
            format!("[machines.scc]\nbase = 'ideal'\n{run}"),
            "x.toml: line 1: machines.scc: the name must be",
        ),
        (
            format!("[machines.m]\nbase = 'ideal'\nset = {{ a.b = '1ns' }}\n{run}"),
            "x.toml: line 1: machines.m: --set a.b=1ns: ",
        ),
        (
            format!("[machines.slow]\nbase = 'ideal'\n{run}flags = {{ machine = 'slo' }}"),
            "machine: 'slo' is not known; did you mean 'slow'?",
        ),
    ] {
        fs::write(root.join("x.toml"), &experiment).unwrap();
        let before = names(root);
        let told = complaint(root, "run x.toml --report r.html", 2);
        assert!(told.contains(named), "{experiment}: {told}");
        assert_eq!(names(root), before, "{experiment}");
    }
    complaint(root, "run none.toml", 2);
    complaint(root, "run .", 2);
    fs::write(root.join("x.toml"), [0xff, 0xfe]).unwrap();
    assert!(complaint(root, "run x.toml", 2).contains("is not UTF-8 text"));
    fs::write(root.join("x.toml"), "{}").unwrap();
    assert!(complaint(root, "run x.toml", 2).contains("is no manifest"));
}
