//! Generates the entry points from the table of calls.

#[path = "generate.rs"]
mod generate;

fn main() {
    generate::entries("../facts/calls.txt");
}
