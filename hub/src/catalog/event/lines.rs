//! On which line of a specification a fault stands: whoever mends it need not count `[[levels]]`.

use toml::de::{DeTable, DeValue};

use crate::catalog::json::{self, Node};

/// The faults again, each with the line of its field, or of what it should stand in. Those of the file as a whole, or of
/// a field that is missing at its top, have none.
pub fn numbered(text: &str, faults: Vec<String>) -> Vec<String> {
    let line = |fault: &str| -> Option<usize> {
        let (path, _) = fault.split_once(": ")?;
        let steps = steps(path)?;
        if text.trim_start().starts_with('{') { of_json(text, &steps) } else { of_toml(text, &steps) }
    };
    let with_line = |fault: String| match line(&fault) {
        Some(line) => format!("line {line}: {fault}"),
        None => fault,
    };
    faults.into_iter().map(with_line).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Step<'p> {
    Key(&'p str),
    At(usize),
}

/// `levels[0].prices[1].amount_minor`; `None`: it is no such path.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (key, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return None;
        }
        steps.push(Step::Key(key));
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            steps.push(Step::At(index.parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

fn of_toml(text: &str, steps: &[Step<'_>]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut at = None;
    let mut table = Some(root.get_ref());
    let mut value: Option<&DeValue<'_>> = None;
    for step in steps {
        let found = match step {
            Step::Key(key) => table
                .and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key))
                .map(|(name, value)| (name.span().start, value.get_ref())),
            Step::At(index) => match value {
                Some(DeValue::Array(items)) => items.get(*index).map(|item| (item.span().start, item.get_ref())),
                _ => None,
            },
        };
        let Some((start, inner)) = found else { break };
        at = Some(start);
        value = Some(inner);
        table = match inner {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    at.map(|at| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count())
}

fn of_json(text: &str, steps: &[Step<'_>]) -> Option<usize> {
    let mut node: &Node<'_> = &json::parse(text.as_bytes()).ok()?;
    let mut line = None;
    for step in steps {
        let inner = match (step, &node.value) {
            (Step::Key(key), json::Value::Object(members)) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            (Step::At(index), json::Value::List(items)) => items.get(*index),
            _ => None,
        };
        let Some(inner) = inner else { break };
        node = inner;
        line = Some(node.line as usize);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str, fault: &str) -> String {
        numbered(text, vec![fault.to_owned()]).remove(0)
    }

    #[test]
    fn a_fault_is_found_where_it_stands() {
        let toml = "slug = 'x'\ncurrency = 'euro'\n\n[[levels]]\nname = 'A'\nprices = [\n  { ticket_type = 'adult', \
                    amount_minor = -1 },\n]\n\n[[levels]]\nname = ''\n";
        let fault = "levels[0].prices[0].amount_minor: from 0";
        assert_eq!(first(toml, fault), format!("line 7: {fault}"));
        assert_eq!(first(toml, "currency: three letters"), "line 2: currency: three letters");
        assert_eq!(first(toml, "levels[1].name: 1 to 200"), "line 11: levels[1].name: 1 to 200");
        let missing = "levels[1].prices: this field is needed";
        assert_eq!(first(toml, missing), format!("line 10: {missing}"), "where it should stand");
        for unplaced in ["name: this field is needed", "nothing at all", "no path here: a word"] {
            assert_eq!(first(toml, unplaced), unplaced);
        }
        let json = "{\n  \"slug\": \"x\",\n  \"levels\": [\n    {\"name\": \"A\"}\n  ]\n}";
        assert_eq!(first(json, "levels[0].name: no"), "line 4: levels[0].name: no");
    }
}
