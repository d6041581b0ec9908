//! Colours as people write them in plans. They end in other people's pages, so nothing else passes.

/// The names of CSS.
#[rustfmt::skip] // one list
const NAMES: &[&str] = &[
    "aliceblue", "antiquewhite", "aqua", "aquamarine", "azure", "beige", "bisque", "black", "blanchedalmond", "blue",
    "blueviolet", "brown", "burlywood", "cadetblue", "chartreuse", "chocolate", "coral", "cornflowerblue", "cornsilk",
    "crimson", "cyan", "darkblue", "darkcyan", "darkgoldenrod", "darkgray", "darkgreen", "darkgrey", "darkkhaki",
    "darkmagenta", "darkolivegreen", "darkorange", "darkorchid", "darkred", "darksalmon", "darkseagreen",
    "darkslateblue", "darkslategray", "darkslategrey", "darkturquoise", "darkviolet", "deeppink", "deepskyblue",
    "dimgray", "dimgrey", "dodgerblue", "firebrick", "floralwhite", "forestgreen", "fuchsia", "gainsboro",
    "ghostwhite", "gold", "goldenrod", "gray", "green", "greenyellow", "grey", "honeydew", "hotpink", "indianred",
    "indigo", "ivory", "khaki", "lavender", "lavenderblush", "lawngreen", "lemonchiffon", "lightblue", "lightcoral",
    "lightcyan", "lightgoldenrodyellow", "lightgray", "lightgreen", "lightgrey", "lightpink", "lightsalmon",
    "lightseagreen", "lightskyblue", "lightslategray", "lightslategrey", "lightsteelblue", "lightyellow", "lime",
    "limegreen", "linen", "magenta", "maroon", "mediumaquamarine", "mediumblue", "mediumorchid", "mediumpurple",
    "mediumseagreen", "mediumslateblue", "mediumspringgreen", "mediumturquoise", "mediumvioletred", "midnightblue",
    "mintcream", "mistyrose", "moccasin", "navajowhite", "navy", "oldlace", "olive", "olivedrab", "orange",
    "orangered", "orchid", "palegoldenrod", "palegreen", "paleturquoise", "palevioletred", "papayawhip", "peachpuff",
    "peru", "pink", "plum", "powderblue", "purple", "rebeccapurple", "red", "rosybrown", "royalblue", "saddlebrown",
    "salmon", "sandybrown", "seagreen", "seashell", "sienna", "silver", "skyblue", "slateblue", "slategray",
    "slategrey", "snow", "springgreen", "steelblue", "tan", "teal", "thistle", "tomato", "transparent", "turquoise",
    "violet", "wheat", "white", "whitesmoke", "yellow", "yellowgreen",
];

/// `#rgb`, `#rrggbb`, `#rrggbbaa`, `rgb(…)`, `rgba(…)` or a name, in small letters; none for anything else.
pub fn read(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix('#') {
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        return match hex.len() {
            3 => Some(hex.chars().fold("#".to_owned(), |mut doubled, digit| {
                doubled.extend([digit, digit]);
                doubled
            })),
            6 | 8 => Some(lower),
            _ => None,
        };
    }
    let function = lower.strip_prefix("rgba").or(lower.strip_prefix("rgb")).is_some_and(is_arguments);
    (function || NAMES.binary_search(&&*lower).is_ok()).then_some(lower)
}

/// Three or four numbers in brackets.
fn is_arguments(text: &str) -> bool {
    let inner = text.trim_start().strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    inner.is_some_and(|inner| {
        let numbers: Vec<&str> = inner.split([',', ' ', '/']).filter(|part| !part.is_empty()).collect();
        let is_number =
            |n: &&str| n.strip_suffix('%').unwrap_or(n).parse::<f64>().is_ok_and(|n| n.is_finite() && n >= 0.0);
        (3..=4).contains(&numbers.len()) && numbers.iter().all(is_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_one_and_anything_else_is_none() {
        assert!(NAMES.is_sorted(), "looked up by halves");
        for (given, read_as) in [
            ("#F0a", "#ff00aa"),
            ("#4176A5", "#4176a5"),
            ("#4176a580", "#4176a580"),
            ("Red", "red"),
            ("rgb(1, 2, 3)", "rgb(1, 2, 3)"),
            ("rgba(1,2,3,.5)", "rgba(1,2,3,.5)"),
            ("rgb(10% 20% 30% / 50%)", "rgb(10% 20% 30% / 50%)"),
        ] {
            assert_eq!(read(given).as_deref(), Some(read_as), "{given}");
        }
        for given in
            ["reddish", "#12", "#ggg", "#12345", "rgb()", "rgb(1,2)", "rgb(a,b,c)", "url(javascript:1)", "rgb(1,2,3)x"]
        {
            assert_eq!(read(given), None, "{given}");
        }
    }
}
