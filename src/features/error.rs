//! Errors in definitions, displayed with the source line and a caret.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use thiserror::Error;

use super::library;
use super::syntax::SyntaxError;

/// Why a request does not give a feature set.
#[derive(Debug, Error)]
pub enum FeatureError {
    /// The definition has a mistake.
    #[error("{0}")]
    Definition(Box<Diagnostic>),
    /// No file and no shipped set of this name exists.
    #[error("there is no feature set `{name}`{}", suggestion(.nearest.as_deref(), .searched))]
    UnknownSet { name: String, nearest: Option<String>, searched: Vec<PathBuf> },
    /// No file exists at this path.
    #[error("there is no file `{}`; {hint}", .path.display())]
    NoFile { path: PathBuf, hint: String },
    /// The file at this path does not have a definition's name.
    #[error("`{}` is no definition: the name of a definition's file ends in `.toml`", .0.display())]
    NotToml(PathBuf),
    /// The definition's file cannot be read.
    #[error("cannot read the definition {}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
}

fn suggestion(nearest: Option<&str>, searched: &[PathBuf]) -> String {
    let searched = library::searched_places(searched);
    match nearest {
        Some(name) => format!("; did you mean `{name}`? (looked in {searched})"),
        None => format!(" (looked in {searched})"),
    }
}

/// A message that points at part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub message: String,
    pub text: SourceText,
    /// Byte range in `text`.
    pub span: Range<usize>,
    pub help: Option<String>,
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let snippet = Snippet::source(&*self.text.text)
            .path(&*self.text.origin)
            .annotation(AnnotationKind::Primary.span(self.span.clone()));
        let mut group = Level::ERROR.primary_title(&self.message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let report = Renderer::plain().render(&[group]);
        f.write_str(report.strip_prefix("error: ").unwrap_or(&report))
    }
}

/// A text and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// A path, or a word such as `expression`.
    pub origin: Arc<str>,
    pub text: Arc<str>,
}

impl SourceText {
    pub fn new(origin: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceText {
        SourceText { origin: origin.into(), text: text.into() }
    }

    pub fn error(&self, message: impl Into<String>, span: Range<usize>, help: Option<String>) -> FeatureError {
        let end = span.end.min(self.text.len());
        let start = span.start.min(end);
        let diagnostic = Diagnostic { message: message.into(), text: self.clone(), span: start..end, help };
        FeatureError::Definition(Box::new(diagnostic))
    }
}

/// An expression within a text.
#[derive(Clone, Debug)]
pub struct ExpressionText {
    pub source: SourceText,
    /// Byte of `source` where the expression starts.
    pub offset: usize,
}

impl ExpressionText {
    /// An error at a span of the expression.
    pub fn at(&self, message: impl Into<String>, span: Range<usize>) -> FeatureError {
        self.error(SyntaxError::new(message, span))
    }

    /// The error with its span moved to `source`.
    pub fn error(&self, error: SyntaxError) -> FeatureError {
        let span = error.span.start + self.offset..error.span.end + self.offset;
        self.source.error(error.message, span, error.help)
    }
}
