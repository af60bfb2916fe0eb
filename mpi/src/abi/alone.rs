//! Calls that concern their rank alone: they need neither another rank nor the machine, and take no
//! simulated time; those that read its clock take it later. They can be performed at any time while
//! the rank's program computes, even if that of another rank is waited for.

use std::sync::Arc;

use super::arguments::Arguments;
use super::facts::{Chapter, Signature};
use super::program::Asked;
use super::rank::{About, Rank};

impl Rank {
    /// The result of a call that concerns this rank alone. None of another one, and of one that
    /// fails, to which the rank responds in its turn: errors may end the job, or call functions
    /// that make other calls.
    ///
    /// It must be asked once for each call, so that what comes of it does not depend on when it is
    /// asked.
    pub fn performs_alone(self: &Arc<Self>, asked: &Asked) -> Option<u64> {
        if asked.beside.is_some() {
            return None;
        }
        let mut arguments = Arguments::new(self, asked)?;
        if arguments.call.name == "Wtime" {
            let mut clock = self.clock.lock();
            return clock.as_mut().map(|clock| clock.reads().to_bits());
        }
        if !is_alone(arguments.call) || self.may_call_function(arguments.call) {
            return None;
        }
        *self.about.lock() = About::Nothing;
        let ended = arguments
            .is_about()
            .and_then(|()| self.local(&mut arguments));
        match ended {
            Ok(result) => Some(result),
            Err(failure) => {
                *self.failed.lock() = Some(failure);
                None
            }
        }
    }

    /// Returns whether the call may call a function of the program's, for an attribute.
    fn may_call_function(&self, call: &Signature) -> bool {
        let has_attributes = ["Type_dup", "Type_free"].contains(&call.name);
        has_attributes && !self.objects.lock().keys.is_empty()
    }
}

/// Returns whether a call concerns its rank alone.
fn is_alone(call: &Signature) -> bool {
    match call.chapter {
        Chapter::Types | Chapter::Groups | Chapter::Info => true,
        _ => OTHERS.contains(&call.name),
    }
}

/// Those of other chapters that programs make often.
const OTHERS: [&str; 22] = [
    "Attr_get",
    "Cart_coords",
    "Cart_get",
    "Cart_rank",
    "Cart_shift",
    "Cartdim_get",
    "Comm_compare",
    "Comm_get_attr",
    "Comm_get_name",
    "Comm_group",
    "Comm_rank",
    "Comm_remote_group",
    "Comm_remote_size",
    "Comm_set_name",
    "Comm_size",
    "Comm_test_inter",
    "Dims_create",
    "Error_class",
    "Error_string",
    "Get_processor_name",
    "Query_thread",
    "Wtick",
];

#[cfg(test)]
mod tests {
    use super::super::facts::CALLS;
    use super::OTHERS;

    #[test]
    fn every_call_is_in_the_table() {
        for name in OTHERS {
            assert!(CALLS.iter().any(|call| call.name == name), "{name}");
        }
    }
}
