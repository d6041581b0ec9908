//! The migrations are part of the binary: a new one makes it anew.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
