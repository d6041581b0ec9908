//! What is on paper, as other programs see it: Poppler's text and picture, ZBar's codes.

use std::path::PathBuf;

use tokio::process::Command;

use crate::run::run;

pub struct Paper {
    file: PathBuf,
}

impl Paper {
    pub async fn new(pdf: &[u8]) -> Self {
        let file = run().await.directory("paper").join("tickets.pdf");
        std::fs::write(&file, pdf).expect("the run's directory is writable");
        Self { file }
    }

    async fn tool(&self, program: &str, args: &[&str]) -> Vec<u8> {
        let folder = self.file.parent().expect("a folder");
        let output = Command::new(program).args(args).current_dir(folder).output().await;
        let output = output.unwrap_or_else(|e| panic!("{program}: {e} (.ci/setup test installs it)"));
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub async fn pages(&self) -> usize {
        let info = String::from_utf8(self.tool("pdfinfo", &["tickets.pdf"]).await).expect("text");
        let line = info.lines().find(|l| l.starts_with("Pages:")).expect("pages");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    }

    /// The text of all pages, without marks of direction.
    pub async fn text(&self) -> String {
        let text = String::from_utf8(self.tool("pdftotext", &["-layout", "tickets.pdf", "-"]).await).expect("UTF-8");
        text.replace(['\u{202a}', '\u{202b}', '\u{202c}', '\u{200e}', '\u{200f}'], "").replace('\u{a0}', " ")
    }

    /// The codes on the pages, read from their pictures.
    pub async fn codes(&self) -> Vec<String> {
        self.tool("pdftoppm", &["-r", "100", "-gray", "-png", "tickets.pdf", "page"]).await;
        let folder = self.file.parent().expect("a folder");
        let files =
            std::fs::read_dir(folder).expect("its folder").flatten().map(|f| f.file_name().into_string().unwrap());
        let mut pages: Vec<String> = files.filter(|f| f.ends_with(".png")).collect();
        pages.sort();
        let mut codes = Vec::new();
        for page in pages {
            let found =
                String::from_utf8(self.tool("zbarimg", &["--quiet", "--raw", "--nodbus", &page]).await).expect("text");
            codes.extend(found.lines().map(str::to_owned));
        }
        codes
    }
}
