//! The course of a learning loop: a table of its iterations, figures of Elo, positions and losses, and the outcome in
//! words.

use super::figures::{Chart, Figure, Series, SeriesStyle, SetColors};
use super::numbers::{MISSING, duration, number};
use super::plain_table::PlainTable;
use crate::record::{GateVerdict, LoopIteration, LoopMatch, LoopRecord};
use crate::statistics::Estimate;
use crate::statistics::pentanomial::Interval;
use crate::text::grouped;

/// What the names of the figures begin with.
const FIGURE: &str = "loop-";

/// The outcome, and what the numbers of the table mean.
pub(super) fn sentences(record: &LoopRecord) -> Vec<String> {
    let done = record.iterations.iter().filter(|one| one.gate.is_some()).count();
    let accepted = record.iterations.iter().filter(|one| one.is_accepted()).count();
    let ended = record.stopped.as_ref().map_or("It goes on.".to_owned(), |why| format!("It ended: {why}."));
    let time = duration(record.seconds.total);
    let iterations = if done == 1 { "1 iteration is".to_owned() } else { format!("{done} iterations are") };
    let mut sentences = vec![format!(
        "The first games are those of {}. {iterations} done, in {time} of all steps; {accepted} of their networks \
         won the gate. {ended}",
        record.start
    )];
    if let Some(last) = &record.last {
        sentences.push(format!(
            "Iteration {} against iteration {}: Elo {} in {} games that decided nothing before.",
            last.player,
            last.opponent,
            interval(last.elo),
            grouped(&last.games.total().to_string()),
        ));
    }
    sentences.push(
        "Chained Elo is the sum over the gates since the first accepted network, or the start before there is one. A \
         gate stops when it has decided, which exaggerates its Elo; the last match is the better measure of the whole \
         chain."
            .into(),
    );
    sentences
}

fn interval(elo: Interval) -> String {
    let whole = |value| number(value, 0, true);
    format!("{} ({} to {})", whole(elo.value), whole(elo.low), whole(elo.high))
}

/// A row for each iteration.
pub(super) fn table(record: &LoopRecord) -> PlainTable {
    let headings = [
        "iteration",
        "player",
        "games",
        "positions",
        "draws, %",
        "plies a game",
        "trained on",
        "samples",
        "loss",
        "training loss",
        "gate: games",
        "Elo",
        "verdict",
        "chained Elo",
        "time",
    ];
    let chain = chained(record);
    PlainTable {
        title: "Iterations".into(),
        headings: headings.map(String::from).to_vec(),
        rows: record.iterations.iter().map(|one| row(one, &chain)).collect(),
        is_detail: false,
    }
}

fn row(one: &LoopIteration, chain: &[(u32, Estimate)]) -> Vec<String> {
    let missing = || MISSING.to_owned();
    let count = |count: u64| grouped(&count.to_string());
    let player = if one.player == 0 { "start".to_owned() } else { one.player.to_string() };
    let mut row = vec![one.number.to_string(), player];
    match &one.games {
        None => row.extend([missing(), missing(), missing(), missing()]),
        Some(played) => {
            let games = played.games.max(1) as f64;
            let draws = played.results.get("1/2-1/2").copied().unwrap_or_default();
            let share = 100.0 * f64::from(draws) / games;
            row.extend([count(played.games), count(played.positions)]);
            row.extend([number(share, 0, false), number(played.plies as f64 / games, 0, false)]);
        }
    }
    match &one.training {
        None => row.extend([missing(), missing(), missing(), missing()]),
        Some(training) => {
            let from = if training.first == one.number { String::new() } else { format!("{}–", training.first) };
            row.extend([format!("{from}{}", one.number), count(training.samples)]);
            row.extend([number(training.validation_loss, 5, false), number(training.train_loss, 5, false)]);
        }
    }
    match &one.gate {
        None => row.extend([missing(), missing(), missing()]),
        Some(gate) => {
            let verdict = gate.verdict.map_or(MISSING, GateVerdict::name);
            row.extend([count(gate.games.total()), interval(gate.elo), verdict.to_owned()]);
        }
    }
    let elo = chain.iter().find(|(number, _)| *number == one.number).map(|(_, elo)| *elo);
    row.push(elo.map_or_else(missing, |elo| {
        let (low, high) = elo.bounds();
        interval(Interval { value: elo.mean, low, high })
    }));
    row.push(if one.gate.is_some() { duration(one.seconds) } else { missing() });
    row
}

/// Elo of each network that has played, by the gates in between, against the first accepted one or, as long as there is
/// none, against the start, which is iteration 0. Empty before the first gate.
fn chained(record: &LoopRecord) -> Vec<(u32, Estimate)> {
    let gates: Vec<&LoopMatch> = record.iterations.iter().filter_map(|one| one.gate.as_ref()).collect();
    if gates.is_empty() {
        return Vec::new();
    }
    // Elo and the variance of its error.
    let of_gate = |gate: &LoopMatch| (gate.elo.value, ((gate.elo.high - gate.elo.low) / 2.0).powi(2));
    let first = gates.iter().find(|gate| gate.verdict == Some(GateVerdict::Accepted));
    let start = first.map_or((0.0, 0.0), |gate| (-gate.elo.value, of_gate(gate).1));
    let mut best = start;
    let mut chain = vec![(0, start)];
    for gate in &gates {
        let (elo, variance) = of_gate(gate);
        let is_first = first.is_some_and(|first| first.player == gate.player);
        let sum = if is_first { (0.0, 0.0) } else { (best.0 + elo, best.1 + variance) };
        chain.push((gate.player, sum));
        if gate.verdict == Some(GateVerdict::Accepted) {
            best = sum;
        }
    }
    let estimate = |(elo, variance): (f64, f64)| Estimate {
        mean: elo,
        interval: Some(variance.sqrt()).filter(|half| *half > 0.0),
        count: 1,
    };
    chain.into_iter().map(|(number, sum)| (number, estimate(sum))).collect()
}

/// Elo, positions and losses by iteration, as far as there are any.
pub(super) fn figures(record: &LoopRecord) -> Vec<Figure> {
    let mut figures = Vec::new();
    let chain = chained(record);
    if !chain.is_empty() {
        let is_accepted =
            |number: u32| number == 0 || record.iterations.iter().any(|one| one.number == number && one.is_accepted());
        let of = |name: &str, style, is_wanted: &dyn Fn(u32) -> bool| {
            let own = chain.iter().filter(|(number, _)| is_wanted(*number));
            Series { name: name.to_owned(), style, points: own.map(|(at, elo)| (f64::from(*at), *elo)).collect() }
        };
        let mut series = vec![
            of("accepted", SeriesStyle::Dots, &is_accepted),
            of("not accepted", SeriesStyle::Dots, &|number| !is_accepted(number)),
        ];
        if let Some(last) = &record.last {
            let half = (last.elo.high - last.elo.low) / 2.0;
            let elo = Estimate { mean: last.elo.value, interval: Some(half), count: 1 };
            let points = vec![(f64::from(last.player), elo)];
            series.push(Series { name: "last match".into(), style: SeriesStyle::Dots, points });
        }
        series.retain(|one| !one.points.is_empty());
        series.insert(0, of("chain", SeriesStyle::Line, &is_accepted));
        let is_any_accepted = record.iterations.iter().any(LoopIteration::is_accepted);
        let origin = if is_any_accepted { "the first accepted network" } else { "the start" };
        figures.push(figure("elo", "Elo by iteration", &format!("Elo against {origin}"), series));
    }
    let points = |value: &dyn Fn(&LoopIteration) -> Option<f64>| -> Vec<(f64, Estimate)> {
        let exact = |mean: f64| Estimate { mean, interval: None, count: 1 };
        let with_value = record.iterations.iter().filter_map(|one| Some((f64::from(one.number), exact(value(one)?))));
        with_value.collect()
    };
    let positions = points(&|one| Some(one.games.as_ref()?.positions as f64 / 1e3));
    let trained = points(&|one| Some(one.training.as_ref()?.positions as f64 / 1e3));
    if !positions.is_empty() {
        let series = vec![
            Series { name: "trained on".into(), style: SeriesStyle::Dots, points: trained },
            Series { name: "played".into(), style: SeriesStyle::Columns { width: 0.8 }, points: positions },
        ];
        figures.push(figure("positions", "Positions by iteration", "thousands of positions", series));
    }
    let validation = points(&|one| Some(one.training.as_ref()?.validation_loss));
    let training = points(&|one| Some(one.training.as_ref()?.train_loss));
    if !validation.is_empty() {
        let axis = "loss on the iterations' own games";
        let series = vec![
            Series { name: "validation".into(), style: SeriesStyle::Dots, points: validation },
            Series { name: "training".into(), style: SeriesStyle::Dots, points: training },
        ];
        figures.push(figure("loss", "Losses by iteration", axis, series));
    }
    figures
}

fn figure(name: &str, title: &str, y_axis: &str, mut series: Vec<Series>) -> Figure {
    series.retain(|one| !one.points.is_empty());
    Figure {
        name: format!("{FIGURE}{name}"),
        title: title.into(),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart: Chart::Series { x_axis: "iteration".into(), y_axis: y_axis.into(), series },
    }
}

impl Figure {
    /// Whether it stands beside the table of a loop.
    pub(super) fn is_of_loop(&self) -> bool {
        self.name.starts_with(FIGURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{GameCounts, GeneratedGames, LoopTraining, StageSeconds};
    use crate::units::SortedMap;

    fn gate(player: u32, opponent: u32, elo: f64, verdict: Option<GateVerdict>) -> LoopMatch {
        let games = GameCounts { wins: 40, draws: 20, losses: 40 };
        let elo = Interval { value: elo, low: elo - 30.0, high: elo + 30.0 };
        LoopMatch { player, opponent, games, elo, verdict, seconds: 60.0 }
    }

    fn iteration(number: u32, player: u32, elo: f64, verdict: GateVerdict) -> LoopIteration {
        let results = SortedMap::from_iter([("1-0".to_owned(), 60), ("1/2-1/2".to_owned(), 40)]);
        let hash = String::new();
        let games = GeneratedGames { games: 100, positions: 6_000, plies: 6_800, results, hash, seconds: 20.0 };
        let training = LoopTraining {
            first: number.saturating_sub(1).max(1),
            positions: 12_000,
            samples: 9_000,
            train_loss: 0.012,
            validation_loss: 0.0131,
            baseline_loss: 0.1,
            seconds: 10.0,
        };
        LoopIteration {
            number,
            player,
            games: Some(games),
            training: Some(training),
            gate: Some(gate(number, player, elo, Some(verdict))),
            seconds: 90.0,
        }
    }

    fn record() -> LoopRecord {
        let iterations = vec![
            iteration(1, 0, -20.0, GateVerdict::Rejected),
            iteration(2, 0, 300.0, GateVerdict::Accepted),
            iteration(3, 2, 100.0, GateVerdict::Accepted),
            iteration(4, 3, 5.0, GateVerdict::Undecided),
            LoopIteration { games: None, training: None, gate: None, ..iteration(5, 3, 0.0, GateVerdict::Rejected) },
        ];
        LoopRecord {
            start: "material values".into(),
            iterations,
            last: Some(gate(3, 2, 90.0, None)),
            seconds: StageSeconds { total: 360.0, ..StageSeconds::default() },
            stopped: Some("iteration 4 was the last".into()),
            ..LoopRecord::default()
        }
    }

    #[test]
    fn the_outcome_comes_first() {
        let sentences = sentences(&record());
        assert_eq!(
            sentences[..2].join("\n"),
            "The first games are those of material values. 4 iterations are done, in 6 min 0 s of all steps; 2 of their \
             networks won the gate. It ended: iteration 4 was the last.\nIteration 3 against iteration 2: Elo +90 (+60 \
             to +120) in 100 games that decided nothing before."
        );
    }

    /// The first accepted network has 0; errors add up along the chain, and a network that is not taken adds nothing to
    /// the next one's.
    #[test]
    fn elo_adds_up_along_the_gates() {
        let close = |found: &Estimate, mean: f64, half: Option<f64>| {
            assert!((found.mean - mean).abs() < 1e-9, "{found:?}");
            assert!((found.interval.unwrap_or(0.0) - half.unwrap_or(0.0)).abs() < 1e-9, "{found:?}");
        };
        let chain = chained(&record());
        assert_eq!(chain.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        close(&chain[0].1, -300.0, Some(30.0));
        close(&chain[1].1, -320.0, Some(1800f64.sqrt()));
        close(&chain[2].1, 0.0, None);
        close(&chain[3].1, 100.0, Some(30.0));
        close(&chain[4].1, 105.0, Some(1800f64.sqrt()));
        // Without one that was accepted, all have played the start.
        let rejected = LoopRecord { iterations: vec![iteration(1, 0, -9.0, GateVerdict::Rejected)], ..record() };
        let chain = chained(&rejected);
        close(&chain[0].1, 0.0, None);
        close(&chain[1].1, -9.0, Some(30.0));
        assert!(chained(&LoopRecord::default()).is_empty());
    }

    #[test]
    fn an_iteration_is_a_row() {
        let rows: Vec<String> = table(&record()).rows.iter().map(|row| row.join(" | ")).collect();
        let expected = "3 | 2 | 100 | 6,000 | 40 | 68 | 2–3 | 9,000 | 0.01310 | 0.01200 | 100 | +100 (+70 to +130) | \
                        accepted | +100 (+70 to +130) | 1 min 30 s";
        assert_eq!(rows[2], expected);
        assert_eq!(rows[4], "5 | 3 | – | – | – | – | – | – | – | – | – | – | – | – | –");
    }

    #[test]
    fn figures_are_drawn() {
        let figures = figures(&record());
        let names: Vec<&str> = figures.iter().map(Figure::name).collect();
        assert_eq!(names, ["loop-elo", "loop-positions", "loop-loss"]);
        for figure in figures {
            figure.svg().expect("drawn");
            assert!(figure.is_of_loop());
        }
    }

    #[test]
    fn the_axis_names_the_network_of_elo_0() {
        let axis = |record: &LoopRecord| match &figures(record)[0].chart {
            Chart::Series { y_axis, .. } => y_axis.clone(),
            _ => String::new(),
        };
        assert_eq!(axis(&record()), "Elo against the first accepted network");
        let iterations = vec![iteration(1, 0, -20.0, GateVerdict::Rejected)];
        assert_eq!(axis(&LoopRecord { iterations, ..record() }), "Elo against the start");
    }
}
