//! The user's own figures of what sets cost, in words.

use super::numbers;
use super::summary::SummaryRow;

/// The figures of a comparison's rows, and what they replace; `None` without figures.
pub(super) fn note(rows: &[SummaryRow]) -> Option<String> {
    let mut features = Vec::new();
    let mut costs = Vec::new();
    for SummaryRow { name, own, nanoseconds, .. } in rows {
        if let Some(ns) = own.features_ns {
            let measured = nanoseconds.map(|time| format!(" (measured: {})", numbers::number(time.features, 0, false)));
            features.push(format!("{name} {ns}{}", measured.unwrap_or_default()));
        }
        if let Some(cost) = own.node_cost {
            costs.push(format!("{name} {}", numbers::number(cost, 3, false)));
        }
    }
    let mut sentences = Vec::new();
    if !features.is_empty() {
        sentences.push(format!(
            "finding the features of both perspectives takes, in nanoseconds a move, {}; the time of rows and layers \
             is measured",
            features.join(", ")
        ));
    }
    if !costs.is_empty() {
        sentences.push(format!("a node costs, against the first set's, {}", costs.join(", ")));
    }
    (!sentences.is_empty()).then(|| format!("By your figures: {}.", sentences.join("; ")))
}
