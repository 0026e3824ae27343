//! The tree of a search: a table a round, a figure of what its changes brought and cost, and the outcome in words.

use super::figures::{Chart, Figure, Series, SeriesStyle, SetColors};
use super::numbers::{MISSING, duration, number, with_interval};
use super::plain_table::PlainTable;
use crate::record::{
    CandidateStage, LastComparison, LossDifference, PlayedCandidate, SearchCandidate, SearchPrediction, SearchRecord,
    SearchRound,
};
use crate::statistics::Estimate;
use crate::statistics::pentanomial::Interval;
use crate::text::grouped;
use crate::units::sort_by;

/// The name of the figure.
const FIGURE: &str = "search";

/// The outcome, and what the numbers of the tables mean.
pub(super) fn sentences(search: &SearchRecord) -> Vec<String> {
    let tried: usize = search.rounds.iter().map(|round| round.candidates.len()).sum();
    let rounds = search.rounds.iter().filter(|round| round.number > 0).count();
    let ended = search.stopped.as_ref().map_or("It goes on.".to_owned(), |why| format!("It ended: {why}."));
    let time = duration(search.seconds);
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    let mut sentences = vec![format!("{tried} sets were tried in {rounds}, in {time} of all steps. {ended}")];
    match &search.winner {
        None => sentences.push(format!("No set has beaten {} yet.", search.first)),
        Some(winner) => {
            let mut text = format!("The best found is {} (winner.toml is its definition).", winner.label);
            let last = winner.last.as_ref().and_then(|last| last.played.as_ref());
            if last.is_some_and(|played| played.elo.low <= 0.0) {
                text += &format!(" It is not shown to be stronger than {}.", search.first);
            }
            if let Some(last) = &winner.last {
                text += &format!(" {}", last_sentence(&search.first, last));
                text += " All other tables and figures of losses take all validation games, those that choices saw \
                         among them.";
            }
            sentences.push(text);
        }
    }
    sentences.push(prediction_sentence(&search.prediction));
    sentences
}

fn last_sentence(first: &str, last: &LastComparison) -> String {
    let mut text = format!("Against {first}, on games and openings that no choice saw:");
    if let Some(loss) = last.loss {
        text += &format!(" loss {}% on {} validation games", percent(loss), grouped(&last.games.to_string()));
    }
    if let Some(PlayedCandidate { games, elo, .. }) = &last.played {
        let and = if last.loss.is_some() { "," } else { "" };
        text += &format!("{and} Elo {} at equal cost in {} games", interval(*elo), grouped(&games.to_string()));
    }
    text + "."
}

fn prediction_sentence(by: &SearchPrediction) -> String {
    let SearchPrediction { loss, loss_error, speed, speed_error, matches, .. } = by;
    let of_percent = |elo: f64| number(elo / 100.0, 1, true);
    let source = match matches {
        0 => "before any match of the search".to_owned(),
        1 => "after 1 match of the search".to_owned(),
        many => format!("after {many} matches of the search"),
    };
    format!(
        "Predicted Elo at equal cost, {source}: {} ± {} for each percent of loss, {} ± {} for twice the speed (standard \
         errors). The prediction orders candidates, matches decide.",
        of_percent(*loss),
        of_percent(*loss_error).trim_start_matches('+'),
        number(*speed, 0, true),
        number(*speed_error, 0, false),
    )
}

/// The loss in percent of the incumbent's, with its interval.
fn percent(loss: LossDifference) -> String {
    let [value, low, high] =
        [0.0, -loss.half_width, loss.half_width].map(|shift| 100.0 * (loss.value + shift).exp_m1());
    with_interval(value, [low, high], 2, "")
}

fn interval(elo: Interval) -> String {
    let whole = |value| number(value, 0, true);
    format!("{} ({} to {})", whole(elo.value), whole(elo.low), whole(elo.high))
}

/// A table a round. Longer names of changes are cut after `longest` characters.
pub(super) fn tables(search: &SearchRecord, longest: usize) -> Vec<PlainTable> {
    let rounds = search.rounds.iter().filter(|round| !round.candidates.is_empty());
    rounds.map(|round| table(round, longest)).collect()
}

fn table(round: &SearchRound, longest: usize) -> PlainTable {
    let headings = [
        "change",
        "came to",
        "features",
        "rows/move",
        "samples",
        "speed, % (estimated)",
        "loss, %",
        "predicted Elo",
        "l1",
        "trained: loss, %",
        "games",
        "Elo",
        "time",
        "why no further",
    ];
    let title = match round.number {
        0 => format!("The experiment's sets against {}", round.incumbent),
        number => format!("Round {number}: changes of {}", round.incumbent),
    };
    PlainTable {
        title: format!("{title} ({})", duration(round.seconds)),
        headings: headings.map(String::from).to_vec(),
        rows: ordered(round).into_iter().map(|candidate| row(candidate, longest)).collect(),
        is_detail: false,
    }
}

/// Those that came farthest first, and of these the ones with the highest estimate.
fn ordered(round: &SearchRound) -> Vec<&SearchCandidate> {
    let mut candidates: Vec<&SearchCandidate> = round.candidates.iter().collect();
    let elo = |candidate: &SearchCandidate| {
        let played = candidate.played.as_ref().map(|played| played.elo.value);
        let predicted = candidate.liftings.last().map(|lifted| lifted.predicted.value);
        (candidate.stage, candidate.liftings.len(), played.or(predicted).unwrap_or(f64::NEG_INFINITY))
    };
    sort_by(&mut candidates, &|one, other| {
        let [(stage, liftings, one), (other_stage, other_liftings, other)] = [elo(one), elo(other)];
        (other_stage, other_liftings).cmp(&(stage, liftings)).then_with(|| other.total_cmp(&one))
    });
    candidates
}

fn row(candidate: &SearchCandidate, longest: usize) -> Vec<String> {
    let or_missing = |text: Option<String>| text.unwrap_or_else(|| MISSING.to_owned());
    let whole = |value: u64| grouped(&value.to_string());
    let SearchCandidate { screen, full, played, .. } = candidate;
    let lifted = candidate.liftings.last();
    let seconds: f64 = candidate.liftings.iter().map(|lifted| lifted.seconds).sum();
    let seconds = seconds + full.as_ref().map_or(0.0, |full| full.seconds);
    let rows = screen.as_ref().and_then(|screen| screen.rows_a_move);
    vec![
        shortened(&candidate.change, longest),
        candidate.stage.name().to_owned(),
        or_missing(screen.as_ref().map(|screen| whole(screen.features))),
        or_missing(rows.map(|rows| number(rows, 1, false))),
        or_missing(lifted.map(|lifted| whole(lifted.samples))),
        or_missing(lifted.map(|lifted| number(faster(lifted.log2_speed), 0, true))),
        or_missing(lifted.map(|lifted| percent(lifted.loss))),
        or_missing(lifted.map(|lifted| interval(lifted.predicted))),
        or_missing(full.as_ref().map(|full| full.l1.to_string())),
        or_missing(full.as_ref().map(|full| percent(full.loss))),
        or_missing(played.as_ref().map(|played| whole(played.games))),
        or_missing(played.as_ref().map(|played| interval(played.elo))),
        duration(seconds),
        candidate.why.clone(),
    ]
}

fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// By how many percent it is faster.
fn faster(log2_speed: f64) -> f64 {
    100.0 * (log2_speed.exp2() - 1.0)
}

/// A candidate's speed and loss against its incumbent's, in percent.
fn point(candidate: &SearchCandidate) -> Option<(f64, Estimate)> {
    let lifted = candidate.liftings.last()?;
    let LossDifference { value, half_width } = lifted.loss;
    let mean = 100.0 * value.exp_m1();
    // The figure's bars are even: as long as the derivative says.
    let loss = Estimate { mean, interval: Some((100.0 + mean) * half_width), count: 1 };
    Some((faster(lifted.log2_speed), loss))
}

/// What each change brought after its last short training, and what it cost, by how far it came; with the front of those
/// that no other beats in both. `None` without short trainings.
pub(super) fn figure(search: &SearchRecord) -> Option<Figure> {
    let candidates: Vec<&SearchCandidate> = search.rounds.iter().flat_map(|round| &round.candidates).collect();
    let all: Vec<(f64, Estimate)> = candidates.iter().filter_map(|candidate| point(candidate)).collect();
    if all.is_empty() {
        return None;
    }
    let of_stage = |stage: CandidateStage| {
        let own = candidates.iter().filter(|candidate| candidate.stage == stage);
        let points = own.filter_map(|candidate| point(candidate)).collect();
        Series { name: stage.name().to_owned(), style: SeriesStyle::Dots, points }
    };
    let mut series = vec![Series { name: "front".into(), style: SeriesStyle::Line, points: front(&all) }];
    series.extend(CandidateStage::ALL.map(of_stage).into_iter().filter(|series| !series.points.is_empty()));
    Some(Figure {
        name: FIGURE.into(),
        title: "What the changes of a search brought, and what they cost".into(),
        comparison: None,
        is_decisive: false,
        colors: SetColors::default(),
        chart: Chart::Series {
            x_axis: "speed against the incumbent's, % (estimated; higher is better)".into(),
            y_axis: "loss against the incumbent's, % (lower is better)".into(),
            series,
        },
    })
}

/// The points that no other beats in both, from the slowest to the fastest.
fn front(points: &[(f64, Estimate)]) -> Vec<(f64, Estimate)> {
    let beats = |one: &(f64, Estimate), other: &(f64, Estimate)| {
        one.0 >= other.0 && one.1.mean <= other.1.mean && (one.0 > other.0 || one.1.mean < other.1.mean)
    };
    let is_best = |point: &&(f64, Estimate)| !points.iter().any(|other| beats(other, point));
    let mut front: Vec<(f64, Estimate)> = points.iter().filter(is_best).copied().collect();
    sort_by(&mut front, &|one, other| one.0.total_cmp(&other.0));
    front
}

impl Figure {
    /// Whether it stands beside the tables of a search.
    pub(super) fn is_of_search(&self) -> bool {
        self.name == FIGURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LiftedCandidate, SearchWinner, TrainedCandidate};

    fn candidate(change: &str, stage: CandidateStage, loss: f64, log2_speed: f64) -> SearchCandidate {
        let loss = LossDifference { value: loss, half_width: 0.002 };
        let elo = Interval { value: -500.0 * loss.value, low: -5.0, high: 30.0 };
        let lifted = LiftedCandidate { samples: 400_000, loss, log2_speed, predicted: elo, seconds: 20.0 };
        let has_played = stage >= CandidateStage::LastRace;
        SearchCandidate {
            label: format!("piece {change}"),
            set: "piece + axis-h".into(),
            change: change.into(),
            kind: "add".into(),
            screen: None,
            liftings: if stage == CandidateStage::Screened { Vec::new() } else { vec![lifted] },
            full: has_played.then_some(TrainedCandidate { l1: 96, seeds: 3, loss, seconds: 100.0 }),
            played: has_played.then_some(PlayedCandidate { games: 800, elo, log2_speed: Some(log2_speed) }),
            stage,
            why: "more than max_rows".into(),
        }
    }

    fn search() -> SearchRecord {
        let candidates = vec![
            candidate("plus a block", CandidateStage::Screened, 0.0, 0.0),
            candidate("plus b", CandidateStage::Lifted, 0.01, -0.5),
            candidate("plus c", CandidateStage::Lifted, -0.01, 0.0),
            candidate("plus d", CandidateStage::Winner, -0.05, -0.2),
        ];
        let round = SearchRound { number: 1, incumbent: "piece".into(), screen: None, candidates, seconds: 400.0 };
        let played =
            PlayedCandidate { games: 1_200, elo: Interval { value: 21.4, low: 3.2, high: 39.6 }, log2_speed: None };
        let loss = Some(LossDifference { value: -0.04, half_width: 0.003 });
        let last = Some(LastComparison { loss, games: 1_500, played: Some(played) });
        SearchRecord {
            first: "piece".into(),
            rounds: vec![round],
            winner: Some(SearchWinner { label: "piece plus d".into(), definition: String::new(), last }),
            seconds: 7_500.0,
            stopped: Some("the 2 hours are over".into()),
            ..SearchRecord::default()
        }
    }

    #[test]
    fn the_outcome_comes_first() {
        insta::assert_snapshot!(sentences(&search()).join("\n"), @r"
        4 sets were tried in 1 round, in 2 h 5 min of all steps. It ended: the 2 hours are over.
        The best found is piece plus d (winner.toml is its definition). Against piece, on games and openings that no choice saw: loss −3.92 ± 0.29% on 1,500 validation games, Elo +21 (+3 to +40) at equal cost in 1,200 games. All other tables and figures of losses take all validation games, those that choices saw among them.
        Predicted Elo at equal cost, before any match of the search: −5.5 ± 2.5 for each percent of loss, +120 ± 60 for twice the speed (standard errors). The prediction orders candidates, matches decide.
        ");
    }

    #[test]
    fn candidates_stand_in_the_order_of_how_far_they_came() {
        let tables = tables(&search(), 6);
        assert_eq!((tables.len(), tables[0].title.as_str()), (1, "Round 1: changes of piece (6 min 40 s)"));
        let changes: Vec<&str> = tables[0].rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(changes, ["plus d", "plus c", "plus b", "plus a…"]);
        let winner = tables[0].rows[0].join(" | ");
        assert_eq!(
            winner,
            "plus d | winner | – | – | 400,000 | −13 | −4.88 ± 0.19 | +25 (−5 to +30) | 96 | −4.88 ± 0.19 | 800 | +25 (−5 \
             to +30) | 2 min 0 s | more than max_rows"
        );
    }

    /// Slower and worse than another is not on the front.
    #[test]
    fn the_front_has_what_no_other_beats_in_both() {
        let figure = figure(&search()).expect("short trainings");
        figure.svg().expect("drawn");
        let Chart::Series { series, .. } = &figure.chart else { panic!("series") };
        let names: Vec<(&str, usize)> = series.iter().map(|one| (&one.name[..], one.points.len())).collect();
        assert_eq!(names, [("front", 2), ("lifted", 2), ("winner", 1)]);
        assert!(figure.is_of_search());
    }
}
