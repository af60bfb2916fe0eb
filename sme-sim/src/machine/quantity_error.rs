//! The errors in a quantity's text, each as one line that says what to write instead.
//!
//! Made by [`Limits::parse`]; the reader of machine files puts file, line and constant before it.

use thiserror::Error;

use super::quantity::{Dimension, Limits};
use super::words::{listed, quoted};

/// The reason why a text is not a quantity, or not one that is allowed. One line, without the
/// constant's name, which the caller puts before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Nothing but blanks.
    #[error("the value is empty; write e.g. {}", quoted(.example))]
    Empty {
        /// A value that would do.
        example: String,
    },
    /// The text does not begin with digits, or has a decimal point in a strange place.
    #[error("{} does not begin with a number such as 12 or 1.5; write e.g. {}", quoted(.text), quoted(.example))]
    NotANumber {
        /// The text as written.
        text: String,
        /// A value that would do.
        example: String,
    },
    /// A minus sign.
    #[error("{} is negative", quoted(.text))]
    Negative {
        /// The text as written.
        text: String,
    },
    /// A number alone where a unit is needed.
    #[error("{} has no unit; write e.g. {}", quoted(.text), quoted(.example))]
    NoUnit {
        /// The text as written.
        text: String,
        /// The same number with a unit that would do.
        example: String,
    },
    /// A count with something behind it.
    #[error("{} is a count: write it without the unit {}", quoted(.number), quoted(.unit))]
    CountWithUnit {
        /// The number.
        number: String,
        /// The text behind the number.
        unit: String,
    },
    /// No such unit.
    #[error("unknown unit {} in {}; {}", quoted(.unit), quoted(.text), unit_advice(.dimension, .nearest))]
    UnknownUnit {
        /// The text as written.
        text: String,
        /// The text behind the number.
        unit: String,
        /// The expected dimension.
        dimension: Dimension,
        /// The known unit that looks most like it.
        nearest: Option<&'static str>,
    },
    /// A unit of something else.
    #[error("{} is {}, not {}; {}", quoted(.text), .found.name(), .expected.name(), unit_advice(.expected, &None))]
    WrongDimension {
        /// The text as written.
        text: String,
        /// The dimension of the unit.
        found: Dimension,
        /// The dimension of the constant.
        expected: Dimension,
    },
    /// Finer than the base unit.
    #[error("{} is not a whole number{}", quoted(.text), of_base_unit(.dimension))]
    NotWhole {
        /// The text as written.
        text: String,
        /// The expected dimension.
        dimension: Dimension,
    },
    /// Does not fit into 64 bits of the base unit.
    #[error("{} is too large to count{}", quoted(.text), in_base_unit(.dimension))]
    Overflow {
        /// The text as written.
        text: String,
        /// The expected dimension.
        dimension: Dimension,
    },
    /// Readable, but not among the amounts allowed.
    #[error("{} is not allowed: {}", quoted(.text), .limits)]
    NotAllowed {
        /// The text as written.
        text: String,
        /// The allowed values.
        limits: Limits,
    },
}

fn unit_advice(dimension: &Dimension, nearest: &Option<&str>) -> String {
    if let Some(nearest) = nearest {
        return format!("did you mean {}?", quoted(nearest));
    }
    let names: Vec<&str> = dimension
        .units()
        .filter(|unit| unit.name.is_ascii())
        .map(|unit| unit.name)
        .collect();
    format!(
        "{} is written in {}",
        dimension.name(),
        listed(&names, "or")
    )
}

fn of_base_unit(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Count => String::new(),
        _ => format!(" of {}", dimension.base_unit()),
    }
}

fn in_base_unit(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Count => String::new(),
        _ => format!(" in {}", dimension.base_unit()),
    }
}
