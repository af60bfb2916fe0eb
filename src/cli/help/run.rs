//! `sme run --help`

/// The text below its flags.
pub const RUN: &str = "\
An experiment file is TOML:

  question = \"How much does a tree gain over a flat barrier?\"

  [machines.long-links]             # a machine that differs from another one
  base = \"sme-prototype\"           # built in, or a file beside this one
  set = { link.wire = \"100ns\" }

  [[runs]]
  rows = \"latency.csv\"             # or .json, .jsonl
  command = \"barrier\"              # any command that writes rows
  flags = { machine = [\"sme-prototype\", \"long-links\"], nodes = [4, 16, 64], cores = 4 }
  points = [{ algorithm = \"flat\" }, { algorithm = \"tree\", fan-in = [2, 4, 8] }]

  [[plots]]
  picture = \"latency.svg\"          # or .pdf, .png
  rows = [\"latency.csv\"]
  flags = { x = \"nodes\", y = \"latency_mean_us\", log = \"x\" }

Flags are those of the command, without dashes in front; true and false are for flags without a
value. A list makes a point for each of its values, and every combination of lists is a point; the
last list varies fastest. Entries of points add flags, or replace them. Lists that a command takes
itself, as sme sweep does, are text: nodes = \"2..64*2\". With several points the names of files
that each writes, such as a timeline, must contain {point}. Files that are read are named from the
directory of the experiment file.

Rows are those of the command without what depends on the host, and two columns more:
experiment_id, which the manifest has, and point, the number of its command line there.

manifest.json holds version and commit of the program, the host, the text of the experiment file,
of all machines and files that it reads, and the command line, seed and wall time of every point.
sme run on a manifest repeats the experiment from these texts alone, and compares all results.

Every command line is read before anything is simulated. Results appear together at the end. The
manifest says why a point failed; the others are simulated all the same.

Exit status: 0 done; 1 a point or a picture failed, or a repetition has another result; 2 for bad
input.

Examples:
  sme run tree.toml
  sme run tree.toml --out results/tree --report tree.html
  sme run tree/manifest.json";
