//! Form-encoded parameters with brackets, as the provider's clients send them.

#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    pub fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// The last value of a name: later ones replace earlier ones.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// A whole number, or what stands there instead.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.get(name).map(|v| v.parse().map_err(|_| v.to_owned())).transpose()
    }

    /// The members of a list: `name[]` or `name[0]`, `name[1]`…, in the order in which they came.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.map(name).filter(|(k, _)| k.bytes().all(|b| b.is_ascii_digit())).map(|(_, v)| v)
    }

    /// The members of `name[…]`.
    pub fn map(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(move |(k, v)| {
            let inner = k.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((inner, v.as_str()))
        })
    }

    /// For comparing two requests: the order of the parameters says nothing.
    pub fn sorted(&self) -> Vec<(String, String)> {
        let mut pairs = self.0.clone();
        pairs.sort();
        pairs
    }

    pub fn to_json(&self) -> serde_json::Value {
        self.0.iter().map(|(k, v)| (k.clone(), serde_json::Value::from(v.as_str()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_members() {
        let params = Params::parse(b"amount=5&metadata[a]=1&metadata%5Bb%5D=x%20y&amount=7&created[gte]=9");
        assert_eq!(params.integer("amount"), Ok(Some(7)));
        assert_eq!(params.map("metadata").collect::<Vec<_>>(), [("a", "1"), ("b", "x y")]);
        assert_eq!(params.integer("created[gte]"), Ok(Some(9)));
        assert_eq!(Params::parse(b"amount=1e308").integer("amount"), Err("1e308".into()));
    }
}
