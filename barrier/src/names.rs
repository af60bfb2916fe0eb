//! Names of choices: an enum that a user picks from, here or in a program over this crate, has
//! kebab-case names, a list of all values, and an error that tells which names there are.

use thiserror::Error;

/// A name that stands for none of the values of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {what} `{name}`: use one of {}", .known.join(", "))]
pub struct UnknownName {
    /// The setting to be chosen, such as `mapping`.
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// The names there are.
    pub known: &'static [&'static str],
}

/// Gives an enum `ALL`, `NAMES`, `name`, `Display` and `FromStr`, whose error is an
/// [`UnknownName`](crate::UnknownName).
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Order {
///     RowsFirst,
///     ColumnsFirst,
/// }
///
/// sme_barrier::names!(Order, "order", {
///     RowsFirst => "rows-first",
///     ColumnsFirst => "columns-first",
/// });
///
/// assert_eq!("rows-first".parse(), Ok(Order::RowsFirst));
/// assert_eq!(Order::ColumnsFirst.to_string(), "columns-first");
/// assert_eq!("rows".parse::<Order>().unwrap_err().known, Order::NAMES);
/// ```
#[macro_export]
macro_rules! names {
    ($type:ident, $what:literal, { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The names of all values, in the order of [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The value's name on the command line and in tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownName {
                        what: $what,
                        name: name.to_owned(),
                        known: Self::NAMES,
                    }),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Mapping, Spacing, TreeShape};

    fn round_trip<T>(all: &[T], names: &[&str])
    where
        T: Copy + std::fmt::Debug + PartialEq + std::fmt::Display + std::str::FromStr,
        T::Err: std::fmt::Debug,
    {
        assert_eq!(all.len(), names.len());
        for (&value, &name) in all.iter().zip(names) {
            assert_eq!(value.to_string(), name);
            assert_eq!(name.parse::<T>().unwrap(), value);
            let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(name.chars().all(kebab), "{name}");
        }
    }

    #[test]
    fn every_value_is_read_back_from_its_name() {
        round_trip(Algorithm::ALL, Algorithm::NAMES);
        round_trip(Mapping::ALL, Mapping::NAMES);
        round_trip(Spacing::ALL, Spacing::NAMES);
        round_trip(TreeShape::ALL, TreeShape::NAMES);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "hep".parse::<TreeShape>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown tree shape `hep`: use one of heap, groups"
        );
    }
}
