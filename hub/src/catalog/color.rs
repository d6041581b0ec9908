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

/// Two colours of a map nearer than this are taken for one: in OKLab, where people can just tell
/// apart 0.02 side by side. The dots of a far view stand apart and are small, so it is four times that.
pub const ALIKE_BELOW: f64 = 0.08;

/// How far apart people see two colours, as the distance in OKLab: 0 is the same, 1 is black and white.
/// None unless both are `#rrggbb`.
pub fn distance(a: &str, b: &str) -> Option<f64> {
    let (a, b) = (oklab(a)?, oklab(b)?);
    Some(a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt())
}

/// Björn Ottosson's OKLab of an sRGB colour.
fn oklab(hex: &str) -> Option<[f64; 3]> {
    let digits = hex.strip_prefix('#').filter(|d| d.len() == 6 && d.is_ascii())?;
    let channel = |at: usize| -> Option<f64> {
        let c = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).ok()?) / 255.0;
        Some(if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) })
    };
    let (r, g, b) = (channel(0)?, channel(2)?, channel(4)?);
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    Some([
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_as_far_apart_as_people_see_them() {
        let far = |a, b| distance(a, b).unwrap();
        assert!(far("#000000", "#ffffff") > 0.99 && far("#000000", "#ffffff") < 1.01);
        assert!(far("#cc3333", "#cc3333") < 1e-9);
        assert!((far("#cc3333", "#cc3344") - 0.0195).abs() < 1e-3);
        assert!(far("#cc3333", "#cc3344") < ALIKE_BELOW && far("#0c8599", "#099268") > ALIKE_BELOW);
        assert_eq!(distance("#cc3333", "red"), None);
    }

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
