//! Balanced grids (MPI_Dims_create, MPI-4.1, Sec. 8.5.2).
//!
//! The standard asks for dimensions "as close to each other as possible". Here that is the least
//! difference between the largest and the smallest, and among equals the sequence that is first in
//! lexicographic order. J. L. Träff and F. D. Lübbe, "Specification Guideline Violations by
//! MPI_Dims_create" (EuroMPI 2015), discuss this reading, and libraries that miss it.

use crate::error::{ErrorClass, Fault};

/// Sets the dimensions that are 0, so that the grid has `nodes` nodes: as close to each other as
/// possible, the largest first. The others stay as they are.
///
/// ```
/// let mut dims = [0, 4, 0];
/// sme_mpi::topology::dims_create(48, &mut dims)?;
/// assert_eq!(dims, [4, 4, 3]);
/// # Ok::<(), sme_mpi::error::Fault>(())
/// ```
///
/// # Errors
/// [`ErrorClass::Arg`] if there are no nodes; [`ErrorClass::Dims`] if they are no multiple of the
/// given dimensions, or all dimensions are given and their grid has another size. Then nothing is
/// set.
pub fn dims_create(nodes: u32, dims: &mut [u32]) -> Result<(), Fault> {
    if nodes == 0 {
        return Err(Fault::new(ErrorClass::Arg, "nnodes", "it is 0"));
    }
    if dims.is_empty() {
        return Ok(());
    }
    let free = dims.iter().filter(|&&dim| dim == 0).count();
    let given = dims.iter().filter(|&&dim| dim != 0);
    let product = given.fold(1u64, |product, &dim| product.saturating_mul(u64::from(dim)));
    let nodes = u64::from(nodes);
    if !nodes.is_multiple_of(product) || free == 0 && product != nodes {
        let text = format!("no grid with these dimensions has {nodes} nodes");
        return Err(Fault::new(ErrorClass::Dims, "dims", text));
    }
    let factors = balanced((nodes / product) as u32, free);
    let unset = dims.iter_mut().filter(|dim| **dim == 0);
    for (dim, factor) in unset.zip(factors) {
        *dim = factor;
    }
    Ok(())
}

/// The most balanced factors of `number`, in descending order.
fn balanced(number: u32, factors: usize) -> Vec<u32> {
    let mut primes = prime_factors(number);
    if factors >= primes.len() {
        // No factor is smaller if it has more than one prime, and there are enough places for all.
        primes.reverse();
        primes.resize(factors, 1);
        return primes;
    }
    let mut search = Search {
        divisors: divisors(&primes),
        primes,
        chosen: Vec::with_capacity(factors),
        best: None,
    };
    search.descend(number, factors as u32);
    search.best.map_or_else(Vec::new, |(_, best)| best)
}

/// A depth-first search through descending factors in lexicographic order. There are fewer
/// factors than primes, thus at most 30, and none needs to be 1.
struct Search {
    divisors: Vec<u32>,
    /// The prime factors in ascending order.
    primes: Vec<u32>,
    chosen: Vec<u32>,
    /// The factors with the least difference so far, behind that difference.
    best: Option<(u32, Vec<u32>)>,
}

impl Search {
    /// Chooses the other `count` factors, whose product is `rest`.
    fn descend(&mut self, rest: u32, count: u32) {
        let most = self.chosen.last().copied().unwrap_or(u32::MAX);
        let largest = self.chosen.first().copied();
        if count == 1 {
            let difference = largest.unwrap_or(rest) - rest.min(most);
            if rest <= most && self.is_better(difference) {
                self.chosen.push(rest);
                self.best = Some((difference, self.chosen.clone()));
                self.chosen.pop();
            }
            return;
        }
        let largest_prime = self
            .primes
            .iter()
            .rev()
            .find(|&&prime| rest.is_multiple_of(prime));
        if largest_prime.is_some_and(|&prime| prime > most) {
            return;
        }
        // The largest of the factors is at least the root of their product.
        let least = root(rest.saturating_sub(1), count) + 1;
        let start = self.divisors.partition_point(|&divisor| divisor < least);
        for index in start..self.divisors.len() {
            let factor = self.divisors[index];
            if factor > most {
                return;
            }
            if !rest.is_multiple_of(factor) {
                continue;
            }
            // No later factor leaves room for a larger smallest one.
            let smallest = root(rest / factor, count - 1);
            if !self.is_better(largest.unwrap_or(factor).saturating_sub(smallest)) {
                return;
            }
            self.chosen.push(factor);
            self.descend(rest / factor, count - 1);
            self.chosen.pop();
        }
    }

    fn is_better(&self, difference: u32) -> bool {
        self.best
            .as_ref()
            .is_none_or(|(best, _)| difference < *best)
    }
}

/// The largest integer whose power is at most `number`.
fn root(number: u32, power: u32) -> u32 {
    let fits = |root: u32| {
        u64::from(root)
            .checked_pow(power)
            .is_some_and(|product| product <= u64::from(number))
    };
    let mut root = f64::from(number).powf(1.0 / f64::from(power)) as u32;
    while !fits(root) {
        root -= 1;
    }
    while fits(root + 1) {
        root += 1;
    }
    root
}

/// The prime factors in ascending order.
fn prime_factors(mut number: u32) -> Vec<u32> {
    let mut primes = Vec::new();
    let mut prime = 2;
    while prime <= number / prime {
        while number.is_multiple_of(prime) {
            primes.push(prime);
            number /= prime;
        }
        prime += 1;
    }
    if number > 1 {
        primes.push(number);
    }
    primes
}

/// The divisors of the product of `primes`, in ascending order.
fn divisors(primes: &[u32]) -> Vec<u32> {
    let mut divisors = vec![1];
    for power in primes.chunk_by(|one, two| one == two) {
        let smaller = divisors.len();
        for index in 0..smaller * power.len() {
            divisors.push(divisors[index] * power[0]);
        }
    }
    divisors.sort_unstable();
    divisors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{holds, is_caught};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    type Balance = fn(u32, usize) -> Vec<u32>;

    /// Every descending sequence of factors, by trying every number.
    fn factorings(number: u32, count: usize, most: u32) -> Vec<Vec<u32>> {
        if count == 0 {
            return if number == 1 { vec![vec![]] } else { vec![] };
        }
        let factors = (1..=most.min(number)).filter(|factor| number.is_multiple_of(*factor));
        let with = |factor: u32| {
            let rest = factorings(number / factor, count - 1, factor);
            rest.into_iter()
                .map(move |rest| [vec![factor], rest].concat())
        };
        factors.flat_map(with).collect()
    }

    fn check(balance: Balance, (number, count): (u32, usize)) -> Result<(), TestCaseError> {
        let factors = balance(number, count);
        let all = factorings(number, count, number);
        let imbalance = |factors: &Vec<u32>| (factors[0] - factors[count - 1], factors.clone());
        prop_assert_eq!(
            Some(&factors),
            all.iter().min_by_key(|factors| imbalance(factors))
        );
        Ok(())
    }

    fn cases() -> impl Strategy<Value = (u32, usize)> {
        let number = prop_oneof![1u32..600, Just(720), Just(1024), Just(840), Just(900)];
        (number, 1usize..7)
    }

    #[test]
    fn factors_are_the_most_balanced() {
        holds(cases(), |case| check(balanced, case));
    }

    /// The usual heuristic: each prime, from the largest, goes to the smallest factor.
    #[test]
    fn a_greedy_choice_is_caught() {
        let greedy: Balance = |number, count| {
            let mut factors = vec![1; count];
            for prime in prime_factors(number).into_iter().rev() {
                factors.sort_unstable();
                factors[0] *= prime;
            }
            factors.sort_unstable_by(|one, two| two.cmp(one));
            factors
        };
        is_caught(cases(), |case| check(greedy, case));
    }

    #[test]
    fn large_grids_take_no_time() {
        for number in [
            2_095_133_040,
            1 << 31,
            1_396_755_360,
            u32::MAX,
            4_294_967_291,
            3_491_888_400,
        ] {
            for count in 1..40 {
                let factors = balanced(number, count);
                let product: u64 = factors.iter().map(|&factor| u64::from(factor)).product();
                assert_eq!((product, factors.len()), (u64::from(number), count));
            }
        }
    }

    #[test]
    fn the_standards_examples_come_out() {
        let create = |nodes, mut dims: Vec<u32>| dims_create(nodes, &mut dims).map(|()| dims);
        assert_eq!(create(6, vec![0, 0]), Ok(vec![3, 2]));
        assert_eq!(create(7, vec![0, 0]), Ok(vec![7, 1]));
        assert_eq!(create(6, vec![0, 3, 0]), Ok(vec![2, 3, 1]));
        let class = |nodes, dims| create(nodes, dims).unwrap_err().class;
        assert_eq!(class(7, vec![0, 3, 0]), ErrorClass::Dims);
        assert_eq!(class(12, vec![2, 3]), ErrorClass::Dims);
        assert_eq!(class(0, vec![0]), ErrorClass::Arg);
        assert_eq!(
            class(6, vec![u32::MAX, u32::MAX, u32::MAX, 0]),
            ErrorClass::Dims
        );
        assert_eq!(create(6, vec![]), Ok(vec![]));
    }
}
