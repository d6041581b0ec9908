//! The fan's page, from memory: read once at the start, compressed once, never looked up on the disk
//! again, so that no request can name a file that is not the page's.

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use axum::{
    body::Body,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

use super::{
    extract::takes_gzip,
    problem::{Code, Problem},
};

const BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 2_000;
/// Folders within folders; a link to a folder above would have no end.
const FOLDERS_MAX: usize = 8;
const PAGE: &str = "/index.html";
/// What the build names after its content never changes.
const HASHED: &str = "/assets/";
/// Paths of the page's own router; each is answered with the page.
const PAGES: [&str; 4] = ["/events", "/orders", "/signin", "/staff"];

struct File {
    kind: &'static str,
    etag: String,
    plain: Bytes,
    /// Left out where it would not be smaller.
    gzip: Option<Bytes>,
}

/// The built page; empty where only the API is served.
#[derive(Default)]
pub struct Assets {
    files: HashMap<String, File>,
}

impl Assets {
    /// Reads a folder. Empty: no page.
    pub fn load(folder: &str) -> anyhow::Result<Self> {
        let mut assets = Self::default();
        if folder.is_empty() {
            return Ok(assets);
        }
        let root = Path::new(folder);
        // Looked at before anything is read: another folder may hold a whole disk.
        anyhow::ensure!(root.join(&PAGE[1..]).is_file(), "http.assets_dir {folder} has no index.html");
        assets.read(root).with_context(|| format!("http.assets_dir {folder}"))?;
        Ok(assets)
    }

    fn read(&mut self, root: &Path) -> anyhow::Result<()> {
        let mut paths = Vec::new();
        let mut bytes = 0;
        list(root, FOLDERS_MAX, &mut paths, &mut bytes)?;
        for path in paths {
            let name = path.strip_prefix(root)?.to_str().context("a file name that is not UTF-8")?;
            let plain = Bytes::from(std::fs::read(&path)?);
            let etag = format!("\"{}\"", hex(&Sha256::digest(&plain)[..12]));
            let gzip = compress(&plain)?;
            self.files.insert(format!("/{name}"), File { kind: kind(name), etag, plain, gzip });
        }
        Ok(())
    }

    /// What a browser gets at a path that is not the API's.
    pub fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Problem::new(Code::MethodNotAllowed).into_response();
        }
        let is_page = path == "/"
            || PAGES.iter().any(|p| path.strip_prefix(p).is_some_and(|r| r.is_empty() || r.starts_with('/')));
        let name = if is_page { PAGE } else { path };
        let (file, status) = match (self.files.get(name), self.files.get(PAGE)) {
            (Some(file), _) => (file, StatusCode::OK),
            // Somebody followed a link that leads nowhere: the page says so more kindly.
            (None, Some(page)) if accepts_html(headers) => (page, StatusCode::NOT_FOUND),
            _ => return Problem::new(Code::NotFound).into_response(),
        };
        let cache = if name.starts_with(HASHED) && status == StatusCode::OK {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        let about =
            [(header::ETAG, file.etag.as_str()), (header::CACHE_CONTROL, cache), (header::VARY, "accept-encoding")];
        let known = headers.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or("");
        if status == StatusCode::OK && known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag) {
            return (StatusCode::NOT_MODIFIED, about).into_response();
        }
        let mut response = (status, about, [(header::CONTENT_TYPE, file.kind)]).into_response();
        let body = match &file.gzip {
            Some(gzip) if takes_gzip(headers) => {
                response.headers_mut().insert(header::CONTENT_ENCODING, header::HeaderValue::from_static("gzip"));
                gzip
            }
            _ => &file.plain,
        };
        response.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
        if method == Method::GET {
            *response.body_mut() = Body::from(body.clone());
        }
        response
    }
}

/// The files of a folder and of those in it; how many bytes they have.
fn list(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>, bytes: &mut u64) -> anyhow::Result<()> {
    anyhow::ensure!(depth > 0, "folders within folders: this is not a built page");
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = std::fs::metadata(&path)?;
        if metadata.is_dir() {
            list(&path, depth - 1, paths, bytes)?;
            continue;
        }
        *bytes += metadata.len();
        anyhow::ensure!(*bytes <= BYTES_MAX, "more than 64 MiB: this is not a built page");
        paths.push(path);
        anyhow::ensure!(paths.len() <= FILES_MAX, "more than {FILES_MAX} files: this is not a built page");
    }
    Ok(())
}

fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
}

fn compress(plain: &Bytes) -> std::io::Result<Option<Bytes>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    let gzip = encoder.finish()?;
    Ok((gzip.len() < plain.len() / 10 * 9).then(|| gzip.into()))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Assets {
        let folder = std::env::temp_dir().join(format!("fullhouse-assets-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(folder.join("index.html"), "<!doctype html>".repeat(50)).unwrap();
        std::fs::write(folder.join("assets/app-1a2b.js"), "let a = 1;\n".repeat(50)).unwrap();
        let assets = Assets::load(folder.to_str().unwrap()).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        assets
    }

    fn header(response: &Response, name: header::HeaderName) -> &str {
        response.headers().get(name).map_or("", |v| v.to_str().unwrap())
    }

    #[test]
    fn the_page_answers_for_its_own_paths_and_nothing_else_does() {
        let assets = page();
        let get = |path| assets.answer(&Method::GET, path, &HeaderMap::new());
        for path in [
            "/",
            "/events/3",
            "/events/spring-gala",
            "/orders",
            "/orders/1",
            "/signin",
            "/staff/lines/spring-gala",
            "/index.html",
        ] {
            assert_eq!(
                (get(path).status(), header(&get(path), header::CACHE_CONTROL)),
                (StatusCode::OK, "no-cache"),
                "{path}"
            );
        }
        for path in ["/eventsx", "/assets/../index.html", "/../../etc/passwd", "/assets/", "/x.js"] {
            assert_eq!(get(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(assets.answer(&Method::POST, "/", &HeaderMap::new()).status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(
            Assets::load("").unwrap().answer(&Method::GET, "/", &HeaderMap::new()).status(),
            StatusCode::NOT_FOUND
        );
    }

    #[test]
    fn what_is_no_built_page_is_refused_before_it_is_read() {
        let folder = std::env::temp_dir().join(format!("fullhouse-assets-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = || Assets::load(folder.to_str().unwrap()).err().map(|e| format!("{e:#}")).unwrap_or_default();
        assert!(refused().contains("no index.html"), "{}", refused());
        std::fs::write(folder.join("index.html"), "<!doctype html>").unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("round")).unwrap();
        assert!(refused().contains("folders within folders"), "{}", refused());
        std::fs::remove_file(folder.join("round")).unwrap();
        (0..FILES_MAX).for_each(|n| std::fs::write(folder.join(format!("{n}.js")), "").unwrap());
        assert!(refused().contains("more than 2000 files"), "{}", refused());
        std::fs::File::create(folder.join("0.js")).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(refused().contains("more than 64 MiB"), "{}", refused());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_person_who_is_lost_gets_the_page_and_a_404() {
        let assets = page();
        let mut asked = HeaderMap::new();
        asked.insert(header::ACCEPT, "text/html,*/*;q=0.8".parse().unwrap());
        for path in ["/nowhere", "/assets/old-3c4d.js"] {
            let response = assets.answer(&Method::GET, path, &asked);
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            assert_eq!(header(&response, header::CONTENT_TYPE), "text/html; charset=utf-8");
            assert_eq!(header(&response, header::CACHE_CONTROL), "no-cache");
        }
    }

    #[test]
    fn hashed_files_are_immutable_compressed_and_known_again() {
        let assets = page();
        let mut asked = HeaderMap::new();
        asked.insert(header::ACCEPT_ENCODING, "br, gzip;q=0.8".parse().unwrap());
        let response = assets.answer(&Method::GET, "/assets/app-1a2b.js", &asked);
        assert!(header(&response, header::CACHE_CONTROL).contains("immutable"));
        assert_eq!(header(&response, header::CONTENT_ENCODING), "gzip");
        asked.insert(header::IF_NONE_MATCH, header(&response, header::ETAG).parse().unwrap());
        assert_eq!(assets.answer(&Method::GET, "/assets/app-1a2b.js", &asked).status(), StatusCode::NOT_MODIFIED);
        asked.insert(header::ACCEPT_ENCODING, "gzip;q=0".parse().unwrap());
        asked.remove(header::IF_NONE_MATCH);
        assert_eq!(header(&assets.answer(&Method::HEAD, "/assets/app-1a2b.js", &asked), header::CONTENT_ENCODING), "");
    }
}
