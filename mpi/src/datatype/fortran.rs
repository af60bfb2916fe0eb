//! Fortran's parametrized types (MPI-4.1, Sec. 19.1.9): the smallest type with so many digits and
//! so large exponents, as `selected_int_kind` and `selected_real_kind` choose it.

use super::layout::Layout;
use super::{Basic, Combiner, Contents, Datatype};
use crate::error::{ErrorClass, Fault};

/// The number in [`Contents`] of a precision or range that is not asked for (MPI_UNDEFINED).
pub const UNASKED: i64 = i64::MIN;

/// Integers with the decimal digits that each holds.
const INTEGERS: [(Basic, i64); 4] = [
    (Basic::Int8, 2),
    (Basic::Int16, 4),
    (Basic::Int32, 9),
    (Basic::Int64, 18),
];

/// Reals and complex numbers of the same precision, with their decimal digits and exponents.
const REALS: [([Basic; 2], i64, i64); 4] = [
    ([Basic::Float, Basic::CFloatComplex], 6, 37),
    ([Basic::Double, Basic::CDoubleComplex], 15, 307),
    ([Basic::LongDouble, Basic::CLongDoubleComplex], 18, 4931),
    ([Basic::Real16, Basic::Complex32], 33, 4931),
];

impl Datatype {
    /// The integer with so many decimal digits (MPI_Type_create_f90_integer).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there is none.
    pub fn f90_integer(digits: i64) -> Result<Self, Fault> {
        let found = INTEGERS.iter().find(|(_, most)| digits <= *most);
        let &(basic, _) = found.ok_or_else(|| {
            let text = format!("no integer has {digits} digits");
            Fault::new(ErrorClass::Arg, "r", text)
        })?;
        Self::parametrized(Combiner::F90Integer, vec![digits], basic)
    }

    /// The real with so many decimal digits, and with such a decimal exponent
    /// (MPI_Type_create_f90_real).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there is none, or neither is asked for.
    pub fn f90_real(precision: Option<i64>, range: Option<i64>) -> Result<Self, Fault> {
        let [real, _] = reals(precision, range)?;
        Self::parametrized(Combiner::F90Real, asked(precision, range), real)
    }

    /// The complex number of two such reals (MPI_Type_create_f90_complex).
    ///
    /// # Errors
    /// As [`Self::f90_real`].
    pub fn f90_complex(precision: Option<i64>, range: Option<i64>) -> Result<Self, Fault> {
        let [_, complex] = reals(precision, range)?;
        Self::parametrized(Combiner::F90Complex, asked(precision, range), complex)
    }

    fn parametrized(combiner: Combiner, integers: Vec<i64>, basic: Basic) -> Result<Self, Fault> {
        let contents = Contents {
            integers,
            ..Contents::default()
        };
        Self::new(combiner, contents, Some(Layout::basic(basic)), "r")
    }
}

fn asked(precision: Option<i64>, range: Option<i64>) -> Vec<i64> {
    [precision, range]
        .map(|number| number.unwrap_or(UNASKED))
        .into()
}

fn reals(precision: Option<i64>, range: Option<i64>) -> Result<[Basic; 2], Fault> {
    if precision.or(range).is_none() {
        let text = "neither a precision nor a range is asked for";
        return Err(Fault::new(ErrorClass::Arg, "p", text));
    }
    let holds = |wanted: Option<i64>, most: i64| wanted.is_none_or(|wanted| wanted <= most);
    let mut all = REALS.iter();
    let found =
        all.find(|(_, digits, exponent)| holds(precision, *digits) && holds(range, *exponent));
    found.map(|(types, ..)| *types).ok_or_else(|| {
        let (argument, wanted) = match precision {
            Some(digits) if digits > REALS[REALS.len() - 1].1 => ("p", digits),
            _ => ("r", range.unwrap_or_default()),
        };
        Fault::new(ErrorClass::Arg, argument, format!("no real has {wanted}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_selected_kind() {
        let integers = [-1, 2, 3, 4, 5, 9, 10, 18].map(|digits| {
            let datatype = Datatype::f90_integer(digits).unwrap();
            assert_eq!(datatype.contents().integers, [digits]);
            datatype.size()
        });
        assert_eq!(integers, [1, 1, 2, 2, 4, 4, 8, 8]);
        let reals = [
            (Some(6), Some(37)),
            (Some(7), None),
            (None, Some(38)),
            (Some(15), Some(307)),
            (Some(16), Some(0)),
            (None, Some(4931)),
            (Some(19), None),
            (Some(33), Some(4931)),
        ];
        let kinds = reals.map(|(precision, range)| {
            let real = Datatype::f90_real(precision, range).unwrap();
            let complex = Datatype::f90_complex(precision, range).unwrap();
            assert_eq!(complex.size(), 2 * real.size());
            real.basic().unwrap()
        });
        let (double, long, quad) = (Basic::Double, Basic::LongDouble, Basic::Real16);
        let expected = [Basic::Float, double, double, double, long, long, quad, quad];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn there_is_not_every_kind() {
        let class = |made: Result<Datatype, Fault>| made.unwrap_err().class;
        assert_eq!(class(Datatype::f90_integer(19)), ErrorClass::Arg);
        for (precision, range) in [(Some(34), None), (None, Some(4932)), (None, None)] {
            assert_eq!(class(Datatype::f90_real(precision, range)), ErrorClass::Arg);
            assert_eq!(
                class(Datatype::f90_complex(precision, range)),
                ErrorClass::Arg
            );
        }
    }
}
