//! The compact form of the cluster against the readable one: the same barriers on the same machines,
//! and every time, packet and event the same.

#![allow(missing_docs, reason = "a test")]

mod broken;
mod case;
mod equal;
