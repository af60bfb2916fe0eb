//! Info objects (MPI-4.1, Ch. 10): pairs of words that a program hands to the library. No call of
//! this library wants any; it keeps what it is given.

use crate::error::{ErrorClass, Fault};

/// The longest key in bytes (MPI_MAX_INFO_KEY).
pub const MOST_KEY_BYTES: usize = 255;

/// The longest value in bytes (MPI_MAX_INFO_VAL).
pub const MOST_VALUE_BYTES: usize = 1024;

/// Keys with their values, in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info(Vec<(String, String)>);

impl Info {
    /// Without keys (MPI_Info_create).
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key (MPI_Info_set).
    ///
    /// # Errors
    /// [`ErrorClass::InfoKey`] of an empty or too long key, [`ErrorClass::InfoValue`] of a too long
    /// value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        check_key(key)?;
        if value.len() > MOST_VALUE_BYTES {
            let text = format!("{} bytes; at most {MOST_VALUE_BYTES}", value.len());
            return Err(Fault::new(ErrorClass::InfoValue, "value", text));
        }
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((key.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// The value of a key, if it has one (MPI_Info_get_string).
    ///
    /// # Errors
    /// [`ErrorClass::InfoKey`] of an empty or too long key.
    pub fn get(&self, key: &str) -> Result<Option<&str>, Fault> {
        check_key(key)?;
        let found = self.0.iter().find(|(known, _)| known == key);
        Ok(found.map(|(_, value)| value.as_str()))
    }

    /// Removes a key (MPI_Info_delete).
    ///
    /// # Errors
    /// [`ErrorClass::InfoNoKey`] if it is not set, [`ErrorClass::InfoKey`] as above.
    pub fn delete(&mut self, key: &str) -> Result<(), Fault> {
        check_key(key)?;
        let Some(place) = self.0.iter().position(|(known, _)| known == key) else {
            let text = format!("{key} is not set");
            return Err(Fault::new(ErrorClass::InfoNoKey, "key", text));
        };
        self.0.remove(place);
        Ok(())
    }

    /// Sets the keys of another one.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn update(&mut self, other: &Self) -> Result<(), Fault> {
        let mut others = other.0.iter();
        others.try_for_each(|(key, value)| self.set(key, value))
    }

    /// The keys, of which there are so many (MPI_Info_get_nkeys, MPI_Info_get_nthkey).
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

fn check_key(key: &str) -> Result<(), Fault> {
    if key.is_empty() || key.len() > MOST_KEY_BYTES {
        let text = format!("{} bytes; 1 to {MOST_KEY_BYTES}", key.len());
        return Err(Fault::new(ErrorClass::InfoKey, "key", text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_the_last_value() {
        let mut info = Info::new();
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
            assert_eq!(info.set(key, value), Ok(()));
        }
        assert!(info.keys().eq(["b", "a"]));
        assert_eq!(info.get("b"), Ok(Some("3")));
        assert_eq!(info.get("c"), Ok(None));
        let copy = info.clone();
        assert_eq!(info.delete("b"), Ok(()));
        assert_eq!(
            info.delete("b").map_err(|fault| fault.class),
            Err(ErrorClass::InfoNoKey)
        );
        assert_eq!((info.keys().len(), copy.keys().len()), (1, 2));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut info = Info::new();
        let class = |result: Result<(), Fault>| result.map_err(|fault| fault.class);
        let long = "k".repeat(MOST_KEY_BYTES + 1);
        assert_eq!(class(info.set("", "1")), Err(ErrorClass::InfoKey));
        assert_eq!(class(info.set(&long, "1")), Err(ErrorClass::InfoKey));
        assert_eq!(info.set(&long[1..], "1"), Ok(()));
        let long = "v".repeat(MOST_VALUE_BYTES + 1);
        assert_eq!(class(info.set("k", &long)), Err(ErrorClass::InfoValue));
        assert_eq!(info.set("k", &long[1..]), Ok(()));
    }
}
