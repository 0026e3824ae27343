//! `fsbench export`.

pub mod network;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    C,
}
