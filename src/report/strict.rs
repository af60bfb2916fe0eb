//! JSON in which no object has a key twice. A parser that keeps the last of them loses the others
//! silently.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value in which no object has a key twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Strict(pub Value);

/// The object that `text` is.
///
/// # Errors
/// If it is no JSON, no object, or an object in it has a key twice.
pub fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Strict(Value::Object(object))) => Ok(object),
        Ok(_) => Err("is no JSON object: it is another value".into()),
        Err(error) => Err(format!("is no JSON object: {error}")),
    }
}

/// The value of an entry; one that is an object has its entries in their order, too.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An object's.
    Object(Vec<(String, Value)>),
    /// Any other.
    Other(Value),
}

/// The entries of the object that `text` is, in their order.
///
/// # Errors
/// As of [`object`].
pub fn entries(text: &str) -> Result<Vec<(String, Entry)>, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = deserializer.deserialize_map(InOrder(PhantomData));
    let read = read.and_then(|entries| deserializer.end().map(|()| entries));
    read.map_err(|error| format!("is no JSON object: {error}"))
}

/// Visits the entries of an object, whose values are `V`.
struct InOrder<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
    type Value = Vec<(String, V)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut found: Self::Value = Vec::new();
        let mut known = HashSet::new();
        while let Some((key, value)) = entries.next_entry::<String, V>()? {
            if !known.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice")));
            }
            found.push((key, value));
        }
        Ok(found)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyEntry)
    }
}

/// Visits a value of which, if it is an object, the order matters.
struct AnyEntry;

impl<'de> Visitor<'de> for AnyEntry {
    type Value = Entry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        AnyValue.expecting(formatter)
    }

    fn visit_unit<E: Error>(self) -> Result<Entry, E> {
        AnyValue.visit_unit().map(Entry::Other)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Entry, E> {
        AnyValue.visit_bool(value).map(Entry::Other)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Entry, E> {
        AnyValue.visit_i64(value).map(Entry::Other)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Entry, E> {
        AnyValue.visit_u64(value).map(Entry::Other)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Entry, E> {
        AnyValue.visit_f64(value).map(Entry::Other)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Entry, E> {
        AnyValue.visit_str(value).map(Entry::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Entry, A::Error> {
        AnyValue.visit_seq(elements).map(Entry::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Entry, A::Error> {
        let object = InOrder::<Strict>(PhantomData).visit_map(entries)?;
        let entries = object.into_iter().map(|(key, Strict(value))| (key, value));
        Ok(Entry::Object(entries.collect()))
    }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Strict)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(element)) = elements.next_element()? {
            array.push(element);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, _>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice")));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "[a-c\"é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let object = prop::collection::btree_map("[a-d]", inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                object.prop_map(|object| object.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_without_such_objects_is_what_it_is(value in values()) {
            let text = value.to_string();
            let Strict(read) = serde_json::from_str(&text).expect("it is JSON");
            // The text of a number may be read as its neighbour.
            let plain: Value = serde_json::from_str(&text).expect("it is JSON");
            prop_assert_eq!(read, plain);
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_however_deep() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"b": [{"a": 1, "c": 2, "a": 3}]}"#,
        ] {
            let error = object(text).expect_err("a key stands twice");
            assert!(error.contains(r#"the key "a" stands twice"#), "{error}");
        }
        assert!(object("[1]").is_err(), "an array");
    }
}
