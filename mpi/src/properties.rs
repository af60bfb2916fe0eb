//! Runs a property over generated cases, for tests that also need it to fail: each module holds a
//! deliberately broken variant against the property that its sound code satisfies.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Asserts that `check` holds for every generated case.
pub fn holds<S: Strategy>(cases: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    if let Err(error) = runner().run(&cases, check) {
        panic!("{error}");
    }
}

/// Asserts that `check` fails for some generated case.
pub fn is_caught<S: Strategy>(cases: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let outcome = runner().run(&cases, check);
    assert!(
        matches!(outcome, Err(TestError::Fail(..))),
        "the broken variant passes"
    );
}

fn runner() -> TestRunner {
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::default());
    TestRunner::new_with_rng(config, seed)
}
