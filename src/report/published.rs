//! An experiment's own results beside published ones, pair by pair.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparisons::{ComparedMeasure, Comparisons, Difference, PairComparison, Statement};
use super::numbers;
use super::summary::SummaryRow;
use crate::record::Published;
use crate::statistics::Estimate;
use crate::text::listed;

/// How the losses and Elo of sets that others measured compare with the experiment's own. At another scale only the
/// order can be compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PublishedComparison {
    /// Who measured, and how.
    pub source: String,
    /// Every compared pair whose losses were published.
    pub losses: Vec<PublishedLoss>,
    /// Every set but the first whose Elo was published.
    pub elo: Vec<PublishedElo>,
}

/// A pair of sets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PublishedLoss {
    /// The set.
    pub set: String,
    /// The set that it is compared with.
    pub against: String,
    /// The published difference in percent of the second set's loss.
    pub published: f64,
    pub here: Difference,
    /// The difference of the mean training losses, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<f64>,
    pub agreement: Agreement,
}

/// A set's Elo.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PublishedElo {
    /// The set.
    pub set: String,
    /// Value and half of the 95% interval.
    pub published: [f64; 2],
    /// At the same nodes per move, and at the same processor time.
    pub equal_nodes: Option<Estimate>,
    pub equal_cost: Option<Estimate>,
}

/// Whether two measurements of a pair have the same order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    SameOrder,
    /// The interval of the experiment's own difference holds 0.
    NotDistinguished,
    /// The whole interval is on the other side.
    OtherOrder,
}

impl Agreement {
    fn of(published: f64, here: &Difference) -> Agreement {
        let is_worse = match here.statement {
            Statement::NotDistinguished => return Agreement::NotDistinguished,
            Statement::Worse => true,
            Statement::Better => false,
        };
        if is_worse == (published > 0.0) { Agreement::SameOrder } else { Agreement::OtherOrder }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Agreement::SameOrder => "same order",
            Agreement::NotDistinguished => "not distinguished here",
            Agreement::OtherOrder => "OTHER ORDER",
        }
    }
}

impl PublishedComparison {
    /// Compares a method's sets; `None` if nothing of theirs was published. `training_loss`: the mean of a set's
    /// measured epochs.
    pub(super) fn of(
        published: Option<&Published>,
        rows: &[SummaryRow],
        comparisons: &Comparisons,
        training_loss: &dyn Fn(&str) -> Option<f64>,
    ) -> Option<PublishedComparison> {
        let published = published?;
        let loss = |set: &str| published.loss.get(set).map(|[mean, _]| *mean);
        let pair = |pair: &PairComparison| {
            let difference = 100.0 * (loss(&pair.set)? / loss(&pair.against)? - 1.0);
            let agreement = Agreement::of(difference, &pair.difference);
            let set = pair.set.clone();
            let against = pair.against.clone();
            let losses = training_loss(&set).zip(training_loss(&against));
            let training = losses.map(|(own, other)| 100.0 * (own / other - 1.0));
            Some(PublishedLoss { set, against, published: difference, here: pair.difference, training, agreement })
        };
        let of_loss = comparisons.pairs.iter().filter(|pair| pair.difference.measure == ComparedMeasure::Loss);
        let losses: Vec<PublishedLoss> = of_loss.filter_map(pair).collect();
        let strength = |row: &SummaryRow| {
            let strength = row.strength.as_ref()?;
            let elo = PublishedElo {
                set: row.name.clone(),
                published: *published.elo.get(&row.name)?,
                equal_nodes: strength.elo_equal_nodes,
                equal_cost: strength.elo_equal_cost,
            };
            (elo.equal_nodes.is_some() || elo.equal_cost.is_some()).then_some(elo)
        };
        let elo: Vec<PublishedElo> = rows.iter().filter_map(strength).collect();
        let has_any = !(losses.is_empty() && elo.is_empty());
        has_any.then(|| PublishedComparison { source: published.source.clone(), losses, elo })
    }

    /// How many pairs agree, in a sentence; pairs that differ by at least [`CLEAR`] percent once more.
    #[must_use]
    pub fn agreement(&self) -> String {
        if self.losses.is_empty() {
            return format!("Published: {}.", self.source);
        }
        let count = |smallest: f64| {
            let own: Vec<&PublishedLoss> = self.losses.iter().filter(|pair| pair.published.abs() >= smallest).collect();
            let of = |agreement| own.iter().filter(|pair| pair.agreement == agreement).count();
            let [same, open, other] =
                [Agreement::SameOrder, Agreement::NotDistinguished, Agreement::OtherOrder].map(of);
            format!(
                "{} pairs: {same} in the same order, {open} not distinguished here, {other} in the other order",
                own.len()
            )
        };
        format!(
            "Published: {}. Of losses at different scales only the order can be compared. {}. Of these, published \
             differences of {CLEAR}% and more: {}.",
            self.source,
            count(0.0),
            count(CLEAR)
        )
    }
}

impl PublishedComparison {
    /// Whether the published order of losses was found again, for the report's verdict; `None` without losses.
    pub(super) fn replication(&self) -> Option<String> {
        let of = |agreement| self.losses.iter().filter(|pair| pair.agreement == agreement).count();
        let others: Vec<String> = self
            .losses
            .iter()
            .filter(|pair| pair.agreement == Agreement::OtherOrder)
            .map(|pair| format!("{} and {}", pair.set, pair.against))
            .collect();
        let against = match others.len() {
            0 => "none has the other order".to_owned(),
            1..=4 => format!("{} the other order ({})", others.len(), others.join("; ")),
            count => format!("{count} the other order"),
        };
        (!self.losses.is_empty()).then(|| {
            format!(
                "Of {} pairs with published losses, {} have the published order here, {} are not distinguished, \
                 {against}.{}",
                self.losses.len(),
                of(Agreement::SameOrder),
                of(Agreement::NotDistinguished),
                self.order_in_training().unwrap_or_default()
            )
        })
    }

    /// Which published Elo agrees with the experiment's own, at equal cost if it was played, within both intervals; `None`
    /// without any.
    pub(super) fn elo_replication(&self) -> Option<String> {
        let own = |elo: &PublishedElo| elo.equal_cost.or(elo.equal_nodes);
        let is_within = |elo: &&PublishedElo| {
            let [published, half] = elo.published;
            own(elo).is_some_and(|own| (own.mean - published).abs() <= own.interval.unwrap_or(0.0).hypot(half))
        };
        let agreeing = self.elo.iter().filter(is_within).count();
        let number = |elo: f64| numbers::number(elo, 0, true);
        let other = |elo: &PublishedElo| {
            let own = own(elo)?;
            let half = own.interval.map(|half| format!(" ± {}", numbers::number(half, 0, false))).unwrap_or_default();
            Some(format!("{} ({} published, {}{half} here)", elo.set, number(elo.published[0]), number(own.mean)))
        };
        let others: Vec<String> = self.elo.iter().filter(|elo| !is_within(elo)).filter_map(other).collect();
        let others = if others.is_empty() { String::new() } else { format!("; others: {}", others.join("; ")) };
        (!self.elo.is_empty()).then(|| {
            format!("{agreeing} of {} published Elo values agree within both intervals{others}.", self.elo.len())
        })
    }

    /// Whether pairs that lack the published order have it in their training losses: then the sets differ in how well
    /// they do on games that they have not learned from, which more data would change.
    fn order_in_training<'a>(&'a self) -> Option<String> {
        let is_clear = |pair: &&PublishedLoss| pair.published.abs() >= CLEAR;
        let clear: Vec<&PublishedLoss> = self.losses.iter().filter(is_clear).collect();
        let is_as_published = |here: f64, pair: &PublishedLoss| (here > 0.0) == (pair.published > 0.0);
        let in_training: Option<Vec<bool>> =
            clear.iter().map(|pair| Some(is_as_published(pair.training?, pair))).collect();
        let found = clear.iter().filter(|pair| is_as_published(pair.here.difference, pair)).count();
        let in_training = in_training?.into_iter().filter(|same| *same).count();
        let is_only_in_training = |pair: &&&PublishedLoss| {
            !is_as_published(pair.here.difference, pair)
                && pair.training.is_some_and(|here| is_as_published(here, pair))
        };
        // Of each such pair, the set that is published as the better one.
        let better = |pair: &&'a PublishedLoss| if pair.published < 0.0 { &*pair.set } else { &*pair.against };
        let mut sets: Vec<&str> = clear.iter().filter(is_only_in_training).map(better).collect();
        sets.sort_unstable();
        sets.dedup();
        (in_training > found).then(|| {
            format!(
                " Of the {} whose published losses differ by {CLEAR}% and more, {found} have it by mean validation loss \
                 and {in_training} by mean training loss: {} may fit the data better, but learn too much of these games \
                 alone.",
                clear.len(),
                listed(&sets)
            )
        })
    }
}

/// A published difference that every experiment should find, in percent.
const CLEAR: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::test_records;

    #[test]
    fn the_order_decides() {
        let difference = |low: f64, high: f64, statement| Difference {
            measure: ComparedMeasure::Loss,
            difference: (low + high) / 2.0,
            low,
            high,
            statement,
            seeds: 3,
        };
        let worse = difference(1.0, 3.0, Statement::Worse);
        let better = difference(-3.0, -1.0, Statement::Better);
        let open = difference(-1.0, 1.0, Statement::NotDistinguished);
        assert_eq!(Agreement::of(8.0, &worse), Agreement::SameOrder);
        assert_eq!(Agreement::of(-8.0, &worse), Agreement::OtherOrder);
        assert_eq!(Agreement::of(-8.0, &better), Agreement::SameOrder);
        assert_eq!(Agreement::of(8.0, &open), Agreement::NotDistinguished);
    }

    #[test]
    fn only_published_pairs_are_compared() {
        let results = test_records::results();
        let summary = crate::report::Summary::of(&results);
        let rows = &summary.methods[0].rows;
        let pair = |set: &str, against: &str, statement| PairComparison {
            set: set.into(),
            against: against.into(),
            difference: Difference {
                measure: ComparedMeasure::Loss,
                difference: 4.0,
                low: 1.0,
                high: 7.0,
                statement,
                seeds: 3,
            },
            games: 40,
            dominant: None,
            more_seeds: None,
            more_games: None,
        };
        let pairs = vec![
            pair("compact", "piece", Statement::Worse),
            pair("king-piece", "piece", Statement::Worse),
            pair("king-piece", "piece-move", Statement::NotDistinguished),
        ];
        let comparisons = Comparisons { note: None, pairs, parts: Vec::new() };
        let loss = [("piece", 0.01), ("compact", 0.02), ("king-piece", 0.0099)];
        let published = Published {
            source: "a paper".into(),
            loss: loss.into_iter().map(|(set, loss)| (set.to_owned(), [loss, 0.0])).collect(),
            elo: crate::units::SortedMap::new(),
        };
        let training =
            |set: &str| Some(if set == "compact" { 0.02 } else { 0.01 } + if set == "piece" { 0.002 } else { 0.0 });
        let found = PublishedComparison::of(Some(&published), rows, &comparisons, &training).expect("two pairs");
        let of = |index: usize| (found.losses[index].published.round(), found.losses[index].agreement);
        assert_eq!(
            (found.losses.len(), of(0), of(1)),
            (2, (100.0, Agreement::SameOrder), (-1.0, Agreement::OtherOrder))
        );
        let text = found.agreement();
        let expected =
            ["2 pairs: 1 in the same order, 0 not distinguished here, 1 in the other order", "1 pairs: 1 in"];
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(
            found.replication().as_deref(),
            Some(
                "Of 2 pairs with published losses, 1 have the published order here, 0 are not distinguished, 1 the \
                 other order (king-piece and piece)."
            )
        );
        assert!(PublishedComparison::of(None, rows, &comparisons, &training).is_none());
        let open = |pair: &PublishedLoss| {
            let here = Difference { difference: -pair.here.difference.abs(), ..pair.here };
            PublishedLoss { agreement: Agreement::NotDistinguished, here, ..pair.clone() }
        };
        let losses = found.losses.iter().map(open).collect();
        let text = PublishedComparison { losses, ..found }.replication().expect("pairs");
        assert!(
            text.contains("Of the 1 whose published losses differ by 5% and more, 0 have it by mean validation loss"),
            "{text}"
        );
    }
}
