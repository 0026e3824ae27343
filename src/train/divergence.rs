//! Diagnosis of a diverged run: which number was the first that is not finite.

use super::batch::Labels;
use super::micro_batch::MicroBatchGradients;
use super::trainer::WeightedBatch;
use crate::net::FloatNet;

/// Names the cause as far back as it can be traced: a weight or target that is not finite, or a loss or gradient
/// computed from finite ones.
#[must_use]
pub fn explain(
    net: &FloatNet,
    batches: &[WeightedBatch<'_>],
    losses: &[f64],
    gradients: &MicroBatchGradients,
) -> String {
    explain_inputs(net, broken_target(batches), losses).unwrap_or_else(|| explain_gradient(net, gradients))
}

/// As [`explain`], where of the gradients only their length is known. `target`: see [`broken_target`].
#[must_use]
pub fn explain_losses(net: &FloatNet, target: Option<(usize, f32)>, losses: &[f64]) -> String {
    explain_inputs(net, target, losses).unwrap_or_else(|| "a gradient is not finite".into())
}

/// A target that is not finite, with the number of its sample in the batch.
#[must_use]
pub fn broken_target(batches: &[WeightedBatch<'_>]) -> Option<(usize, f32)> {
    batches.iter().find_map(|weighted| match weighted.batch.labels {
        Labels::Eval(targets) => targets.iter().copied().enumerate().find(|(_, target)| !target.is_finite()),
        Labels::Pqr => None,
    })
}

fn explain_inputs(net: &FloatNet, target: Option<(usize, f32)>, losses: &[f64]) -> Option<String> {
    let explain_target = || target.map(|(sample, value)| format!("the batch's targets[{sample}] is {value}"));
    explain_weight(net).or_else(explain_target).or_else(|| explain_loss(net, losses))
}

/// Whether all losses and gradients are finite. The gradients of the feature transformer's weights need no check: a
/// divergence shows in the gradient of its biases.
#[must_use]
pub fn all_finite(losses: &[f64], gradients: &MicroBatchGradients) -> bool {
    let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    losses.iter().all(|loss| loss.is_finite())
        && finite(&gradients.ft_biases)
        && gradients.layers.iter().all(|values| finite(values))
}

/// `NAME[ROW, COLUMN] is VALUE` of the first value that is not finite.
fn first_not_finite(name: &str, dimensions: &[usize], values: &[f32]) -> Option<String> {
    let index = values.iter().position(|value| !value.is_finite())?;
    let element = match dimensions {
        [_, columns] => format!("{name}[{}, {}]", index / columns, index % columns),
        _ => format!("{name}[{index}]"),
    };
    Some(format!("{element} is {}", values[index]))
}

fn explain_weight(net: &FloatNet) -> Option<String> {
    let tensors = net.shape.tensors().into_iter().zip(net.tensors());
    tensors.into_iter().find_map(|((name, dimensions), values)| first_not_finite(&name, &dimensions, values))
}

fn explain_loss(net: &FloatNet, losses: &[f64]) -> Option<String> {
    let loss = losses.iter().find(|loss| !loss.is_finite())?;
    let largest = |values: &[f32]| values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let tensors = net.shape.tensors().into_iter().zip(net.tensors());
    let all = tensors.into_iter().map(|((name, _), values)| (name, largest(values)));
    let (name, weight) = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    Some(format!("the loss is {loss}, though all weights are finite (the largest, {weight}, is in {name})"))
}

fn explain_gradient(net: &FloatNet, gradients: &MicroBatchGradients) -> String {
    let names = net.shape.tensors().into_iter().skip(1);
    let gradients = std::iter::once(&gradients.ft_biases).chain(&gradients.layers);
    names
        .zip(gradients)
        .find_map(|((name, dimensions), values)| {
            first_not_finite(&format!("the gradient of {name}"), &dimensions, values)
        })
        .unwrap_or_else(|| "a number is not finite".into())
}
