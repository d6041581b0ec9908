//! JSON that remembers its lines, so that a fault in a plan can be found by a person.
//!
//! serde_json keeps no positions, drops all but the last of a repeated key, and turns `1e999` into
//! an error without a place; a plan's faults are to be named one by one.
//!
//! Invariants
//! - Nothing is collapsed: repeated keys stay in the tree, for the reader to refuse.
//! - Depth and the number of values are bounded before anything is allocated for them.

use std::borrow::Cow;

/// Deeper than any plan: categories, zones, rows, seats and positions make eight levels.
pub const DEPTH_MAX: usize = 32;
/// 200,000 seats with every optional field are 2 million values.
pub const VALUES_MAX: usize = 4_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// Counted from 1.
    pub line: u32,
    pub value: Value<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool,
    /// May be infinite, if the text was out of range.
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl Value<'_> {
    /// What it is, in words for a fault.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Why a text is not JSON, or more JSON than is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    pub code: &'static str,
    pub line: u32,
    /// In bytes, counted from 1.
    pub column: u32,
    pub message: String,
}

/// Parses one value, and nothing after it.
pub fn parse(bytes: &[u8]) -> Result<Node<'_>, SyntaxError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes); // editors on Windows write it
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        SyntaxError {
            code: "not_utf8",
            line: 1 + before.iter().filter(|b| **b == b'\n').count() as u32,
            column: 1 + before.iter().rev().take_while(|b| **b != b'\n').count() as u32,
            message: "the text is not UTF-8".into(),
        }
    })?;
    let mut reader = Reader { text, at: 0, line: 1, line_start: 0, values: 0 };
    let node = reader.node(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.fault("json_invalid", "there is text after the end of the plan"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, code: &'static str, message: impl Into<String>) -> SyntaxError {
        SyntaxError { code, line: self.line, column: (self.at - self.line_start) as u32 + 1, message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b) = self.peek() {
            match b {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                _ => break,
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        self.space();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(&format!("`{}`", byte as char)))
    }

    fn unexpected(&self, wanted: &str) -> SyntaxError {
        match self.text[self.at..].chars().next() {
            Some(c) => self.fault("json_invalid", format!("expected {wanted}, found {c:?}")),
            None => self.fault("json_invalid", format!("expected {wanted}, but the file ends here")),
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node<'a>, SyntaxError> {
        self.space();
        if depth > DEPTH_MAX {
            return Err(self.fault("too_deep", format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(self.fault("too_many_values", format!("more than {VALUES_MAX} values")));
        }
        let line = self.line;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.word("true", Value::Bool)?,
            Some(b'f') => self.word("false", Value::Bool)?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { line, value })
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, SyntaxError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, SyntaxError> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.node(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break self.at += 1,
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
        Ok(Value::List(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, SyntaxError> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotation marks"));
            }
            let key = self.string()?;
            self.expect(b':')?;
            members.push((key, self.node(depth + 1)?));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break self.at += 1,
                _ => return Err(self.unexpected("`,` or `}`")),
            }
        }
        Ok(Value::Object(members))
    }

    fn number(&mut self) -> Result<f64, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.digits() {
            0 => return Err(self.unexpected("a digit")),
            n if n > 1 && self.text.as_bytes()[self.at - n] == b'0' => {
                return Err(self.fault("json_invalid", "a number starts with 0"));
            }
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        self.text[start..self.at].parse().map_err(|_| self.fault("json_invalid", "this is not a number"))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<Cow<'a, str>, SyntaxError> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut copied = start; // what stands before it is in `owned`
        loop {
            match self.peek() {
                None => return Err(self.fault("json_invalid", "a text is not closed")),
                Some(b'"') => break,
                Some(b'\\') => {
                    let part = &self.text[copied..self.at];
                    let text = owned.get_or_insert_default();
                    text.push_str(part);
                    let c = self.escape()?;
                    owned.get_or_insert_default().push(c);
                    copied = self.at;
                }
                Some(0..=0x1f) => {
                    return Err(self.fault("json_invalid", "a line break or control character stands inside a text"));
                }
                Some(_) => self.at += 1,
            }
        }
        let rest = &self.text[copied..self.at];
        self.at += 1;
        Ok(match owned {
            None => Cow::Borrowed(rest),
            Some(mut text) => {
                text.push_str(rest);
                Cow::Owned(text)
            }
        })
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        self.at += 1;
        let kind = self.peek();
        self.at += 1;
        Ok(match kind {
            Some(c @ (b'"' | b'\\' | b'/')) => c as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex4()?;
                let code = match high {
                    0xd800..=0xdbff if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        let low = self.hex4()?;
                        if !(0xdc00..=0xdfff).contains(&low) {
                            return Err(self.fault("json_invalid", "half of a surrogate pair"));
                        }
                        0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => high,
                };
                char::from_u32(code).ok_or_else(|| self.fault("json_invalid", "half of a surrogate pair"))?
            }
            _ => {
                self.at -= 1;
                return Err(self.fault("json_invalid", "there is no such escape"));
            }
        })
    }

    fn hex4(&mut self) -> Result<u32, SyntaxError> {
        let bytes = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = bytes.filter(|b| b.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(self.fault("json_invalid", "expected four hexadecimal digits"));
        };
        self.at += 4;
        Ok(digits.iter().fold(0, |n, b| n * 16 + (*b as char).to_digit(16).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same value as serde_json sees it, as far as a plan can tell.
    fn same(ours: &Node, theirs: &serde_json::Value) -> bool {
        use serde_json::Value as V;
        match (&ours.value, theirs) {
            (Value::Null, V::Null) | (Value::Bool, V::Bool(_)) => true,
            (Value::Number(n), V::Number(m)) => Some(*n) == m.as_f64(),
            (Value::Text(a), V::String(b)) => a == b,
            (Value::List(a), V::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Value::Object(a), V::Object(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
            }
            _ => false,
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            (-1e9..1e9).prop_map(|x: f64| x.into()),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                proptest::collection::vec((any::<String>(), inner), 0..8)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(value in any_json()) {
            for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
                let node = parse(text.as_bytes()).unwrap();
                prop_assert!(same(&node, &value), "{text}");
            }
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn agrees_with_serde_json_on_what_is_json(text in r#"[\[\]{}:,"\\u0-9a-f.eE+ \n-]{0,24}"#) {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match parse(text.as_bytes()) {
                Ok(Node { value: Value::Number(n), .. }) if n.is_infinite() => prop_assert!(theirs.is_err()),
                Ok(_) => prop_assert!(theirs.is_ok() || text.contains(['e', 'E']), "only we take {text}"),
                Err(e) => prop_assert!(theirs.is_err(), "only we refuse {text}: {e}"),
            }
        }
    }

    #[test]
    fn bombs_do_not_go_off() {
        for bomb in ["[".repeat(5_000_000), "{\"a\":".repeat(1_000_000)] {
            assert_eq!(parse(bomb.as_bytes()).unwrap_err().code, "too_deep");
        }
        let many = format!("[{}0]", "0,".repeat(VALUES_MAX));
        assert_eq!(parse(many.as_bytes()).unwrap_err().code, "too_many_values");
    }

    #[test]
    fn faults_have_their_place() {
        let at = |text: &str| {
            let e = parse(text.as_bytes()).unwrap_err();
            (e.line, e.column)
        };
        assert_eq!(at("{\n  \"a\": 1,\n  \"b\" 2\n}"), (3, 7));
        assert_eq!(at("[1,\n2,]"), (2, 3));
        assert_eq!(at("[NaN]"), (1, 2));
        assert_eq!(at(""), (1, 1));
        assert_eq!(parse(b"{\"a\": \"\xff\"}").unwrap_err().code, "not_utf8");
        assert!(parse(br#""\ud800""#).is_err());
        assert_eq!(parse(br#""\ud83d\ude00""#).unwrap().value, Value::Text("😀".into()));
        assert_eq!(parse(b"\xef\xbb\xbf[]").unwrap().value, Value::List(vec![]));
    }

    #[test]
    fn a_repeated_key_stays_visible() {
        let Value::Object(members) = parse(br#"{"a":1,"a":2}"#).unwrap().value else { panic!() };
        assert_eq!(members.len(), 2);
    }
}
