//! The calls that take datatypes apart: their constructors, and the arguments of these.

use super::arguments::Arguments;
use super::facts::Interface;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::types::{DISTRIBUTIONS, ORDERS};
use crate::datatype::{Combiner, DEFAULT_BLOCK, Datatype, UNASKED};
use crate::error::ErrorClass;

impl Rank {
    /// MPI_Type_get_envelope.
    pub(super) fn envelope(&self, a: &mut Arguments<'_>) -> Ended {
        let datatype = a.datatype()?;
        let contents = datatype.contents();
        let (integers, addresses) = (a.out(), a.out());
        let large = (a.call.name.ends_with("_c")).then(|| a.out());
        let (types, combiner) = (a.out(), a.out());
        a.put(integers, contents.integers.len() as i64)?;
        a.put(addresses, contents.addresses.len() as i64)?;
        if let Some(large) = large {
            a.put(large, 0)?;
        }
        a.put(types, contents.types.len() as i64)?;
        let name = match datatype.combiner() {
            Combiner::Named(_) => "MPI_COMBINER_NAMED",
            combiner => combiner.name(),
        };
        a.put(combiner, a.interface().constant(&name[4..]))?;
        SUCCESS
    }

    /// MPI_Type_get_contents.
    pub(super) fn contents(&self, a: &mut Arguments<'_>) -> Ended {
        let datatype = a.datatype()?;
        if let Combiner::Named(_) = datatype.combiner() {
            let text = "datatype: a predefined one has no contents";
            return Err(Failure::new(ErrorClass::Type, text));
        }
        let is_large = a.call.name.ends_with("_c");
        let room = (a.length()?, a.length()?);
        if is_large {
            a.skip();
        }
        let room_for_types = a.length()?;
        let contents = datatype.contents();
        let is_enough = room.0 >= contents.integers.len()
            && room.1 >= contents.addresses.len()
            && room_for_types >= contents.types.len();
        if !is_enough {
            let text = "max_integers: there is more than is wanted";
            return Err(Failure::new(ErrorClass::Arg, text));
        }
        let out = a.out();
        a.put_all(out, &integers(&datatype, a.interface()))?;
        let out = a.out();
        a.put_all(out, &contents.addresses)?;
        if is_large {
            a.skip();
        }
        let mut objects = self.objects.lock();
        let types = contents.types.iter();
        let handles: Vec<u64> = types.map(|datatype| objects.give_type(datatype)).collect();
        drop(objects);
        let at = a.address();
        a.put_handles(at, &handles)?;
        SUCCESS
    }
}

/// The integers among a datatype's contents, with the interface's constants.
fn integers(datatype: &Datatype, of: Interface) -> Vec<i64> {
    let mut integers = datatype.contents().integers.clone();
    let is_array = matches!(datatype.combiner(), Combiner::Subarray | Combiner::Darray);
    if let Some(order) = integers.last_mut().filter(|_| is_array) {
        let known = ORDERS.iter().find(|(_, known)| known.code() == *order);
        *order = known.map_or(*order, |(name, _)| of.constant(name));
    }
    for number in &mut integers {
        if *number == UNASKED {
            *number = of.constant("UNDEFINED");
        }
    }
    if datatype.combiner() == Combiner::Darray {
        let processes_at = integers.len() - 1;
        // For each dimension: its size, its distribution, its blocks and its processes, behind the
        // grid's size, the rank and the number of dimensions.
        let dimensions = (processes_at - 3) / 4;
        let mut lists = integers[3..].chunks_exact_mut(dimensions).skip(1);
        for distribution in lists.next().into_iter().flatten() {
            let mut known = DISTRIBUTIONS.iter();
            let known = known.find(|(_, known)| known.code() == *distribution);
            *distribution = known.map_or(*distribution, |(name, _)| of.constant(name));
        }
        for block in lists.next().into_iter().flatten() {
            if *block == DEFAULT_BLOCK {
                *block = of.constant("DISTRIBUTE_DFLT_DARG");
            }
        }
    }
    integers
}
