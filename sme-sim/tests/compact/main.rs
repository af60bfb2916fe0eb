//! The compact form of the cluster against the readable one: the same barriers on the same
//! machines, and every time, packet and event the same.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod broken;
mod case;
mod equal;
mod hasty;
mod stepped;
