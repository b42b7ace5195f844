//! A value kept as its JSON text: compared and stored often, looked into rarely.
//!
//! Invariant: the text is exactly what `serde_json` writes for the value, so equal values are equal
//! texts. In JSON it is the value itself.

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

/// One small allocation, where the value itself may be dozens: a large run holds one of these for
/// each step, and a reader makes one for each line.
pub struct Kept<T> {
    text: Box<str>,
    value: PhantomData<fn() -> T>,
}

impl<T> Kept<T> {
    /// Takes text that is known to be what `serde_json` writes for some `T`.
    pub(crate) fn from_canonical(text: &str) -> Self {
        Self { text: text.into(), value: PhantomData }
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<T: DeserializeOwned> Kept<T> {
    pub fn get(&self) -> T {
        serde_json::from_str(&self.text).expect("the text was written for such a value")
    }
}

impl<T: Serialize> From<&T> for Kept<T> {
    /// For types of our own, whose maps have strings as names: such are always JSON.
    fn from(value: &T) -> Self {
        Self::from_canonical(&serde_json::to_string(value).expect("the value is plain JSON"))
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self::from_canonical(&self.text)
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for Kept<T> {}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Serialize + DeserializeOwned> Serialize for Kept<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de, T: Serialize + Deserialize<'de>> Deserialize<'de> for Kept<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self::from(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_as_good_as_the_value() {
        let value = vec!["a \"b\"".to_owned(), "é\n".to_owned()];
        let kept = Kept::from(&value);
        assert_eq!(kept.get(), value);
        assert_eq!(kept, kept.clone());
        assert_ne!(kept, Kept::from(&vec![]));
        let json = serde_json::to_string(&kept).unwrap();
        assert_eq!(json, serde_json::to_string(&value).unwrap());
        assert_eq!(kept.as_str(), json);
        let spaced = r#" ["a \u0022b\"", "\u00e9\n"]"#;
        assert_eq!(serde_json::from_str::<Kept<Vec<String>>>(spaced).unwrap(), kept);
    }
}
