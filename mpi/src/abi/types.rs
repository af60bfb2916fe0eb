//! Datatypes: made, described, freed.

use std::sync::Arc;

use super::arguments::Arguments;
use super::objects::no_such;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::datatype::{Datatype, Dimension, Distribution, Order, pack};
use crate::error::ErrorClass;

/// The bounds that a call tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    All,
    True,
}

impl Rank {
    /// The calls about datatypes.
    pub(super) fn types(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Get_count" => {
                let status = a.address();
                let (datatype, out) = (a.datatype()?, a.out());
                let bytes = self.status(status)?.bytes;
                let count = pack::get_count(bytes, &datatype);
                a.put_or_undefined(out, count.map(|count| count as i64))?;
            }
            "Get_elements" | "Get_elements_x" => {
                let status = a.address();
                let (datatype, out) = (a.datatype()?, a.out());
                let bytes = self.status(status)?.bytes;
                let count = pack::get_elements(bytes, &datatype);
                a.put_or_undefined(out, count.map(|count| count as i64))?;
            }
            "Type_size" | "Type_size_x" => {
                let (datatype, out) = (a.datatype()?, a.out());
                a.put(out, datatype.size())?;
            }
            "Type_get_extent" | "Type_get_extent_x" => return self.bounds(a, Bounds::All),
            "Type_get_true_extent" | "Type_get_true_extent_x" => {
                return self.bounds(a, Bounds::True);
            }
            "Type_extent" => {
                let (datatype, out) = (a.datatype()?, a.out());
                a.put(out, datatype.extent())?;
            }
            "Type_lb" => {
                let (datatype, out) = (a.datatype()?, a.out());
                a.put(out, datatype.lower_bound())?;
            }
            "Type_ub" => {
                let (datatype, out) = (a.datatype()?, a.out());
                a.put(out, datatype.lower_bound() + datatype.extent())?;
            }
            "Type_commit" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let mut objects = self.objects.lock();
                let found = objects.types.get_mut(&handle);
                found.ok_or_else(|| no_type(handle))?.is_committed = true;
            }
            "Type_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                let found = a.type_behind(handle)?;
                if found.is_predefined {
                    let text = "datatype: a predefined one is not freed";
                    return Err(Failure::new(ErrorClass::Type, text));
                }
                self.deletes(handle, &found.object.attributes)?;
                self.objects.lock().types.remove(&handle);
                a.put_null(at, "DATATYPE_NULL")?;
            }
            "Type_set_name" => {
                let handle = a.handle();
                let name = a.string()?;
                let mut objects = self.objects.lock();
                let found = objects.types.get_mut(&handle);
                found.ok_or_else(|| no_type(handle))?.object.name = name;
            }
            "Type_get_name" => {
                let name = match a.is_null("DATATYPE_NULL") {
                    true => "MPI_DATATYPE_NULL".to_owned(),
                    false => a.type_object()?.1.object.name,
                };
                self.gives_name(a, &name)?;
            }
            "Type_get_envelope" | "Type_get_envelope_c" => return self.envelope(a),
            "Type_get_contents" | "Type_get_contents_c" => return self.contents(a),
            "Type_match_size" => return self.matching(a),
            "Type_get_value_index" => return self.pair(a),
            "Pack_size" | "Pack_external_size" => return self.pack_size(a),
            "Pack" | "Pack_external" => return self.packs(a),
            "Unpack" | "Unpack_external" => return self.unpacks(a),
            name if name.starts_with("Type_") => return self.constructs(a),
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    fn bounds(&self, a: &mut Arguments<'_>, bounds: Bounds) -> Ended {
        let datatype = a.datatype()?;
        let (lower, extent) = (a.out(), a.out());
        let (from, bytes) = match bounds {
            Bounds::All => (datatype.lower_bound(), datatype.extent()),
            Bounds::True => (datatype.true_lower_bound(), datatype.true_extent()),
        };
        a.put(lower, from)?;
        a.put(extent, bytes)?;
        SUCCESS
    }

    /// The calls that make datatypes.
    fn constructs(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let made = match a.call.name {
            "Type_contiguous" => {
                let (count, of) = (a.count()?, a.datatype()?);
                Datatype::contiguous(count, &of)?
            }
            "Type_vector" => {
                let (count, length, stride, of) =
                    (a.count()?, a.count()?, a.number(), a.datatype()?);
                Datatype::vector(count, length, stride, &of)?
            }
            "Type_create_hvector" | "Type_hvector" => {
                let (count, length, stride, of) =
                    (a.count()?, a.count()?, a.number(), a.datatype()?);
                Datatype::hvector(count, length, stride, &of)?
            }
            "Type_indexed" => {
                let count = a.length()?;
                let (lengths, places, of) = (a.numbers(count)?, a.numbers(count)?, a.datatype()?);
                Datatype::indexed(&lengths, &places, &of)?
            }
            "Type_create_hindexed" | "Type_hindexed" => {
                let count = a.length()?;
                let (lengths, places, of) = (a.numbers(count)?, a.numbers(count)?, a.datatype()?);
                Datatype::hindexed(&lengths, &places, &of)?
            }
            "Type_create_indexed_block" => {
                let (count, length) = (a.length()?, a.count()?);
                let (places, of) = (a.numbers(count)?, a.datatype()?);
                Datatype::indexed_block(length, &places, &of)?
            }
            "Type_create_hindexed_block" => {
                let (count, length) = (a.length()?, a.count()?);
                let (places, of) = (a.numbers(count)?, a.datatype()?);
                Datatype::hindexed_block(length, &places, &of)?
            }
            "Type_create_struct" | "Type_struct" => {
                let count = a.length()?;
                let (lengths, places) = (a.numbers(count)?, a.numbers(count)?);
                let types = a.datatypes(count)?;
                Datatype::create_struct(&lengths, &places, &types)?
            }
            "Type_create_subarray" => {
                let count = a.length()?;
                let (sizes, subsizes) = (a.numbers(count)?, a.numbers(count)?);
                let starts = a.numbers(count)?;
                let order = order(a)?;
                let of = a.datatype()?;
                Datatype::subarray(&sizes, &subsizes, &starts, order, &of)?
            }
            "Type_create_resized" => {
                let (of, lower, extent) = (a.datatype()?, a.number(), a.number());
                Datatype::resized(&of, lower, extent)?
            }
            "Type_create_darray" => darray(a)?,
            "Type_dup" => return self.duplicates(a),
            "Type_create_f90_integer" => Datatype::f90_integer(a.number())?,
            "Type_create_f90_real" => Datatype::f90_real(asked(a), asked(a))?,
            "Type_create_f90_complex" => Datatype::f90_complex(asked(a), asked(a))?,
            _ => return self.unsupported(a),
        };
        let made = match a.call.is_large {
            true => made.with_large_contents(),
            false => made,
        };
        let handle = self.objects.lock().give_type(&made);
        let at = a.address();
        a.put_handle(at, handle)?;
        SUCCESS
    }

    fn duplicates(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let (old, object) = a.type_object()?;
        let at = a.address();
        let attributes = self.copies(old, &object.object)?;
        let made = object.datatype.dup()?;
        let mut objects = self.objects.lock();
        let handle = objects.add_type(made);
        if let Some(new) = objects.types.get_mut(&handle) {
            new.object.attributes = attributes;
            new.is_committed = object.is_committed;
        }
        drop(objects);
        a.put_handle(at, handle)?;
        SUCCESS
    }

    /// MPI_Type_match_size.
    fn matching(&self, a: &mut Arguments<'_>) -> Ended {
        let (class, size) = (a.number(), a.number());
        let of = a.interface();
        let names: &[(&str, i64)] = match class {
            _ if class == of.constant("TYPECLASS_INTEGER") => &[
                ("INTEGER1", 1),
                ("INTEGER2", 2),
                ("INTEGER4", 4),
                ("INTEGER8", 8),
            ],
            _ if class == of.constant("TYPECLASS_REAL") => {
                &[("REAL2", 2), ("REAL4", 4), ("REAL8", 8), ("REAL16", 16)]
            }
            _ if class == of.constant("TYPECLASS_COMPLEX") => &[
                ("COMPLEX4", 4),
                ("COMPLEX8", 8),
                ("COMPLEX16", 16),
                ("COMPLEX32", 32),
            ],
            _ => &[],
        };
        let mut names = names.iter();
        let found = names.find(|(name, bytes)| *bytes == size && of.handle(name) != 0);
        let (name, _) = found.ok_or_else(|| {
            Failure::new(
                ErrorClass::Arg,
                format!("size: no type of this class has {size} bytes"),
            )
        })?;
        let at = a.address();
        a.put_handle(at, of.handle(name))?;
        SUCCESS
    }

    /// MPI_Type_get_value_index.
    fn pair(&self, a: &mut Arguments<'_>) -> Ended {
        let ((value, _), (index, _)) = (a.type_object()?, a.type_object()?);
        let (of, at) = (a.interface(), a.address());
        let mut pairs = PAIRS.iter();
        let found = pairs
            .find(|(one, other, _)| [value, index] == [one, other].map(|name| of.handle(name)));
        let name = found.map_or("DATATYPE_NULL", |(.., pair)| pair);
        a.put_null(at, name)?;
        SUCCESS
    }
}

/// The pairs of a value and an index.
const PAIRS: [(&str, &str, &str); 9] = [
    ("FLOAT", "INT", "FLOAT_INT"),
    ("DOUBLE", "INT", "DOUBLE_INT"),
    ("LONG", "INT", "LONG_INT"),
    ("INT", "INT", "2INT"),
    ("SHORT", "INT", "SHORT_INT"),
    ("LONG_DOUBLE", "INT", "LONG_DOUBLE_INT"),
    ("REAL", "REAL", "2REAL"),
    ("DOUBLE_PRECISION", "DOUBLE_PRECISION", "2DOUBLE_PRECISION"),
    ("INTEGER", "INTEGER", "2INTEGER"),
];

fn no_type(handle: u64) -> Failure {
    no_such(ErrorClass::Type, "datatype", handle)
}

/// MPI_Type_create_darray.
fn darray(a: &mut Arguments<'_>) -> Result<Datatype, Failure> {
    let process = (a.number(), a.number());
    let count = a.length()?;
    let (sizes, distributions) = (a.numbers(count)?, a.numbers(count)?);
    let (blocks, processes) = (a.numbers(count)?, a.numbers(count)?);
    let order = order(a)?;
    let of = a.datatype()?;
    let default = a.interface().constant("DISTRIBUTE_DFLT_DARG");
    let all = sizes.iter().zip(distributions);
    let all = all.zip(blocks.iter().zip(processes));
    let dimensions = all.map(|((&size, distribution), (&block, processes))| {
        Ok(Dimension {
            size,
            distribution: named(a, &DISTRIBUTIONS, distribution, "array_of_distribs")?,
            block: (block != default).then_some(block),
            processes,
        })
    });
    let dimensions: Vec<Dimension> = dimensions.collect::<Result<_, Failure>>()?;
    Ok(Datatype::darray(process, &dimensions, order, &of)?)
}

/// A precision or a range, if the program asks for one.
fn asked(a: &mut Arguments<'_>) -> Option<i64> {
    let number = a.number();
    (number != a.interface().constant("UNDEFINED")).then_some(number)
}

/// The orders of an array, by their names in the interface.
pub(super) const ORDERS: [(&str, Order); 2] =
    [("ORDER_C", Order::C), ("ORDER_FORTRAN", Order::Fortran)];

/// The distributions of an array's dimension.
pub(super) const DISTRIBUTIONS: [(&str, Distribution); 3] = [
    ("DISTRIBUTE_NONE", Distribution::None),
    ("DISTRIBUTE_BLOCK", Distribution::Block),
    ("DISTRIBUTE_CYCLIC", Distribution::Cyclic),
];

/// The order of an array.
fn order(a: &mut Arguments<'_>) -> Result<Order, Failure> {
    let number = a.number();
    named(a, &ORDERS, number, "order")
}

/// The one among `all` whose constant has this number.
fn named<T: Copy>(
    a: &Arguments<'_>,
    all: &[(&str, T)],
    number: i64,
    argument: &str,
) -> Result<T, Failure> {
    let of = a.interface();
    let found = all.iter().find(|(name, _)| of.constant(name) == number);
    found
        .map(|&(_, one)| one)
        .ok_or_else(|| Failure::new(ErrorClass::Arg, format!("{argument}: {number} is none")))
}
