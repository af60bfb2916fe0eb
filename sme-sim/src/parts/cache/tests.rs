//! The cache against a model of it that is slow and plain: every level a list of lines with the
//! time of their last use, every line its 64 bytes, each with a dirty mark. Random actions on
//! caches of a few lines must have the same results in both; a model with a fault must not.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::{Cache, Geometry, Held, Level, LineSize, byte_mask};
use crate::parts::coherence::State;

/// A deliberate fault of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The second level replaces the line that came first.
    FirstInFirstOut,
    /// A hit in the first level is seen by the second.
    FirstLevelSeen,
    /// A line evicted from the second level stays in the first.
    NotInclusive,
    /// A store makes its whole word dirty.
    WordsDirty,
    /// A store that is refused counts as use.
    RefusedCounts,
    /// A probe counts as use.
    LookCounts,
    /// Cleaning leaves the state as it is.
    CleanKeepsState,
    /// A store around the first level brings the line into it.
    AroundFills,
}

#[derive(Clone, Debug)]
struct Entry {
    line: u64,
    state: State,
    bytes: [u8; 64],
    dirty: [bool; 64],
    used: u64,
}

impl Entry {
    fn held(&self) -> Held {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(self.bytes.chunks(8)) {
            *word = bytes
                .iter()
                .rev()
                .fold(0, |sum, &b| sum * 256 + u64::from(b));
        }
        let dirty = (0..64).filter(|&bit| self.dirty[bit]).map(|bit| 1 << bit);
        Held {
            line: self.line,
            state: self.state,
            words,
            dirty: dirty.sum(),
        }
    }
}

/// The model: `first` are copies of lines of `second` only by number.
struct Model {
    geometry: [u64; 4],
    fault: Fault,
    clock: u64,
    first: Vec<(u64, u64)>,
    second: Vec<Entry>,
}

impl Model {
    fn at(&mut self, line: u64) -> Option<&mut Entry> {
        self.second.iter_mut().find(|entry| entry.line == line)
    }

    /// The level that serves a use of a held line, after which both levels know of it.
    fn serve(&mut self, line: u64) -> Level {
        self.clock += 1;
        let now = self.clock;
        let fault = self.fault;
        if let Some(way) = self.first.iter_mut().find(|way| way.0 == line) {
            way.1 = now;
            if fault == Fault::FirstLevelSeen {
                self.at(line).expect("held").used = now;
            }
            return Level::First;
        }
        if fault != Fault::FirstInFirstOut {
            self.at(line).expect("held").used = now;
        }
        self.bring(line);
        Level::Second
    }

    /// Takes a line into the first level.
    fn bring(&mut self, line: u64) {
        let [sets, ways, ..] = self.geometry;
        let same = |way: &&(u64, u64)| way.0 % sets == line % sets;
        let set: Vec<_> = self.first.iter().filter(same).copied().collect();
        if set.len() as u64 == ways {
            let oldest = set.iter().min_by_key(|way| way.1).expect("a way").0;
            self.first.retain(|way| way.0 != oldest);
        }
        self.first.push((line, self.clock));
    }

    fn load(&mut self, line: u64, word: usize) -> Option<(u64, Level)> {
        let value = self.at(line)?.held().words[word];
        Some((value, self.serve(line)))
    }

    fn store(&mut self, line: u64, word: usize, enables: u8, value: u64) -> Option<Level> {
        self.write(line, word, enables, value)?;
        Some(self.serve(line))
    }

    fn store_around(&mut self, line: u64, word: usize, enables: u8, value: u64) -> Option<Level> {
        self.write(line, word, enables, value)?;
        if self.fault == Fault::AroundFills || self.first.iter().any(|way| way.0 == line) {
            return Some(self.serve(line));
        }
        self.clock += 1;
        let now = self.clock;
        self.at(line).expect("held").used = now;
        Some(Level::Second)
    }

    /// The bytes and the state of a store that finds the line writable.
    fn write(&mut self, line: u64, word: usize, enables: u8, value: u64) -> Option<()> {
        let fault = self.fault;
        let entry = self.at(line)?;
        if matches!(entry.state, State::Shared | State::Owned | State::Forward) {
            if fault == Fault::RefusedCounts {
                self.serve(line);
            }
            return None;
        }
        entry.state = State::Modified;
        for byte in 0..8 {
            let enabled = enables >> byte & 1 == 1;
            if enabled {
                entry.bytes[8 * word + byte] = value.to_le_bytes()[byte];
            }
            entry.dirty[8 * word + byte] |= enabled || fault == Fault::WordsDirty;
        }
        Some(())
    }

    fn victim(&self, line: u64) -> Option<u64> {
        let [.., sets, ways] = self.geometry;
        let set = self.second.iter().filter(|e| e.line % sets == line % sets);
        let set: Vec<_> = set.collect();
        let full = set.len() as u64 == ways && set.iter().all(|entry| entry.line != line);
        let oldest = set.iter().min_by_key(|entry| entry.used)?.line;
        full.then_some(oldest)
    }

    fn insert(&mut self, line: u64, state: State, words: [u64; 8], dirty: u64) -> Option<Held> {
        let evicted = self.victim(line).and_then(|oldest| {
            let held = self.at(oldest).map(|entry| entry.held());
            self.second.retain(|entry| entry.line != oldest);
            if self.fault != Fault::NotInclusive {
                self.first.retain(|way| way.0 != oldest);
            }
            held
        });
        self.clock += 1;
        self.second.retain(|entry| entry.line != line);
        self.first.retain(|way| way.0 != line);
        let mut bytes = [0; 64];
        for (byte, place) in bytes.iter_mut().enumerate() {
            *place = words[byte / 8].to_le_bytes()[byte % 8];
        }
        self.second.push(Entry {
            line,
            state,
            bytes,
            dirty: std::array::from_fn(|bit| dirty >> bit & 1 == 1),
            used: self.clock,
        });
        self.bring(line);
        evicted
    }

    fn look(&mut self, line: u64) -> Option<Held> {
        let held = self.at(line)?.held();
        if self.fault == Fault::LookCounts {
            self.serve(line);
        }
        Some(held)
    }

    fn clean(&mut self, line: u64) {
        let fault = self.fault;
        if let Some(entry) = self.at(line) {
            entry.dirty = [false; 64];
            if fault != Fault::CleanKeepsState {
                entry.state = match entry.state {
                    State::Modified => State::Exclusive,
                    State::Owned => State::Shared,
                    other => other,
                };
            }
        }
    }

    fn remove(&mut self, line: u64) -> Option<Held> {
        let held = self.at(line)?.held();
        self.second.retain(|entry| entry.line != line);
        self.first.retain(|way| way.0 != line);
        Some(held)
    }

    fn lines(&self) -> Vec<u64> {
        let sets = self.geometry[2];
        let mut entries: Vec<_> = self.second.iter().collect();
        entries.sort_by_key(|entry| (entry.line % sets, std::cmp::Reverse(entry.used)));
        entries.into_iter().map(|entry| entry.line).collect()
    }
}

#[derive(Clone, Debug)]
enum Action {
    Load(u64, u32),
    Store(u64, u32, u8, u64),
    StoreAround(u64, u32, u8, u64),
    Look(u64),
    SetState(u64, State),
    Clean(u64),
    Insert(u64, State, [u64; 8], u64),
    Remove(u64),
    Clear,
}

fn states() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Shared),
        Just(State::Exclusive),
        Just(State::Owned),
        Just(State::Forward),
        Just(State::Modified),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    // Few lines that share sets, some of them far from zero.
    let line = || (0u64..24).prop_map(|n| if n < 16 { n } else { (1 << 57) + n });
    let action = prop_oneof![
        8 => (line(), 0u32..8).prop_map(|(l, w)| Action::Load(l, w)),
        8 => (line(), 0u32..8, any::<u8>(), any::<u64>())
            .prop_map(|(l, w, e, v)| Action::Store(l, w, e, v)),
        4 => (line(), 0u32..8, any::<u8>(), any::<u64>())
            .prop_map(|(l, w, e, v)| Action::StoreAround(l, w, e, v)),
        8 => (line(), states(), any::<[u64; 8]>(), any::<u64>())
            .prop_map(|(l, s, w, d)| Action::Insert(l, s, w, d)),
        2 => line().prop_map(Action::Look),
        2 => (line(), states()).prop_map(|(l, s)| Action::SetState(l, s)),
        1 => line().prop_map(Action::Clean),
        2 => line().prop_map(Action::Remove),
    ];
    prop::collection::vec(prop_oneof![200 => action, 1 => Just(Action::Clear)], 1..200)
}

fn geometries() -> impl Strategy<Value = [u64; 4]> {
    let sets = || (0u32..3).prop_map(|log| 1u64 << log);
    (sets(), 1u64..5, sets(), 1u64..5)
        .prop_map(|(s1, w1, s2, w2)| [s1, w1, s2, w2])
        .prop_filter("the second contains the first", |[s1, w1, s2, w2]| {
            s1 * w1 <= s2 * w2
        })
}

/// Does the same in both and says where they differ.
fn compare(sizes: [u64; 4], actions: &[Action], fault: Fault) -> Result<(), TestCaseError> {
    let [s1, w1, s2, w2] = sizes;
    let (l1, l2) = ((s1 * w1 * 64, w1 as u32), (s2 * w2 * 64, w2 as u32));
    let geometry = Geometry::new(LineSize::B64, l1, l2);
    let mut cache = Cache::new(geometry.map_err(|e| TestCaseError::fail(e.to_string()))?);
    let (first, second) = (Vec::new(), Vec::new());
    let mut model = Model {
        geometry: sizes,
        fault,
        clock: 0,
        first,
        second,
    };
    for action in actions.iter().cloned() {
        match action {
            Action::Load(line, word) => {
                prop_assert_eq!(cache.load(line, word), model.load(line, word as usize));
            }
            Action::Store(line, word, enables, value) => {
                let stored = model.store(line, word as usize, enables, value);
                prop_assert_eq!(cache.store(line, word, enables, value), stored);
            }
            Action::StoreAround(line, word, enables, value) => {
                let stored = model.store_around(line, word as usize, enables, value);
                prop_assert_eq!(cache.store_around(line, word, enables, value), stored);
            }
            Action::Look(line) => {
                prop_assert_eq!(cache.look(line).map(|v| v.to_held()), model.look(line));
            }
            Action::SetState(line, state) => {
                cache.set_state(line, state);
                if let Some(entry) = model.at(line) {
                    entry.state = state;
                }
            }
            Action::Clean(line) => {
                cache.clean(line);
                model.clean(line);
            }
            Action::Insert(line, state, words, dirty) => {
                let victim = cache.victim(line);
                prop_assert_eq!(victim, model.victim(line));
                let evicted = cache.insert(line, state, words, dirty);
                prop_assert_eq!(evicted.map(|held| held.line), victim);
                prop_assert_eq!(evicted, model.insert(line, state, words, dirty));
            }
            Action::Remove(line) => {
                prop_assert_eq!(cache.remove(line), model.remove(line));
            }
            Action::Clear => {
                cache.clear();
                model.first.clear();
                model.second.clear();
            }
        }
        same(&cache, &model)?;
    }
    Ok(())
}

/// Compares all that is held, and the two levels of the cache with each other.
fn same(cache: &Cache, model: &Model) -> Result<(), TestCaseError> {
    let lines: Vec<_> = cache.lines().collect();
    prop_assert_eq!(&lines, &model.lines());
    prop_assert_eq!(cache.len(), lines.len());
    prop_assert_eq!(cache.is_empty(), lines.is_empty());
    let sets = model.geometry[2];
    for set in 0..sets {
        let of_set = lines.iter().copied().filter(|line| line % sets == set);
        prop_assert!(cache.lines_of_set(set).eq(of_set));
    }
    for view in cache.held() {
        let entry = model.second.iter().find(|entry| entry.line == view.line);
        prop_assert_eq!(Some(view.to_held()), entry.map(Entry::held));
    }
    let mut first: Vec<_> = cache.first.lines().collect();
    for &(line, record) in &first {
        let spot = cache.tags.find(line);
        prop_assert_eq!(spot.map(|spot| spot.record), Some(record));
    }
    first.sort_unstable();
    let mut expected: Vec<_> = model.first.iter().map(|way| way.0).collect();
    expected.sort_unstable();
    let first: Vec<_> = first.into_iter().map(|(line, _)| line).collect();
    prop_assert_eq!(first, expected);
    Ok(())
}

proptest! {
    #![proptest_config(Config::with_cases(400))]

    #[test]
    fn does_what_the_model_does(sizes in geometries(), actions in actions()) {
        compare(sizes, &actions, Fault::None)?;
    }
}

#[test]
fn every_fault_is_found() {
    for fault in [
        Fault::FirstInFirstOut,
        Fault::FirstLevelSeen,
        Fault::NotInclusive,
        Fault::WordsDirty,
        Fault::RefusedCounts,
        Fault::LookCounts,
        Fault::CleanKeepsState,
        Fault::AroundFills,
    ] {
        let config = Config {
            cases: 400,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Config::default()
        };
        let found = TestRunner::new(config).run(&(geometries(), actions()), |(sizes, actions)| {
            compare(sizes, &actions, fault)
        });
        assert!(matches!(found, Err(TestError::Fail(..))), "{fault:?}");
    }
}

#[test]
fn enables_become_masks() {
    for enables in 0..=255u8 {
        let bytes = std::array::from_fn(|bit| if enables >> bit & 1 == 1 { 255 } else { 0 });
        assert_eq!(byte_mask(enables), u64::from_le_bytes(bytes));
    }
}

/// The mark of an empty way is no line, though there are empty ways.
#[test]
fn empty_ways_are_not_found() {
    let geometry = Geometry::new(LineSize::B64, (256, 2), (256, 2)).expect("two sets of two");
    let mut cache = Cache::new(geometry);
    for _ in 0..2 {
        assert_eq!(cache.load(u64::MAX, 0), None);
        assert_eq!(cache.store(u64::MAX, 0, 255, 1), None);
        assert_eq!(cache.store_around(u64::MAX, 0, 255, 1), None);
        assert_eq!(cache.look(u64::MAX), None);
        assert_eq!(cache.remove(u64::MAX), None);
        cache.insert(1, State::Exclusive, [7; 8], 0);
    }
    assert_eq!(cache.lines().collect::<Vec<_>>(), [1]);
}

/// A K10 core's 512 KiB: nothing at first, little for few lines, and not much beyond the bytes
/// when full. Refilled after it was cleared, it takes nothing more.
#[test]
fn memory_grows_with_use() {
    let (l1, l2) = ((64 << 10, 2), (512 << 10, 16));
    let geometry = Geometry::new(LineSize::B64, l1, l2).expect("a K10 core");
    let mut cache = Cache::new(geometry);
    assert_eq!(cache.bytes(), 0);
    for line in 0..10 {
        assert_eq!(cache.insert(line, State::Shared, [line; 8], 0), None);
    }
    assert!(cache.bytes() < 32 << 10, "{}", cache.bytes());
    for line in 10..20_000 {
        cache.insert(line, State::Shared, [line; 8], 0);
    }
    assert_eq!(cache.len(), 8192);
    let full = cache.bytes();
    assert!(full < 780 << 10, "{full}");
    cache.clear();
    assert!(cache.is_empty());
    for line in 0..8192 {
        cache.insert(line, State::Exclusive, [line; 8], 0);
    }
    assert_eq!((cache.len(), cache.bytes()), (8192, full));
    assert_eq!(cache.load(8191, 3), Some((8191, Level::First)));
    assert_eq!(cache.load(0, 3), Some((0, Level::Second)));
}
