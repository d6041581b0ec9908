//! Where there is no printer of tickets: a PDF a job, as wide as the roll would be, for another printer or a person.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use fullhouse_paper::raster::Bitmap;

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
