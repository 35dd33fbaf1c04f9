//! HTTP headers: names are case-insensitive, a name may occur more than once.

/// The headers of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds one header.
    pub fn add(&mut self, name: &str, value: &str) {
        self.0
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }

    /// Returns the first value of a header; the name must be in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns all headers, names in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns true if there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            headers.add(name.as_ref(), value.as_ref());
        }
        headers
    }
}
