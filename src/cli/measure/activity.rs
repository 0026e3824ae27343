//! `fsbench measure activity`: counts active, saturated and dead neurons.

use super::{Data, Failure, NetArgument, ResultFormat, failure, percent, print, table};
use crate::measure::activity;
use crate::record::{ActivityRecord, LayerActivity};

/// Count active, saturated and dead neurons
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    data: Data,
    /// Read only the first N games
    #[arg(long, value_name = "N")]
    games: Option<u64>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    net: NetArgument,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = arguments.net.load()?;
    let (record, summary) = activity(&file, &arguments.data.path()?, arguments.games).map_err(failure)?;
    print(arguments.format, &record, &summary, text)
}

fn text(record: &ActivityRecord) -> String {
    let head = format!("{}: {} positions\n", record.name, record.positions);
    let row = |bucket: String, layer: &LayerActivity| {
        vec![
            bucket,
            layer.layer.clone(),
            layer.neurons.to_string(),
            percent(layer.active),
            percent(layer.saturated),
            layer.never_active.to_string(),
        ]
    };
    let all = record.layers.iter().map(|layer| row("all".into(), layer));
    let buckets = record.buckets.iter().flat_map(|bucket| {
        let name = format!("{} ({})", bucket.bucket, bucket.positions);
        bucket.layers.iter().map(move |layer| row(name.clone(), layer))
    });
    head + &table(&["bucket", "layer", "neurons", "positive", "saturated", "never positive"], all.chain(buckets))
}
