//! A page of pictures of neurons.

use std::fmt::Write;

use super::figures::Figure;
use super::html::{STYLE, escape};
use super::plot::PlotError;
use crate::record::NeuronWeights;

/// A self-contained page with a picture per neuron, in the order given.
///
/// # Errors
/// When a picture cannot be drawn.
pub fn gallery(network: &str, neurons: &[NeuronWeights]) -> Result<String, PlotError> {
    let mut body = String::new();
    for weights in neurons {
        let figure = Figure::neuron(network, weights);
        // Writing to a string cannot fail.
        let _ = writeln!(body, "<figure id=\"{}\">\n{}</figure>", figure.name(), figure.inline_svg()?);
    }
    let title = escape(network);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} – neurons</title>\n\
         <style>{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         <p>Weights of {} neurons of the feature transformer, in units of the activation's upper bound.</p>\n\
         {body}</main>\n</body>\n</html>\n",
        neurons.len()
    ))
}
