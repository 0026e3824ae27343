//! `fsbench measure updates`: counts feature transformer rows per move.

use super::{Data, Failure, ResultFormat, failure, percent, print, table};
use crate::features::FeatureSet;
use crate::measure::updates;
use crate::record::{MoveCounts, UpdatesRecord};

/// Count the feature transformer rows that moves add, remove and refresh
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression
    set: String,
    #[command(flatten)]
    data: Data,
    /// Read only the first N games
    #[arg(long, value_name = "N")]
    games: Option<u64>,
    /// Also count every legal move of each position
    #[arg(long)]
    legal: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let set = FeatureSet::resolve(&arguments.set).map_err(Failure::request)?;
    let (record, summary) =
        updates(&set, &arguments.data.path()?, arguments.games, arguments.legal).map_err(failure)?;
    print(arguments.format, &record, &summary, text)
}

fn text(record: &UpdatesRecord) -> String {
    let head = format!(
        "{}: {} features, {} games, {} moves\nactive features: mean {:.2}, at most {}, density {}\n",
        record.name,
        record.num_features,
        record.games,
        record.moves,
        record.active_mean,
        record.active_max,
        percent(record.density),
    );
    let header = ["per move", "added", "removed", "refreshes", "rows update", "rows refresh", "rows cache"];
    let row = |name: &str, counts: &MoveCounts| {
        let number = |value: f64| format!("{value:.2}");
        vec![
            name.into(),
            number(counts.added),
            number(counts.removed),
            percent(counts.refreshes),
            number(counts.rows_update),
            number(counts.rows_refresh),
            number(counts.rows_cache),
        ]
    };
    let mut rows = vec![row("mover", &record.mover), row("other", &record.other), row("mean", &record.mean)];
    if let Some(legal) = &record.legal {
        rows.push(row("legal: mover", &legal.mover));
        rows.push(row("legal: other", &legal.other));
        rows.push(row("legal: mean", &legal.mean));
    }
    head + &table(&header, rows)
}
