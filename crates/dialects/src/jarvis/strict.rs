//! Parses JSON strictly by the schemas: an object must be an object, and a string a string.
//!
//! By default serde also accepts an array for a struct and an object for an enum.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Something that is written as an object and not as an array.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Members(PhantomData)).map(Object)
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

/// A member that may be left out but not be null.
pub(super) fn given<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// A type with a word for each of its values.
macro_rules! words {
    ($type:ty: $($word:literal => $value:expr),+ $(,)?) => {
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(word: String) -> Result<Self, String> {
                match word.as_str() {
                    $($word => Ok($value),)+
                    other => Err(format!("{other:?} is none of {:?}", [$($word),+])),
                }
            }
        }
    };
}

pub(super) use words;
