//! Feature sets: from a few lines of TOML to encoders. LANGUAGE.md is the reference of the definition language.
//!
//! `library` finds definitions and `definition` reads them; `syntax` parses expressions, `resolve` turns them into
//! `spec`s, `selection` renumbers. A [`FeatureSet`] is the result; its [`Encoder`] runs the strategies of `compiled`,
//! which `reference` checks. [`analysis`], `factor`, `lifting`, `merging`, `explain`, `warnings` and `summary` derive properties
//! of a set.

pub mod analysis;
mod bucket_expression;
mod buckets;
pub(crate) mod code;
mod compiled;
mod definition;
mod delta;
mod encoder;
mod encoder_kind;
mod error;
mod explain;
mod factor;
mod identity;
mod library;
mod lifting;
pub(crate) mod lower;
mod merging;
pub(crate) mod piece_sums;
mod reference;
mod resolve;
mod row_counts;
mod row_programs;
mod selection;
mod set;
mod source;
pub(crate) mod spec;
mod starting_rows;
mod summary;
pub(crate) mod syntax;
mod warnings;

/// The reference of the feature-set language, in Markdown. Tests run its examples.
pub const LANGUAGE_REFERENCE: &str = include_str!("LANGUAGE.md");

pub use bucket_expression::BucketExpression;
#[cfg(feature = "report")]
pub(crate) use buckets::BucketTable;
pub use code::{RowList, RowVec};
pub use compiled::RowBuffer;
pub use definition::expression_with_files;
#[cfg(feature = "report")]
pub(crate) use definition::{Composition, Summand, WrittenBlock};
pub use delta::Delta;
pub use encoder::{EncodeScratch, Encoder};
pub use encoder_kind::EncoderKind;
pub use error::{Diagnostic, FeatureError};
pub use explain::{AxisValue, ExplainedFeature, FeatureText, Place};
pub use factor::{FactorCheck, Factors};
pub use identity::Identity;
pub use library::{ShippedSet, available_names, is_name, shipped_names, shipped_sets};
pub use lifting::{LiftError, lifting};
pub use merging::merging;
pub use row_programs::DeltaState;
pub use selection::index_ranges;
pub use set::{Block, FeatureSet};
pub use spec::{BlockSpec, FactorSpec, Multiplicity};
pub use starting_rows::{RowPart, StartingRows};
pub use summary::{ActiveSummary, AxisSummary, BlockSummary, SetSummary, formula};
pub use syntax::nearest;
