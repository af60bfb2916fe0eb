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
        let large = counts_of(a, &datatype)?;
        let contents = datatype.contents();
        let lengths = [contents.integers.len(), contents.addresses.len()];
        let lengths = lengths.into_iter().chain(large);
        for length in lengths.chain([contents.types.len()]) {
            let out = a.out();
            a.put(out, length as i64)?;
        }
        let name = datatype.combiner().name();
        let combiner = a.out();
        a.put(combiner, a.interface().constant(&name[4..]))?;
        SUCCESS
    }

    /// MPI_Type_get_contents.
    pub(super) fn contents(&self, a: &mut Arguments<'_>) -> Ended {
        let datatype = a.datatype()?;
        if let Combiner::Named(_) | Combiner::Marker(_) = datatype.combiner() {
            let text = "datatype: a predefined one has no contents";
            return Err(Failure::new(ErrorClass::Type, text));
        }
        let large = counts_of(a, &datatype)?;
        let contents = datatype.contents();
        let lengths = [contents.integers.len(), contents.addresses.len()];
        let lengths = lengths.into_iter().chain(large);
        for length in lengths.chain([contents.types.len()]) {
            let room = a.length()?;
            if room < length {
                let text = format!("room for {room} of {length} arguments of the constructor");
                return Err(Failure::new(ErrorClass::Arg, text));
            }
        }
        let out = a.out();
        a.put_all(out, &integers(&datatype, a.interface()))?;
        let out = a.out();
        a.put_all(out, &contents.addresses)?;
        if large.is_some() {
            let out = a.out();
            a.put_all(out, &contents.large_counts)?;
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

/// The number of large counts among the contents, for a call that tells of them. Others take apart
/// only what a constructor without large counts has made.
fn counts_of(a: &Arguments<'_>, datatype: &Datatype) -> Result<Option<usize>, Failure> {
    let counts = datatype.contents().large_counts.len();
    match a.call.name.ends_with("_c") {
        true => Ok(Some(counts)),
        false if counts == 0 => Ok(None),
        false => {
            let text = "datatype: a call with large counts has made it";
            Err(Failure::new(ErrorClass::Type, text))
        }
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
        // Behind the grid's size, the rank and the number of dimensions; the sizes of the
        // dimensions, unless they are large counts; then distributions, blocks and processes.
        let dimensions = integers.get(2).map_or(0, |&count| count as usize);
        let is_large = !datatype.contents().large_counts.is_empty();
        let sizes = if is_large { 0 } else { dimensions };
        let lists = integers.get_mut(3 + sizes..).unwrap_or_default();
        let mut lists = lists.chunks_exact_mut(dimensions.max(1));
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
