//! What a comparison says in words: one sentence on the whole, and one per set.

use super::comparisons::{ComparedMeasure, Difference, Statement};
use super::numbers;
use super::published::PublishedComparison;
use super::summary::{MethodSummary, SummaryRow};
use crate::record::{EQUAL_SPEED, MatchKind};
use crate::statistics::Estimate;

/// Speeds that differ by less count as equal; timings are not more exact than that.
const EQUAL: f64 = 0.03;

/// What is known of a set beside the reference.
struct Evidence<'a> {
    set: &'a str,
    loss: Option<Difference>,
    /// Evaluations per second divided by the reference's.
    speed: Option<f64>,
    elo_equal_nodes: Option<Estimate>,
    elo_equal_cost: Option<Estimate>,
}

/// The sentences on a method's comparison: the whole first, then every set against the first. Empty for fewer than two
/// sets, or when nothing of them was compared.
pub(super) fn verdict(method: &MethodSummary) -> Vec<String> {
    let Some((reference, others)) = method.rows.split_first() else { return Vec::new() };
    let at_equal_speed = method.group.as_deref() == Some(EQUAL_SPEED);
    let evidence: Vec<Evidence<'_>> =
        others.iter().map(|row| Evidence::of(method, reference, row, at_equal_speed)).collect();
    let sentences: Vec<String> =
        evidence.iter().filter_map(|evidence| evidence.sentence(&reference.name, at_equal_speed)).collect();
    let against = method.match_reference.as_ref().filter(|_| plays_another(method, reference));
    let elo = |row: &SummaryRow| {
        let kinds = [MatchKind::EqualCost, MatchKind::EqualNodes].into_iter();
        let strength = row.strength.as_ref()?;
        let words = kinds.filter_map(|kind| Some(elo_words(strength.elo(kind)?, kind.name()))).next()?;
        Some(format!("Against {}, {} is {words}.", against?, row.name))
    };
    let strengths: Vec<String> = method.rows.iter().filter_map(elo).collect();
    let replication = method.published.as_ref().and_then(PublishedComparison::replication);
    let whole = [summary(&evidence, &reference.name), price_of_loss(&evidence, &reference.name), replication];
    let whole: Vec<String> = whole.into_iter().flatten().collect();
    let whole = Some(whole.join(" ")).filter(|whole| !sentences.is_empty() && !whole.is_empty());
    whole.into_iter().chain(sentences).chain(strengths).collect()
}

/// Whether the sets have played another one than the first, which their losses are compared with.
fn plays_another(method: &MethodSummary, reference: &SummaryRow) -> bool {
    method.match_reference.as_ref().is_some_and(|name| *name != reference.set)
}

impl<'a> Evidence<'a> {
    fn of(
        method: &'a MethodSummary,
        reference: &SummaryRow,
        row: &'a SummaryRow,
        at_equal_speed: bool,
    ) -> Evidence<'a> {
        let is_pair = |pair: &&super::comparisons::PairComparison| {
            (pair.set.as_str(), pair.against.as_str()) == (row.name.as_str(), reference.name.as_str())
                && pair.difference.measure == ComparedMeasure::Loss
        };
        let pair = method.comparisons.pairs.iter().find(is_pair);
        let speed = row.speed.zip(reference.speed).map(|(own, other)| own.mean / other.mean);
        // Elo against the set that the loss is compared with; another one has a sentence of its own.
        let strength = row.strength.as_ref().filter(|_| !plays_another(method, reference));
        Evidence {
            set: &row.name,
            loss: pair.map(|pair| pair.difference).or_else(|| by_seed(reference, row)),
            speed: speed.filter(|_| !at_equal_speed),
            elo_equal_nodes: strength.and_then(|strength| strength.elo_equal_nodes),
            elo_equal_cost: strength.and_then(|strength| strength.elo_equal_cost),
        }
    }

    /// `None` if nothing is known.
    fn sentence(&self, reference: &str, at_equal_speed: bool) -> Option<String> {
        let loss = self.loss.as_ref().map(|loss| loss_words(loss, reference));
        let speed = self.speed.map(speed_words);
        let elo = match (self.elo_equal_cost, self.elo_equal_nodes) {
            (Some(elo), _) => Some(elo_words(elo, "equal cost")),
            (None, Some(elo)) => Some(elo_words(elo, "equal nodes")),
            (None, None) => None,
        };
        let parts: Vec<String> = [loss, speed, elo].into_iter().flatten().collect();
        let conclusion = self.conclusion(at_equal_speed);
        // Speed alone is no verdict.
        let is_judged = self.loss.is_some() || self.elo_equal_cost.is_some() || self.elo_equal_nodes.is_some();
        is_judged.then(|| format!("{} is {}: {conclusion}.", self.set, parts.join(", ")))
    }

    /// Elo at equal cost decides; without it, loss and speed where they agree.
    fn conclusion(&self, at_equal_speed: bool) -> &'static str {
        if let Some(elo) = self.elo_equal_cost {
            return match sign(elo) {
                Some(true) => "worth it",
                Some(false) => "not worth it",
                None => "undecided, more games would tell",
            };
        }
        let speed = if at_equal_speed { Some(1.0) } else { self.speed };
        let loss = self.loss.as_ref().map(|loss| loss.statement);
        match (loss, speed) {
            (Some(Statement::Better), Some(speed)) if speed >= 1.0 - EQUAL => {
                "worth it by loss; no match at equal cost was played"
            }
            (Some(Statement::Worse), Some(speed)) if speed <= 1.0 + EQUAL => "not worth it",
            (Some(Statement::NotDistinguished), Some(speed)) if speed < 1.0 - EQUAL => {
                "not worth it as far as this shows"
            }
            (Some(Statement::NotDistinguished), Some(speed)) if speed <= 1.0 + EQUAL => "undecided",
            (Some(Statement::NotDistinguished), Some(_)) => "worth it for its speed as far as this shows",
            (Some(_), Some(_)) => "only a match at equal cost can decide",
            _ => "undecided, because not everything was measured",
        }
    }
}

/// The difference in loss, paired by seed, where there are no losses by game.
fn by_seed(reference: &SummaryRow, row: &SummaryRow) -> Option<Difference> {
    let Estimate { mean, interval, count } = row.difference?;
    let percent = |value: f64| Some(100.0 * value / reference.validation_loss?.mean);
    let half = percent(interval?)?;
    let difference = percent(mean)?;
    let statement = match () {
        () if difference.abs() <= half => Statement::NotDistinguished,
        () if difference < 0.0 => Statement::Better,
        () => Statement::Worse,
    };
    let (low, high) = (difference - half, difference + half);
    Some(Difference { measure: ComparedMeasure::Loss, difference, low, high, statement, seeds: count })
}

/// Which set to choose.
fn summary(evidence: &[Evidence<'_>], reference: &str) -> Option<String> {
    let played: Vec<(&str, Estimate)> =
        evidence.iter().filter_map(|evidence| Some((evidence.set, evidence.elo_equal_cost?))).collect();
    let best = played.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    Some(match best {
        Some((set, elo)) if sign(*elo) == Some(true) => {
            format!("By Elo at equal cost, choose {set}: {}.", elo_words(*elo, "equal cost"))
        }
        Some(_) if played.iter().all(|(_, elo)| sign(*elo) == Some(false)) => {
            format!("By Elo at equal cost, choose {reference}: every other set is weaker.")
        }
        Some(_) => {
            let open: Vec<&str> = played.iter().filter(|(_, elo)| sign(*elo).is_none()).map(|(set, _)| *set).collect();
            format!(
                "No set is shown to be stronger than {reference} at equal cost; not distinguished from it: {}.",
                open.join(", ")
            )
        }
        None => {
            let lowest = evidence.iter().filter_map(|evidence| Some((evidence.set, evidence.loss.as_ref()?)));
            let (set, loss) = lowest.min_by(|a, b| a.1.difference.total_cmp(&b.1.difference))?;
            match loss.statement {
                Statement::Better => format!("The lowest loss is that of {set}: {}.", loss_words(loss, reference)),
                _ => format!("No set has a lower loss than {reference}, as far as the intervals tell."),
            }
        }
    })
}

/// What the sets with a lower loss than the reference's are worth at equal cost; `None` for fewer than two of them.
fn price_of_loss(evidence: &[Evidence<'_>], reference: &str) -> Option<String> {
    let is_better =
        |evidence: &&Evidence<'_>| evidence.loss.as_ref().is_some_and(|loss| loss.statement == Statement::Better);
    let elo: Vec<Estimate> = evidence.iter().filter(is_better).filter_map(|evidence| evidence.elo_equal_cost).collect();
    let of = |wanted: Option<bool>| elo.iter().filter(|elo| sign(**elo) == wanted).count();
    let [stronger, weaker, open] = [Some(true), Some(false), None].map(of);
    let lesson =
        if stronger == 0 && weaker > open { ": a lower loss does not pay for a slower evaluation" } else { "" };
    (elo.len() > 1).then(|| {
        format!(
            "{} sets have a lower loss than {reference}; at equal cost {stronger} of them are stronger, {weaker} weaker \
             and {open} not distinguished{lesson}.",
            elo.len()
        )
    })
}

/// Whether an estimate is above 0; `None` if its interval holds 0 or it has none.
fn sign(estimate: Estimate) -> Option<bool> {
    let Estimate { mean, interval, .. } = estimate;
    (mean.abs() > interval?).then_some(mean > 0.0)
}

fn loss_words(loss: &Difference, reference: &str) -> String {
    let half = (loss.high - loss.low) / 2.0;
    let decimals = numbers::decimals(&[Estimate { mean: loss.difference, interval: Some(half), count: loss.seeds }]);
    let number = |value: f64, signed: bool| numbers::number(value, decimals, signed);
    let bounds = format!("{}% to {}%", number(loss.low, true), number(loss.high, true));
    match loss.statement {
        Statement::NotDistinguished => format!("not distinguished from {reference} in loss ({bounds})"),
        statement => {
            format!(
                "{}% {} than {reference} in loss ({bounds})",
                number(loss.difference.abs(), false),
                statement.name()
            )
        }
    }
}

fn speed_words(speed: f64) -> String {
    match speed {
        speed if (speed - 1.0).abs() < EQUAL => "as fast".into(),
        speed if speed >= 2.0 => format!("{} times as fast", numbers::number(speed, 1, false)),
        speed if speed > 1.0 => format!("{}% faster", numbers::number(100.0 * (speed - 1.0), 0, false)),
        speed => format!("{}% slower", numbers::number(100.0 * (1.0 - speed), 0, false)),
    }
}

fn elo_words(elo: Estimate, conditions: &str) -> String {
    let interval = elo.interval.map(|half| format!(" ± {}", numbers::number(half, 0, false))).unwrap_or_default();
    match sign(elo) {
        Some(is_stronger) => {
            let word = if is_stronger { "stronger" } else { "weaker" };
            format!("{}{interval} Elo {word} at {conditions}", numbers::number(elo.mean.abs(), 0, false))
        }
        None => format!("not distinguished in Elo at {conditions} ({}{interval})", numbers::number(elo.mean, 0, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(low: f64, high: f64) -> Difference {
        let statement = match () {
            () if low > 0.0 => Statement::Worse,
            () if high < 0.0 => Statement::Better,
            () => Statement::NotDistinguished,
        };
        Difference {
            measure: ComparedMeasure::Loss,
            difference: f64::midpoint(low, high),
            low,
            high,
            statement,
            seeds: 3,
        }
    }

    fn elo(mean: f64, half: f64) -> Option<Estimate> {
        Some(Estimate { mean, interval: Some(half), count: 3 })
    }

    fn evidence(loss: &Difference, speed: f64, elo_equal_cost: Option<Estimate>) -> Evidence<'static> {
        Evidence { set: "piece-move", loss: Some(*loss), speed: Some(speed), elo_equal_nodes: None, elo_equal_cost }
    }

    #[test]
    fn a_match_at_equal_cost_decides() {
        let loss = difference(-0.4, -0.2);
        let weaker = evidence(&loss, 0.69, elo(-24.0, 15.0));
        let expected = "piece-move is 0.30% better than piece in loss (−0.40% to −0.20%), 31% slower, 24 ± 15 Elo \
                        weaker at equal cost: not worth it.";
        assert_eq!(weaker.sentence("piece", false).expect("known"), expected);
        let all = [evidence(&loss, 0.69, elo(-24.0, 15.0)), evidence(&loss, 0.69, elo(-40.0, 15.0))];
        assert!(summary(&all, "piece").expect("a choice").contains("choose piece: every other set is weaker"));
        let open = [evidence(&loss, 0.69, elo(-4.0, 15.0))];
        assert!(open[0].sentence("piece", false).expect("known").ends_with("undecided, more games would tell."));
        assert!(summary(&open, "piece").expect("open").contains("not distinguished from it: piece-move"));
        let strong = [evidence(&loss, 0.69, elo(20.0, 15.0))];
        assert!(summary(&strong, "piece").expect("a choice").contains("choose piece-move: 20 ± 15 Elo stronger"));
    }

    #[test]
    fn what_a_lower_loss_is_worth_is_said() {
        let (better, worse) = (difference(-0.4, -0.2), difference(0.1, 0.3));
        let weaker = || evidence(&better, 0.7, elo(-24.0, 15.0));
        let of = |all: &[Evidence<'_>]| price_of_loss(all, "piece");
        assert_eq!(
            of(&[weaker(), weaker(), evidence(&worse, 0.7, elo(-50.0, 15.0))]).as_deref(),
            Some(
                "2 sets have a lower loss than piece; at equal cost 0 of them are stronger, 2 weaker and 0 not \
                 distinguished: a lower loss does not pay for a slower evaluation."
            )
        );
        let mixed = of(&[weaker(), evidence(&better, 0.7, elo(20.0, 15.0)), evidence(&better, 0.7, elo(1.0, 15.0))]);
        assert!(mixed.expect("three sets").ends_with("1 of them are stronger, 1 weaker and 1 not distinguished."));
        assert_eq!(of(&[weaker()]), None, "one set has a sentence of its own");
    }

    #[test]
    fn without_games_loss_and_speed_decide_where_they_agree() {
        let [better, worse, open] = [difference(-4.0, -2.0), difference(2.0, 4.0), difference(-1.0, 1.0)];
        let of = |loss: &Difference, speed: f64| evidence(loss, speed, None).conclusion(false);
        assert!(of(&better, 1.0).starts_with("worth it by loss") && of(&better, 2.0).starts_with("worth it by loss"));
        assert_eq!([of(&better, 0.5), of(&worse, 2.0)], ["only a match at equal cost can decide"; 2]);
        assert_eq!([of(&worse, 1.0), of(&worse, 0.5)], ["not worth it"; 2]);
        assert_eq!([of(&open, 0.99), of(&open, 0.5)], ["undecided", "not worth it as far as this shows"]);
        // At equal speed the loss decides.
        assert_eq!(evidence(&worse, 0.2, None).conclusion(true), "not worth it");
        let nothing = Evidence { set: "x", loss: None, speed: None, elo_equal_nodes: None, elo_equal_cost: None };
        assert!(nothing.sentence("piece", false).is_none());
    }
}
