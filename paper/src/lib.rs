//! What stands on paper, whoever prints it: a hub draws PDFs, a till draws dots.
//!
//! A module imports only what stands above it.

#![forbid(unsafe_code)]

pub mod words; // what buyers read on paper and in their mail
pub mod currency; // codes, digits, steps, and amounts as people write them
pub mod fonts; // Noto Sans, and what it lacks
pub mod text; // directions, fallback, shapes
#[cfg(feature = "pdf")]
mod pdf; // a line on a PDF's page
#[cfg(feature = "raster")]
pub mod raster; // a line in dots
