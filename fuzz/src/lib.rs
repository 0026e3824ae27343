//! The parts that the fuzz targets share: the checks of each format, and bounds on the memory and time of an input.

#[path = "../checks/mod.rs"]
pub mod checks;

mod bounds;
pub mod mutate;

pub use bounds::bounded;
