//! The locks on a memory whose stores are on their way for as long as they like, under all
//! schedules of small cases and many of larger ones; and on real threads.
#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]

mod between;
mod cluster;
mod explore;
mod machine;
mod native;
mod tampered;
mod within;
