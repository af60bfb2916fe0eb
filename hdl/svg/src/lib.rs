//! Nothing. `rust-hdl-core` 0.46 declares a dependency on `svg` 0.10 and uses none of it; that
//! version no longer builds with coming compilers, as cargo says at the end of each build. The
//! workspace puts this empty crate in its place (`[patch.crates-io]` in Cargo.toml).
