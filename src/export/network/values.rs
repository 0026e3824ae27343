//! The values and flags of the templates for one network: its shape's widths and its scheme's scales.

use super::weights::{ALIGNMENT, HEADER, MAGIC};
use super::{ExportedNetwork, LICENCE, describe};
use crate::export::template::TemplateValues;
use crate::net::{Activation, BucketRule, Scheme, Shape, WeightType};
use crate::text::grouped;

impl ExportedNetwork<'_> {
    pub(super) fn values(&self) -> TemplateValues {
        let net = &self.file.net;
        let layout = &self.layout;
        let shape = &net.shape;
        let scheme = &net.scheme;
        let mut values = TemplateValues::default();
        values.set("SET", plain(&self.file.origin.name));
        values.set("SHAPE", plain(&shape.to_string()));
        values.set("SCHEME", plain(&scheme.name));
        values.set("ARCHITECTURE", format!("{:#018x}", self.architecture));
        values.set("MAGIC", String::from_utf8_lossy(MAGIC));
        values.set("HEADER", HEADER);
        values.set("ALIGNMENT", ALIGNMENT);
        values.set("SIZE", layout.size);
        values.set("SIZE_RS", grouped(&layout.size.to_string()).replace(',', "_"));
        let table = describe::layout(layout, shape.buckets.count);
        for (name, text, sign) in [("LAYOUT_RS", &table, "//!"), ("LAYOUT_C", &table, " *")] {
            values.set(name, commented(text, sign));
        }
        values.set("LICENCE_RS", commented(LICENCE, "//!"));
        values.set("LICENCE_C", commented(LICENCE, " *"));
        set_rows(&mut values, layout.narrow, shape);
        set_shape(&mut values, shape);
        set_scheme(&mut values, scheme, shape);
        values
    }
}

/// Text for a comment: in ASCII, without the end of a comment.
fn plain(text: &str) -> String {
    let text = text.replace('×', "x").replace('→', "->").replace("*/", "* /");
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Each line after a comment's sign.
fn commented(text: &str, sign: &str) -> String {
    let line = |line: &str| format!("{sign} {line}").trim_end().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The rows of the feature transformer.
fn set_rows(values: &mut TemplateValues, narrow: usize, shape: &Shape) {
    let features = shape.features as usize;
    let is_narrow = narrow > 0;
    let is_wide = narrow < features;
    values.flag("narrow", is_narrow);
    values.flag("wide", is_wide);
    values.flag("mixed", is_narrow && is_wide);
    values.set("NARROW", narrow);
    let rows = |prefix: &str| {
        let all = format!("{prefix}NUM_FEATURES");
        let first = format!("{prefix}NARROW_FEATURES");
        match (is_narrow, is_wide) {
            (true, true) => (first.clone(), format!("{all} - {first}")),
            _ => (all.clone(), all),
        }
    };
    let (narrow, wide) = rows("");
    let (narrow_c, wide_c) = rows("FSB_");
    values.set("NARROW_ROWS", narrow);
    values.set("WIDE_ROWS", wide);
    values.set("NARROW_ROWS_C", narrow_c);
    values.set("WIDE_ROWS_C", wide_c);
    values.flag("psqt", shape.psqt);
    values.set("AND_PSQT", if shape.psqt { " and PSQT values" } else { "" });
    values.set("AND_PSQT_VALUES", if shape.psqt { " and of PSQT values" } else { "" });
    values.flag("buckets", shape.buckets.count > 1);
    values.flag("rule_expression", shape.buckets.count > 1 && shape.buckets.rule.expression().is_some());
    values.flag("rule_stockfish", shape.buckets.rule == BucketRule::Stockfish);
    values.set("BUCKETS", shape.buckets.count);
}

/// Widths and activations.
fn set_shape(values: &mut TemplateValues, shape: &Shape) {
    values.set("L1", shape.l1);
    let activation = shape.activation;
    for (name, one) in [
        ("relu", Activation::Relu),
        ("crelu", Activation::Crelu),
        ("screlu", Activation::Screlu),
        ("pairwise", Activation::Pairwise),
    ] {
        values.flag(name, activation == one);
    }
    values.flag("multiplies", activation.multiplies());
    let is_pairwise = activation == Activation::Pairwise;
    values.set("ACTIVATIONS", if is_pairwise { "L1 / 2" } else { "L1" });
    values.set("ACTIVATIONS_C", if is_pairwise { "(FSB_L1 / 2u)" } else { "FSB_L1" });
    values.set("ACTIVATIONS_WHY", if is_pairwise { ": products of a neuron of each half" } else { "" });

    let widths = &shape.hidden;
    let concatenated = shape.concatenated && widths.len() == 2;
    let has_first = !widths.is_empty();
    let has_second = widths.len() == 2;
    values.flag("hidden1", has_first);
    values.flag("hidden2", has_second);
    values.flag("concatenated", concatenated);
    values.flag("skip_output", shape.skip);
    values.flag("skip_difference", shape.skip_difference);
    values.flag("skip", shape.skip || shape.skip_difference);
    values.set("SKIP_WHAT", if shape.skip { "The skip output" } else { "The difference of two outputs" });
    values.set("HIDDEN1_OUTPUTS", if shape.skip { "HIDDEN1_OUTPUTS" } else { "HIDDEN1" });
    values.set("HIDDEN1_OUTPUTS_C", if shape.skip { "FSB_HIDDEN1_OUTPUTS" } else { "FSB_HIDDEN1" });
    values.set("HIDDEN1_SUMS_RS", if shape.skip { "&sums[..HIDDEN1]" } else { "&sums" });
    let inputs = match (has_first, has_second) {
        _ if concatenated => "OUTPUT_INPUTS",
        (_, true) => "HIDDEN2_ACTIVATIONS",
        (true, _) => "HIDDEN1_ACTIVATIONS",
        (false, _) => "INPUTS",
    };
    values.set("OUTPUT_INPUTS", inputs);
    values.set("OUTPUT_INPUTS_C", format!("FSB_{inputs}"));
    values.set(
        "LAST",
        match (has_first, has_second) {
            _ if concatenated => "hidden",
            (_, true) => "hidden2",
            (true, _) => "hidden1",
            (false, _) => "inputs",
        },
    );
    let names = [
        ["HIDDEN1", "HIDDEN1_ACTIVATIONS", "HIDDEN1_ACTIVATIONS_C", "HIDDEN1_WHY", "HIDDEN1_FUNCTION"],
        ["HIDDEN2", "HIDDEN2_ACTIVATIONS", "HIDDEN2_ACTIVATIONS_C", "HIDDEN2_WHY", "HIDDEN2_FUNCTION"],
    ];
    for (index, (names, width)) in names.into_iter().zip(widths).enumerate() {
        let [layer, activations, activations_c, why, function] = names;
        let is_dual = shape.hidden_activation(index) == Activation::Dual;
        values.set(layer, width);
        values.set(activations, if is_dual { format!("2 * {layer}") } else { layer.into() });
        let macro_name = format!("FSB_{layer}");
        values.set(activations_c, if is_dual { format!("(2u * {macro_name})") } else { macro_name });
        values.set(why, if is_dual { ": squares and clipped sums" } else { "" });
        values.set(function, shape.hidden_activation(index).name());
    }
    let is_used = |activation| (0..widths.len()).any(|index| shape.hidden_activation(index) == activation);
    values.flag("hidden_crelu", is_used(Activation::Crelu) || is_used(Activation::Dual));
    values.flag("hidden_screlu", is_used(Activation::Screlu));
    values.flag("hidden_dual", is_used(Activation::Dual));
    values.flag("products", is_used(Activation::Screlu) || is_used(Activation::Dual));
}

/// Scales, shifts and limits.
fn set_scheme(values: &mut TemplateValues, scheme: &Scheme, shape: &Shape) {
    let is_i8 = scheme.weights == WeightType::I8;
    values.flag("i8", is_i8);
    values.flag("clips", shape.activation != Activation::Relu);
    values.flag("needs_rows_i8", is_i8 || values.is_set("narrow"));
    values.flag("needs_rows_i16", !is_i8 || values.is_set("wide"));
    values.set("ONE", scheme.one);
    values.flag("accumulator_scales", scheme.accumulator.is_some());
    let accumulator = scheme.accumulator();
    values.set("ACCUMULATOR_SCALE", accumulator.scale);
    values.set("ACCUMULATOR_CLIP", accumulator.clip);
    values.set("ACCUMULATOR_PRODUCT_SHIFT", accumulator.shift);
    values.set("MAX_ACTIVATION", scheme.crelu(i32::MAX));
    values.set("PRODUCT_SHIFT", scheme.product_shift());
    values.set("HIDDEN1_SCALE", scheme.hidden_weight_scale(0));
    values.set("HIDDEN2_SCALE", scheme.hidden_weight_scale(1));
    values.set("HIDDEN1_SHIFT", scheme.rescale_shift(0));
    values.set("HIDDEN2_SHIFT", scheme.rescale_shift(1));
    values.set("HIDDEN1_SUM_SCALE", scheme.hidden_bias_scale(0));
    values.set("OUTPUT_SUM_SCALE", scheme.output_bias_scale());
    values.set("RAW_SCALE", scheme.psqt_scale());
    let rescales_output = is_i8 && scheme.output.is_some();
    values.flag("rescales_output", rescales_output);
    values.flag("output_sum_scale", rescales_output || values.is_set("skip"));
    values.flag("divisor", scheme.divisor.is_some());
    values.flag("raw_scale", rescales_output || scheme.divisor.is_none());
    values.set("DIVISOR", scheme.divisor.unwrap_or(1));
    values.set("NNUE2SCORE", scheme.nnue2score);
    values.set("PAWN_VALUE", scheme.pawn_value);
    values.flag("truncates_parts", scheme.truncates_parts);
}
