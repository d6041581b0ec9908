//! Codes that people read aloud and type: ten characters of Crockford's alphabet, 50 bits, written `XXXXX-XXXXX`.

/// Crockford's alphabet: what a person may take for another character means that one.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 10;

/// A code of chance, as it is hashed.
pub fn random() -> String {
    rand::random::<[u8; LENGTH]>().iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// A code as people see it.
pub fn written(code: &str) -> String {
    format!("{}-{}", &code[..LENGTH / 2], &code[LENGTH / 2..])
}

/// A code as it is hashed, from what was typed. `None`: nobody's code looks like that.
pub fn read(typed: &str) -> Option<String> {
    let code: String = typed
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        })
        .collect();
    let known = code.len() == LENGTH && code.bytes().all(|b| ALPHABET.contains(&b));
    known.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_the_code_that_was_meant() {
        assert_eq!(read("oilab-cdefg").as_deref(), Some("011ABCDEFG"));
        assert_eq!(read(" 01234 56789 ").as_deref(), Some("0123456789"));
        for wrong in ["", "01234-5678", "01234-567890", "U1234-56789", "ÄÄÄÄÄ"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let code = random();
        assert_eq!(read(&written(&code)), Some(code), "each of ours is one");
    }
}
