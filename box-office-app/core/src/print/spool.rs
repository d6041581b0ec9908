//! Where there is no printer of tickets: a PDF a job, as wide as the roll would be, for another printer or a person.
//!
//! A ticket's PDF is the ticket: whoever copies it has it too. So none lies there for longer than a day. Nobody tells
//! when one was printed; of one that is missed another ticket is given out, as of one that came out torn.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use flate2::{Compression, write::ZlibEncoder};
use fullhouse_paper::raster::Bitmap;
use uuid::Uuid;

/// How long a PDF waits to be fetched.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// Dots a point.
const DOTS_A_POINT: f32 = 203.0 / 72.0;

/// Writes a picture as `NAME.pdf`, whole or not at all. Returns where.
///
/// # Errors
/// The folder can't be written to.
pub fn write(folder: &Path, name: &str, picture: &Bitmap) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (new, path) = (folder.join(format!(".{name}.new")), folder.join(format!("{name}.pdf")));
    let mut file = File::create(&new)?;
    file.write_all(&pdf(picture)?)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    File::open(folder)?.sync_all()?;
    Ok(path)
}

/// Deletes what was written a day ago and more, and nothing else that lies in the folder. What can't be deleted now is
/// tried again with the next one.
pub fn tidy(folder: &Path, now: SystemTime) {
    let Ok(found) = fs::read_dir(folder) else { return };
    for file in found.flatten() {
        let name = file.file_name();
        let ours =
            name.to_str().and_then(|name| name.strip_suffix(".pdf")).is_some_and(|id| Uuid::try_parse(id).is_ok());
        let written = file.metadata().and_then(|about| about.modified());
        // One from the future stays: a clock was wrong, and nobody knows which.
        let old = written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= KEPT_FOR));
        if ours && old {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// One page, one picture.
fn pdf(picture: &Bitmap) -> io::Result<Vec<u8>> {
    let (width, height) = (picture.width() as f32 / DOTS_A_POINT, picture.height() as f32 / DOTS_A_POINT);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(picture.rows())?;
    let packed = packed.finish()?;
    let drawn = format!("q {width:.2} 0 0 {height:.2} 0 0 cm /I Do Q");
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.2} {height:.2}] /Contents 4 0 R \
             /Resources << /XObject << /I 5 0 R >> >> >>"
        )
        .into_bytes(),
        stream("", drawn.as_bytes()),
        stream(
            &format!(
                "/Type /XObject /Subtype /Image /Width {} /Height {} /BitsPerComponent 1 /ColorSpace /DeviceGray \
                 /Decode [1 0] /Filter /FlateDecode",
                picture.width(),
                picture.height()
            ),
            &packed,
        ),
    ];
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(bytes.len());
        bytes.extend(format!("{} 0 obj\n", at + 1).bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let table = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        bytes.extend(format!("{place:010} 00000 n \n").bytes());
    }
    bytes
        .extend(format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1).bytes());
    Ok(bytes)
}

fn stream(dictionary: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("<< {dictionary} /Length {} >>\nstream\n", body.len()).into_bytes();
    bytes.extend(body);
    bytes.extend(b"\nendstream");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_lies_in_the_folder_for_a_day_and_what_others_put_there_stays() {
        let folder = std::env::temp_dir().join(format!("fullhouse-spool-{}", Uuid::now_v7()));
        fs::create_dir(&folder).expect("a folder");
        let now = SystemTime::now();
        let put = |name: &str, written: SystemTime| {
            let path = folder.join(name);
            File::create(&path).and_then(|file| file.set_modified(written)).expect("a file");
            path
        };
        let ours = || format!("{}.pdf", Uuid::now_v7());
        let old = put(&ours(), now - KEPT_FOR);
        let kept = [
            put(&ours(), now - KEPT_FOR + Duration::from_secs(1)),
            put(&ours(), now + Duration::from_secs(3_600)),
            put("season.pdf", now - 3 * KEPT_FOR),
            put(&Uuid::now_v7().to_string(), now - 3 * KEPT_FOR),
        ];
        tidy(&folder, now);
        assert!(!old.exists());
        assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
        fs::remove_dir_all(&folder).expect("it is ours");
        tidy(&folder, now);
    }
}
