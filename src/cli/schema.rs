//! `fsbench schema`: the JSON schemas of the documents that commands print, derived from the types that they print.

use anyhow::anyhow;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::print::print_json;
use super::{
    Failure, bench, dataset, define, delta, elo, encode, eval, explain, export, match_document, match_shard, net,
};
use super::{openings, report, runs, select, show};
use crate::experiment::slurm::SlurmStatus;
use crate::experiment::{ListedStep, RunEstimate};
use crate::features::SetSummary;
use crate::record::{
    ActivityRecord, DatasetStats, ErrorRecord, ImportanceRecord, LossRecord, PositionRecord, SpeedRecord, UpdatesRecord,
};
use crate::report::TableDocument;
use crate::service::{BenchReport, Description};
use crate::train::TrainOutcome;

/// Print the JSON schema of a document that a command prints with --format json
///
/// Schemas follow JSON Schema 2020-12. A document has the required fields and no field that its schema lacks.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The document; without it, documents and their commands are listed
    document: Option<String>,
}

type RootSchema = fn(SchemaGenerator) -> Schema;

/// Every document's name, its command and its schema.
const DOCUMENTS: [(&str, &str, RootSchema); 41] = [
    ("bench", "fsbench bench", root::<bench::BenchDocument>),
    ("dataset-build", "fsbench dataset build, fsbench dataset merge", root::<dataset::build::BuildDocument<'_>>),
    ("dataset-convert", "fsbench dataset convert", root::<dataset::convert::ConvertDocument<'_>>),
    ("dataset-generate", "fsbench dataset generate", root::<dataset::generate::GenerateDocument<'_>>),
    ("dataset-info", "fsbench dataset info", root::<crate::pipeline::FileInfo>),
    ("dataset-shard", "fsbench dataset build --shard", root::<dataset::build::ShardDocument<'_>>),
    ("dataset-stats", "fsbench dataset stats", root::<DatasetStats>),
    ("dataset-verify", "fsbench dataset verify", root::<dataset::verify::VerifyDocument<'_>>),
    ("define", "fsbench define", root::<SetSummary<'_>>),
    ("define-list", "fsbench define --list", root::<define::SetList>),
    ("delta", "fsbench delta", root::<delta::DeltaDocument>),
    ("elo", "fsbench elo", root::<elo::EloDocument>),
    ("encode", "fsbench encode", root::<encode::EncodeDocument>),
    ("eval", "fsbench eval", root::<eval::ScoredPosition<'_>>),
    ("explain", "fsbench explain", root::<explain::ExplainDocument<'_>>),
    ("export", "fsbench export", root::<export::ExportDocument<'_>>),
    ("match", "fsbench match", root::<match_document::MatchDocument>),
    ("match-shard", "fsbench match --shard", root::<match_shard::MatchShardDocument>),
    ("measure-activity", "fsbench measure activity", root::<ActivityRecord>),
    ("measure-error", "fsbench measure error", root::<ErrorRecord>),
    ("measure-importance", "fsbench measure importance", root::<ImportanceRecord>),
    ("measure-loss", "fsbench measure loss", root::<LossRecord>),
    ("measure-speed", "fsbench measure speed", root::<SpeedRecord>),
    ("measure-updates", "fsbench measure updates", root::<UpdatesRecord>),
    ("net-convert", "fsbench net convert", root::<net::convert::NetworkConversion>),
    ("net-info", "fsbench net info", root::<net::info::NetworkInfo>),
    ("openings", "fsbench openings", root::<openings::OpeningsOutput<'_>>),
    ("report", "fsbench report, fsbench run, fsbench search, fsbench loop", root::<report::ReportDocument<'_>>),
    ("report-tables", "fsbench report --tables", root::<TableDocument>),
    ("run-plan", "fsbench run --plan, fsbench search --plan, fsbench loop --plan", root::<RunEstimate>),
    ("run-slurm", "fsbench run --on slurm, fsbench search --on slurm", root::<SlurmStatus>),
    ("run-steps", "fsbench run --list-steps, fsbench search --list-steps", root::<Vec<ListedStep>>),
    ("runs", "fsbench runs", root::<runs::RunList>),
    ("samples-service", "the first line of fsbench samples-service", root::<Description>),
    ("select", "fsbench select", root::<select::SelectDocument<'_>>),
    ("service-bench", "fsbench samples-service --bench", root::<BenchReport>),
    ("show", "fsbench show SET", root::<show::ShowDocument>),
    ("show-network", "fsbench show NET --neuron, fsbench show NET --best", root::<show::network::NetworkDocument<'_>>),
    ("show-position", "fsbench show NET --position", root::<PositionRecord>),
    ("train", "fsbench train", root::<TrainOutcome>),
    ("trains", "fsbench train with several seeds", root::<Vec<TrainOutcome>>),
];

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(wanted) = &arguments.document else {
        for (name, command, _) in DOCUMENTS {
            outln!("{name:20}{command}")?;
        }
        return Ok(());
    };
    match schema(wanted) {
        Some(schema) => print_json(&schema),
        None => Err(Failure::Request(anyhow!("there is no document {wanted:?}: `fsbench schema` lists them"))),
    }
}

/// A document's schema.
fn schema(document: &str) -> Option<Schema> {
    let (_, command, root) = DOCUMENTS.iter().find(|(name, ..)| *name == document)?;
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(for_readers_of_json);
    let mut schema = root(settings.into_generator());
    schema.insert("title".into(), Value::from(*command));
    Some(schema)
}

fn root<T: schemars::JsonSchema>(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<T>()
}

/// Says what a program prints where a comment in the source says what a type holds. Fields that a schema does not name
/// do not occur; a field that may be absent is never null.
fn for_readers_of_json(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            let Some(property) = property.as_object_mut() else { continue };
            if !is_required(name) {
                describe(property, "absent");
                forbid_null(property);
            }
        }
        if !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".into(), Value::Bool(false));
        }
    }
    describe(object, "null");
    transform_subschemas(&mut for_readers_of_json, schema);
}

/// Names the JSON of `None` in a description, and leaves out the example of the library's use that may end it.
fn describe(schema: &mut Map<String, Value>, none: &str) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        let text = description.split("```").next().unwrap_or_default();
        *description = text.trim_end().replace("`None`", none);
    }
}

fn forbid_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
    }
    if let Some(Value::Array(schemas)) = schema.get_mut("anyOf") {
        schemas.retain(|schema| schema.get("type") != Some(&Value::from("null")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields without a description of their own or of their type, as `Type.field`.
    fn undescribed(at: &str, schema: &Value, definitions: &Value, found: &mut Vec<String>) {
        let describes = |schema: &Value| {
            let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
            schema["description"].is_string() || name.is_some_and(|name| definitions[name]["description"].is_string())
        };
        let properties = schema["properties"].as_object();
        // A variant of an enum is an object of one property, whose description is the variant's.
        let is_variant = describes(schema) && properties.is_some_and(|properties| properties.len() == 1);
        for (name, property) in properties.into_iter().flatten() {
            let at = format!("{at}.{name}");
            let mut alternatives = property["anyOf"].as_array().into_iter().flatten();
            let is_described = is_variant || describes(property) || describes(&property["items"]);
            if !is_described && !alternatives.any(describes) {
                found.push(at.clone());
            }
            undescribed(&at, property, definitions, found);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for alternative in schema[keyword].as_array().into_iter().flatten() {
                undescribed(at, alternative, definitions, found);
            }
        }
        if schema["items"].is_object() {
            undescribed(at, &schema["items"], definitions, found);
        }
    }

    #[test]
    fn every_field_has_a_description() {
        let mut found = Vec::new();
        for (document, ..) in DOCUMENTS {
            let schema = schema(document).expect("a document").to_value();
            undescribed(document, &schema, &schema["$defs"], &mut found);
            for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
                undescribed(name, definition, &schema["$defs"], &mut found);
            }
        }
        found.sort();
        found.dedup();
        assert!(found.is_empty(), "{} fields: {found:?}", found.len());
    }
}
