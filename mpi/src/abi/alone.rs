//! Calls that concern their rank alone: they need neither another rank nor the machine, and take no
//! simulated time; those that read its clock take it later. They can be performed at any time while
//! the rank's program computes, even if that of another rank is waited for.

use std::sync::Arc;

use super::arguments::Arguments;
use super::facts::{Chapter, Signature};
use super::program::Asked;
use super::rank::Rank;

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
        let name = arguments.call.name;
        if name == "Wtime" {
            let mut clock = self.clock.lock();
            return clock.as_mut()?.reads().map(f64::to_bits);
        }
        let begins = ["Init", "Init_thread"].contains(&name);
        if begins && self.objects.lock().is_awaited {
            return None;
        }
        if !is_alone(arguments.call) || arguments.may_call_function() {
            return None;
        }
        match self.call(&mut arguments) {
            Ok(result) => Some(result),
            Err(failure) => {
                *self.failed.lock() = Some(failure);
                None
            }
        }
    }
}

impl Arguments<'_> {
    /// Returns whether the call may call a function of the program's, for an attribute.
    fn may_call_function(&mut self) -> bool {
        if self.rank.objects.lock().keys.is_empty() {
            return false;
        }
        let handle = match self.call.name {
            "Type_dup" => Ok(self.ahead(0, Self::handle)),
            "Type_free" => self.ahead(0, |a| {
                let at = a.address();
                a.handle_at(at)
            }),
            _ => return false,
        };
        let found = handle.and_then(|handle| self.type_behind(handle));
        found.is_ok_and(|found| !found.object.attributes.is_empty())
    }
}

/// Returns whether a call concerns its rank alone.
fn is_alone(call: &Signature) -> bool {
    let name = call.name;
    match call.chapter {
        Chapter::Types | Chapter::Groups | Chapter::Info | Chapter::Tools => true,
        Chapter::Environment => !NOT_ALONE.contains(&name),
        Chapter::Errors => !name.ends_with("_call_errhandler"),
        Chapter::Operations => name != "Reduce_local",
        _ => ALONE.contains(&name) || name.ends_with("_toint") || name.ends_with("_fromint"),
    }
}

/// The calls about the environment that concern others, the machine, or memory of the program's.
const NOT_ALONE: [&str; 5] = ["Abort", "Alloc_mem", "Finalize", "Free_mem", "Pcontrol"];

/// The calls that concern their rank alone, of chapters most of whose calls do not.
const ALONE: [&str; 40] = [
    "Attr_get",
    "Cart_coords",
    "Cart_get",
    "Cart_rank",
    "Cart_shift",
    "Cartdim_get",
    "Comm_compare",
    "Comm_create_keyval",
    "Comm_free_keyval",
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
    "Graph_get",
    "Graph_neighbors",
    "Graph_neighbors_count",
    "Graphdims_get",
    "Keyval_create",
    "Keyval_free",
    "Status_get_error",
    "Status_get_source",
    "Status_get_tag",
    "Status_set_cancelled",
    "Status_set_elements",
    "Status_set_error",
    "Status_set_source",
    "Status_set_tag",
    "Test_cancelled",
    "Topo_test",
    "Type_create_keyval",
    "Type_free_keyval",
    "Type_get_attr",
    "Win_create_keyval",
    "Win_free_keyval",
];

#[cfg(test)]
mod tests {
    use super::super::facts::CALLS;
    use super::{ALONE, NOT_ALONE};

    #[test]
    fn every_call_is_in_the_table() {
        for name in NOT_ALONE.into_iter().chain(ALONE) {
            assert!(CALLS.iter().any(|call| call.name == name), "{name}");
        }
    }
}
