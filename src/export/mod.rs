//! `fsbench export`.

pub mod network;
