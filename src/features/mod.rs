//! From a few lines of TOML to encoders.
//!
//! [`syntax`] reads the expression language; [`definition`] reads files, [`library`] finds them, [`selection`] keeps a part;
//! [`resolve`] gives every name its meaning ([`spec`]); [`reference`] encodes by the book and [`compiled`] fast; [`set`] is
//! what the rest of fsbench uses. [`analysis`], [`factor`], [`explain`] and [`warnings`] tell what a definition implies.

pub mod analysis;
mod buckets;
mod catalogue;
mod compiled;
mod definition;
mod encoder;
mod error;
mod explain;
mod factor;
mod identity;
mod library;
mod reference;
mod resolve;
mod selection;
mod set;
mod spec;
mod syntax;
mod warnings;

/// The reference of the feature-set language, in Markdown. Tests run its examples.
pub const LANGUAGE_REFERENCE: &str = include_str!("LANGUAGE.md");

pub use catalogue::{ShippedSet, shipped_sets};
pub use compiled::RowBuffer;
pub use encoder::{Delta, EncodeScratch, Encoder};
pub use error::{Diagnostic, FeatureError};
pub use explain::{ExplainedFeature, FeatureText};
pub use factor::{FactorCheck, Factors};
pub use identity::Identity;
pub use library::{available_names, is_name};
pub use selection::index_ranges;
pub use set::{Block, FeatureSet};
pub use spec::{BlockSpec, FactorSpec, Multiplicity};
