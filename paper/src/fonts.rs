//! Fonts for paper: Noto Sans is in the binary, what it lacks is looked for in the machine's Noto packages.
//!
//! Invariants
//! - There is always a font: without any package, letters that Noto Sans lacks are boxes, and a warning says so.
//! - A font is read when the first text needs it, once, and stays: the Japanese one alone is 20 MB.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rustybuzz::ttf_parser;
use unicode_script::{Script, UnicodeScript};

use crate::words::Language;

const REGULAR: &[u8] = include_bytes!("../../assets/fonts/NotoSans-Regular.ttf");
const BOLD: &[u8] = include_bytes!("../../assets/fonts/NotoSans-Bold.ttf");
/// Folders within folders that are searched.
const DEPTH_MAX: usize = 4;
const EMOJI: &str = "NotoColorEmoji.ttf";
const CJK: &str = "NotoSansCJK-Regular.ttc";
/// Signs that belong to no script, and what the fonts above lack of them.
const SYMBOLS: [&str; 4] = [
    "NotoSansSymbols-Regular.ttf",
    "NotoSansSymbols2-Regular.ttf",
    "NotoSansMath-Regular.ttf",
    "NotoMusic-Regular.ttf",
];

/// One face, ready to shape and to embed. Cheap to clone.
#[derive(Clone)]
pub struct Face(Arc<Inner>);

struct Inner {
    data: Arc<dyn AsRef<[u8]> + Send + Sync>,
    index: u32,
    #[cfg(feature = "pdf")]
    font: krilla::text::Font,
    /// Drawn heavier where bold is asked for: it has no bold of its own here.
    thickened: bool,
    colored: bool,
}

impl Face {
    fn new(data: Arc<dyn AsRef<[u8]> + Send + Sync>, index: u32, thickened: bool, colored: bool) -> Option<Self> {
        rustybuzz::Face::from_slice((*data).as_ref(), index)?;
        #[cfg(feature = "pdf")]
        let font = krilla::text::Font::new(data.clone().into(), index)?;
        Some(Self(Arc::new(Inner {
            data,
            index,
            #[cfg(feature = "pdf")]
            font,
            thickened,
            colored,
        })))
    }

    /// For shaping.
    pub fn shaper(&self) -> rustybuzz::Face<'_> {
        rustybuzz::Face::from_slice((*self.0.data).as_ref(), self.0.index).expect("it was read when the face was made")
    }

    /// For embedding.
    #[cfg(feature = "pdf")]
    pub fn font(&self) -> krilla::text::Font {
        self.0.font.clone()
    }

    /// Whether it has to be drawn heavier to look bold.
    pub fn is_thickened(&self) -> bool {
        self.0.thickened
    }

    /// Whether its glyphs bring their own colours.
    pub fn is_colored(&self) -> bool {
        self.0.colored
    }

    /// Whether both are one.
    pub fn is(&self, other: &Face) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn covers(&self, text: &str) -> bool {
        let Ok(face) = ttf_parser::Face::parse((*self.0.data).as_ref(), self.0.index) else { return false };
        text.chars().all(|c| is_unseen(c) || face.glyph_index(c).is_some())
    }
}

/// Joiners, selectors and marks of direction: they change their neighbours and have no shape themselves.
pub fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// The fonts of this machine. Cheap to clone.
#[derive(Clone)]
pub struct Fonts(Arc<Shelf>);

struct Shelf {
    regular: Face,
    bold: Face,
    folders: Vec<PathBuf>,
    /// Font files by their name; looked for once.
    files: OnceLock<HashMap<String, PathBuf>>,
    read: Mutex<HashMap<(String, u32), Option<Face>>>,
}

impl std::fmt::Debug for Fonts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fonts").field("folders", &self.0.folders).finish_non_exhaustive()
    }
}

impl Fonts {
    /// Looks in `folders` and the folders within them, the first time that a text needs it.
    pub fn new(folders: &[String]) -> Self {
        let shipped = |bytes: &'static [u8]| Face::new(Arc::new(bytes), 0, false, false).expect("our own font is one");
        Self(Arc::new(Shelf {
            regular: shipped(REGULAR),
            bold: shipped(BOLD),
            folders: folders.iter().map(PathBuf::from).collect(),
            files: OnceLock::new(),
            read: Mutex::default(),
        }))
    }

    /// The face that is used wherever it has the letters, and for the boxes of those that nobody has.
    pub fn plain(&self, bold: bool) -> Face {
        if bold { self.0.bold.clone() } else { self.0.regular.clone() }
    }

    /// A face that has every character of a cluster; None: nobody has. `language` decides how a Han
    /// character looks, which Japan and Korea draw differently.
    pub fn of(&self, cluster: &str, bold: bool, language: Language) -> Option<Face> {
        let pictured = cluster.contains('\u{fe0f}') || cluster.chars().any(is_picture);
        let emoji = || self.file(EMOJI, 0, true).filter(|face| face.covers(cluster));
        if pictured && let Some(face) = emoji() {
            return Some(face);
        }
        let plain = self.plain(bold);
        if plain.covers(cluster) {
            return Some(plain);
        }
        let script = cluster.chars().map(|c| c.script()).find(|s| !matches!(s, Script::Common | Script::Inherited));
        let of_script = script.and_then(|script| {
            let name = script.full_name().replace('_', "");
            let file = |weight: &str| self.file(&format!("NotoSans{name}-{weight}.ttf"), 0, false);
            let own_bold = if bold { file("Bold") } else { None };
            own_bold.or_else(|| file("Regular")).filter(|face| face.covers(cluster))
        });
        // The order of faces in Debian's collection: Japanese, Korean, then the Chinese ones.
        let index = u32::from(language == Language::Ko);
        of_script
            .or_else(|| self.file(CJK, index, false).filter(|face| face.covers(cluster)))
            .or_else(|| SYMBOLS.iter().find_map(|name| self.file(name, 0, false).filter(|face| face.covers(cluster))))
            .or_else(emoji)
    }

    fn file(&self, name: &str, index: u32, colored: bool) -> Option<Face> {
        let key = (name.to_owned(), index);
        let mut read = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(&key) {
            return known.clone();
        }
        let path = self.0.files.get_or_init(|| find(&self.0.folders)).get(name);
        let face = path.and_then(|path| {
            // A collection's other faces share its bytes.
            let shared = read.iter().find(|((n, _), face)| n == name && face.is_some());
            let data = match shared.and_then(|(_, face)| face.as_ref()) {
                Some(face) => face.0.data.clone(),
                None => Arc::new(fs::read(path).ok()?),
            };
            Face::new(data, index, !colored && !name.contains("-Bold"), colored)
        });
        read.insert(key, face.clone());
        face
    }
}

/// Characters that are pictures unless they are told not to be. (Digits and ☎ are text until U+FE0F says otherwise.)
fn is_picture(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f7e0}'..='\u{1f7eb}'
        | '\u{1f90c}'..='\u{1faff}')
}

fn find(folders: &[PathBuf]) -> HashMap<String, PathBuf> {
    let mut found = HashMap::new();
    for folder in folders {
        look_in(folder, DEPTH_MAX, &mut found);
    }
    if !found.contains_key(CJK) {
        tracing::warn!(
            "no font for Chinese, Japanese and Korean is installed (Debian: fonts-noto-cjk): tickets show numbers instead of letters"
        );
    }
    found
}

fn look_in(folder: &Path, depth: usize, found: &mut HashMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            if depth > 0 {
                look_in(&path, depth - 1, found);
            }
        } else if let Some(name) = path.file_name().and_then(|n| n.to_str())
            && name.starts_with("Noto")
        {
            found.entry(name.to_owned()).or_insert(path);
        }
    }
}
