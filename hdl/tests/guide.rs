//! docs/rtl.md shows what the RTL does.

#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../examples/remote_load.rs"]
mod remote_load;

#[test]
fn the_load_in_the_guide_is_the_one_that_the_rtl_makes() {
    let guide = include_str!("../../docs/rtl.md");
    let command = "$ cargo run --release --package sme-hdl --example remote_load\n";
    let (_, shown) = guide.split_once(command).expect("the command is there");
    let (shown, _) = shown.split_once("```").expect("the block ends");
    assert_eq!(shown, remote_load::picture());
}
