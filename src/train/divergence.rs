//! Which number ended a run that diverged.

use super::model::Part;
use super::shard::Shard;
use crate::net::FloatNet;
use crate::train::batch::Labels;

/// What is not finite, as far back as it can be followed: a weight, a target, or the losses or gradients that finite ones
/// gave.
#[must_use]
pub fn explain(net: &FloatNet, parts: &[Part<'_>], losses: &[f64], sum: &Shard) -> String {
    known(net, parts, losses).unwrap_or_else(|| gradient(net, sum))
}

/// As [`explain`], for whoever knows of the gradient only that it is not finite.
#[must_use]
pub fn explain_losses(net: &FloatNet, parts: &[Part<'_>], losses: &[f64]) -> String {
    known(net, parts, losses).unwrap_or_else(|| "a gradient is not finite".into())
}

fn known(net: &FloatNet, parts: &[Part<'_>], losses: &[f64]) -> Option<String> {
    weight(net).or_else(|| target(parts)).or_else(|| loss(net, losses))
}

/// Whether losses and gradients are numbers. What goes wrong behind the accumulators shows in their biases' gradient.
#[must_use]
pub fn all_finite(losses: &[f64], sum: &Shard) -> bool {
    let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    losses.iter().all(|loss| loss.is_finite())
        && finite(&sum.ft_biases)
        && sum.layers.iter().all(|values| finite(values))
}

/// `number N of NAME is VALUE` of the first number that is none; `row` columns make a row.
fn first(name: &str, dimensions: &[usize], values: &[f32]) -> Option<String> {
    let at = values.iter().position(|value| !value.is_finite())?;
    let place = match dimensions {
        [_, columns] => format!("{name}[{}, {}]", at / columns, at % columns),
        _ => format!("{name}[{at}]"),
    };
    Some(format!("{place} is {}", values[at]))
}

fn weight(net: &FloatNet) -> Option<String> {
    let tensors = net.shape.tensors().into_iter().zip(net.tensors());
    tensors.into_iter().find_map(|((name, dimensions), values)| first(&name, &dimensions, values))
}

fn target(parts: &[Part<'_>]) -> Option<String> {
    parts.iter().find_map(|part| match part.batch.labels {
        Labels::Eval(targets) => first("the batch's targets", &[], targets),
        Labels::Pqr => None,
    })
}

fn loss(net: &FloatNet, losses: &[f64]) -> Option<String> {
    let loss = losses.iter().find(|loss| !loss.is_finite())?;
    let largest = |values: &[f32]| values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let tensors = net.shape.tensors().into_iter().zip(net.tensors());
    let all = tensors.into_iter().map(|((name, _), values)| (name, largest(values)));
    let (name, weight) = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    Some(format!("the loss is {loss}, though all weights are finite (the largest, {weight}, is in {name})"))
}

fn gradient(net: &FloatNet, sum: &Shard) -> String {
    let names = net.shape.tensors().into_iter().skip(1);
    let gradients = std::iter::once(&sum.ft_biases).chain(&sum.layers);
    names
        .zip(gradients)
        .find_map(|((name, dimensions), values)| first(&format!("the gradient of {name}"), &dimensions, values))
        .unwrap_or_else(|| "a number is not finite".into())
}
