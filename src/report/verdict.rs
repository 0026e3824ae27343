//! A comparison in words: one sentence on the whole, one on its data, and one per set.

mod words;

use super::comparisons::{ComparedMeasure, Difference, PairComparison, Statement};
use super::numbers::{self, amount};
use super::published::PublishedComparison;
use super::scaling::unit;
use super::strength::{DoublingElo, JudgedElo};
use super::summary::{MethodSummary, SummaryRow};
use super::training_data::TrainingData;
use crate::record::{EQUAL_SPEED, MatchKind};
use crate::statistics::{Estimate, Outlook};
use crate::text::listed;
use words::{CommonFacts, RelativeSpeed, elo_words, equal_cost_words, limits, loss_words, sign, trainings, undecided};

/// Speeds that differ by less count as equal; timings are not more exact than that.
const EQUAL: f64 = 0.03;

/// The evidence on a set beside the reference.
struct Evidence<'a> {
    set: &'a str,
    /// The set's description, widths and data, in brackets; may be empty.
    facts: String,
    /// Training samples, as text; empty before the first training is done.
    samples: String,
    /// Why more data may change the verdict: because of the set, and because of the reference.
    own_limit: Option<String>,
    reference_limit: Option<String>,
    loss: Option<Difference>,
    speed: Option<RelativeSpeed>,
    /// What would distinguish the losses.
    loss_outlook: Option<Outlook>,
    elo_equal_nodes: Option<JudgedElo>,
    elo_equal_cost: Option<JudgedElo>,
    /// Whether an evaluation costs what one of the first set's costs: both networks have the same set and shape.
    is_same_network: bool,
    /// [`Strength::cost_noise`](super::strength::Strength::cost_noise)
    cost_noise: Option<[f64; 2]>,
    /// Whether equal cost goes by the user's own figures.
    cost_is_by_figures: bool,
    /// How much cost weighs at equal cost, if that is not 1.
    cost_weight: Option<f64>,
    /// log2 of its nodes of the same processor time, as a share of the first set's.
    log2_speed: Option<f64>,
}

/// The sentences on a method's comparison: the whole first, then the trainings, then every set against the first. Empty
/// for fewer than two sets, or when nothing of them was compared. `data_files` are the experiment's.
pub(super) fn verdict(method: &MethodSummary, data_files: &str) -> Vec<String> {
    let Some((reference, others)) = method.rows.split_first() else { return Vec::new() };
    let at_equal_speed = method.group.as_deref() == Some(EQUAL_SPEED);
    let common = CommonFacts::of(&method.rows);
    let evidence: Vec<Evidence<'_>> =
        others.iter().map(|row| Evidence::of(method, reference, row, at_equal_speed, common)).collect();
    let sentences: Vec<String> =
        evidence.iter().filter_map(|evidence| evidence.sentence(&reference.name, at_equal_speed)).collect();
    let against = method.match_reference.as_ref().filter(|_| plays_another(method, reference));
    let elo = |row: &SummaryRow| {
        let kinds = [MatchKind::EqualCost, MatchKind::EqualNodes].into_iter();
        let judged = |kind: MatchKind| method.judged_elo(row, kind);
        let words = kinds.filter_map(|kind| Some(elo_words(judged(kind)?.estimate, kind.name()))).next()?;
        Some(format!("Against {}, {} is {words}.", against?, row.name))
    };
    let strengths: Vec<String> = method.rows.iter().filter_map(elo).collect();
    let published = method.published.as_ref();
    let weight = method.rows.iter().find_map(|row| row.strength.as_ref()?.cost_weight);
    let whole = [
        summary(&evidence, &reference.name, &scale(method), &|set, kind| method.not_weaker_than(set, kind)),
        price_of_loss(&evidence, &reference.name),
        method.elo_of_doubling.and_then(|elo| price_of_nodes(elo, weight)),
        published.and_then(PublishedComparison::replication),
        published.and_then(PublishedComparison::elo_replication),
    ];
    let whole: Vec<String> = whole.into_iter().flatten().collect();
    let whole = Some(whole.join(" ")).filter(|whole| !sentences.is_empty() && !whole.is_empty());
    let trainings = trainings(&method.rows, data_files).filter(|_| !sentences.is_empty());
    let more_data = method.scaling.as_ref().map(|scaling| scaling.sentences(method.method)).unwrap_or_default();
    whole.into_iter().chain(trainings).chain(sentences).chain(strengths).chain(more_data).collect()
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
        common: CommonFacts,
    ) -> Evidence<'a> {
        let is_pair = |pair: &&PairComparison| {
            (pair.set.as_str(), pair.against.as_str()) == (row.name.as_str(), reference.name.as_str())
                && pair.difference.measure == ComparedMeasure::Loss
        };
        let pair = method.comparisons.pairs.iter().find(is_pair);
        // Elo against the set that the loss is compared with; another one has a sentence of its own.
        let strength = row.strength.as_ref().filter(|_| !plays_another(method, reference));
        let judged = |kind: MatchKind| strength.and_then(|_| method.judged_elo(row, kind));
        let data = row.training_data.as_ref();
        let own_limit = limits("it", data);
        let facts = common.others_of(row, data.filter(|_| own_limit.is_none()));
        Evidence {
            set: &row.name,
            facts,
            samples: data.map(TrainingData::samples_text).unwrap_or_default(),
            own_limit,
            reference_limit: limits(&reference.name, reference.training_data.as_ref()).filter(|_| data.is_some()),
            loss: pair.map(|pair| pair.difference).or_else(|| by_seed(reference, row)),
            speed: RelativeSpeed::of(row, reference).filter(|_| !at_equal_speed),
            loss_outlook: pair.map(|pair| Outlook {
                dominant: pair.dominant,
                more_seeds: pair.more_seeds,
                more_games: pair.more_games,
            }),
            elo_equal_nodes: judged(MatchKind::EqualNodes),
            elo_equal_cost: judged(MatchKind::EqualCost),
            is_same_network: row.network == reference.network,
            cost_noise: strength.and_then(|strength| strength.cost_noise),
            cost_is_by_figures: strength.is_some_and(|strength| strength.is_by_figures),
            cost_weight: strength.and_then(|strength| strength.cost_weight),
            log2_speed: strength.and_then(|strength| strength.log2_speed),
        }
    }

    /// `None` if nothing is known.
    fn sentence(&self, reference: &str, at_equal_speed: bool) -> Option<String> {
        let loss = self.loss.as_ref().map(|loss| loss_words(loss, reference));
        let speed = self.speed.map(RelativeSpeed::words);
        let elo = match (self.elo_equal_cost, self.elo_equal_nodes) {
            (Some(elo), _) => {
                let conditions = equal_cost_words(self.cost_noise, self.cost_is_by_figures, self.cost_weight);
                Some(elo_words(elo.estimate, &conditions))
            }
            (None, Some(elo)) => Some(elo_words(elo.estimate, "equal nodes")),
            (None, None) => None,
        };
        let parts: Vec<String> = [loss, speed, elo].into_iter().flatten().collect();
        let judgement = self.judgement(at_equal_speed);
        let conclusion = match self.limit(&judgement) {
            None => judgement.words().to_owned(),
            Some(why) => {
                let so_far = judgement.words_so_far();
                format!("with {} training samples {so_far}; {why}: more data may change this", self.samples)
            }
        };
        // Speed alone is no verdict.
        let is_judged = self.loss.is_some() || self.elo_equal_cost.is_some() || self.elo_equal_nodes.is_some();
        // At full cost, a match that the set won says all.
        let is_told = judgement != Judgement::WorthIt || self.cost_weight.is_some();
        let where_it_pays = self.where_it_pays().filter(|_| is_told).unwrap_or_default();
        is_judged.then(|| format!("{}{} is {}: {conclusion}{where_it_pays}.", self.set, self.facts, parts.join(", ")))
    }

    /// Below which worth of nodes a set that is stronger at equal nodes pays for its cost: of its Elo, and of the lower
    /// end of its interval.
    fn where_it_pays(&self) -> Option<String> {
        let lost = -self.log2_speed.filter(|log2| *log2 < (1.0 - EQUAL).log2())?;
        let gained = self.elo_equal_nodes.map(|elo| elo.estimate).filter(|elo| sign(*elo) == Some(true))?;
        let half = gained.interval?;
        let limits = [gained.mean, gained.mean / lost, (gained.mean - half) / lost];
        let [gain, limit, lower] = limits.map(|elo| numbers::number(elo, 0, false));
        Some(format!(
            "; by its {gain} Elo at equal nodes it pays where twice the nodes are worth less than {limit} Elo ({lower} \
             by the lower end of its interval)"
        ))
    }

    /// Why more data may change the judgement. Where a set with enough data is behind, a reference with too few of them
    /// is ahead although it has still to gain.
    fn limit(&self, judgement: &Judgement) -> Option<&str> {
        let is_behind = matches!(judgement, Judgement::NotWorthIt | Judgement::NotWorthItSoFar);
        let of_reference = self.reference_limit.as_deref().filter(|_| !is_behind);
        self.own_limit.as_deref().or(of_reference)
    }

    /// Elo at equal cost, or at equal nodes where both networks cost the same.
    fn decisive_elo(&self) -> Option<(MatchKind, JudgedElo)> {
        let at_equal_nodes = self.elo_equal_nodes.filter(|_| self.is_same_network);
        let at_equal_cost = self.elo_equal_cost.map(|elo| (MatchKind::EqualCost, elo));
        at_equal_cost.or(at_equal_nodes.map(|elo| (MatchKind::EqualNodes, elo)))
    }

    /// Elo decides, if it is by cost; without it, loss and speed where they agree.
    fn judgement(&self, at_equal_speed: bool) -> Judgement {
        if let Some((_, elo)) = self.decisive_elo() {
            return match sign(elo.estimate) {
                Some(true) => Judgement::WorthIt,
                Some(false) => Judgement::NotWorthIt,
                None => Judgement::Undecided(undecided(elo.outlook, "games")),
            };
        }
        let costs_the_same = at_equal_speed || self.is_same_network;
        let speed = if costs_the_same { Some(RelativeSpeed::exact(1.0)) } else { self.speed };
        let (Some(loss), Some(speed)) = (self.loss.as_ref().map(|loss| loss.statement), speed) else {
            return Judgement::Undecided("undecided, because not everything was measured".into());
        };
        let is_fast_enough = speed.low >= 1.0 - EQUAL;
        let is_no_faster = speed.high <= 1.0 + EQUAL;
        // Games at equal nodes say more than a loss does.
        match self.elo_equal_nodes.and_then(|elo| sign(elo.estimate)) {
            Some(true) if is_fast_enough => return Judgement::WorthIt,
            Some(false) if is_no_faster => return Judgement::NotWorthIt,
            Some(_) => return Judgement::Undecided("only a match at equal cost can decide".into()),
            None => {}
        }
        match loss {
            Statement::Better if is_fast_enough => Judgement::WorthItByLoss,
            Statement::Worse if is_no_faster => Judgement::NotWorthIt,
            Statement::NotDistinguished if speed.high < 1.0 - EQUAL => Judgement::NotWorthItSoFar,
            Statement::NotDistinguished if speed.low > 1.0 + EQUAL => Judgement::WorthItForSpeed,
            Statement::NotDistinguished if is_fast_enough && is_no_faster => {
                let words = self.loss_outlook.map(|outlook| undecided(outlook, "validation games"));
                Judgement::Undecided(words.unwrap_or_else(|| "undecided".into()))
            }
            _ if speed.is_noisy() => {
                let words = "undecided, because its timings are noisy: measure them again on an idle machine";
                Judgement::Undecided(words.into())
            }
            _ => Judgement::Undecided("only a match at equal cost can decide".into()),
        }
    }
}

/// The verdict of the evidence on a set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judgement {
    WorthIt,
    /// No match at equal cost was played.
    WorthItByLoss,
    WorthItForSpeed,
    NotWorthIt,
    NotWorthItSoFar,
    /// In these words.
    Undecided(String),
}

impl Judgement {
    fn words(&self) -> &str {
        match self {
            Judgement::WorthIt => "worth it",
            Judgement::WorthItByLoss => "worth it by loss; no match at equal cost was played",
            Judgement::WorthItForSpeed => "worth it for its speed as far as this shows",
            Judgement::NotWorthIt => "not worth it",
            Judgement::NotWorthItSoFar => "not worth it as far as this shows",
            Judgement::Undecided(words) => words,
        }
    }

    /// The words where there were too few training samples to judge the set itself.
    fn words_so_far(&self) -> &str {
        match self {
            Judgement::NotWorthIt => "it is behind",
            Judgement::NotWorthItSoFar => "it gains nothing for its time",
            _ => self.words(),
        }
    }
}

/// The difference in loss, paired by seed, where there are no losses by game.
fn by_seed(reference: &SummaryRow, row: &SummaryRow) -> Option<Difference> {
    let Estimate { mean, interval, count } = row.difference?;
    let loss = reference.validation_loss?.mean;
    let percent = |value: f64| (loss > 0.0).then(|| 100.0 * value / loss);
    let half = percent(interval?)?;
    let difference = percent(mean)?;
    let statement = if difference.abs() <= half {
        Statement::NotDistinguished
    } else if difference < 0.0 {
        Statement::Better
    } else {
        Statement::Worse
    };
    let low = difference - half;
    let high = difference + half;
    Some(Difference { measure: ComparedMeasure::Loss, difference, low, high, statement, seeds: count })
}

/// The amount of data of all rows, as in ` with 6.7 M positions`; empty if they differ.
fn scale(method: &MethodSummary) -> String {
    let mut samples = method.rows.iter().filter_map(|row| Some(row.training_data.as_ref()?.samples));
    match samples.next() {
        Some(first) if samples.all(|other| other == first) => {
            format!(" with {} {}", amount(first as f64), unit(method.method))
        }
        _ => String::new(),
    }
}

/// The sets that are not shown to be weaker than one, by matches of a kind.
type NotWeaker<'a> = dyn Fn(&str, MatchKind) -> Vec<&'a str> + 'a;

/// Which set to choose, by the data of `scale`.
fn summary(evidence: &[Evidence<'_>], reference: &str, scale: &str, not_weaker: &NotWeaker<'_>) -> Option<String> {
    let decisive: Vec<(&str, (MatchKind, JudgedElo))> =
        evidence.iter().filter_map(|evidence| Some((evidence.set, evidence.decisive_elo()?))).collect();
    // While matches are missing, networks of the first set's shape may have played at equal nodes alone.
    let is_by_cost = decisive.iter().any(|(_, (kind, _))| *kind == MatchKind::EqualCost);
    let kind = if is_by_cost { MatchKind::EqualCost } else { MatchKind::EqualNodes };
    let of_kind = decisive.iter().filter(|(_, (own, _))| *own == kind);
    let played: Vec<(&str, Estimate)> = of_kind.map(|(set, (_, elo))| (*set, elo.estimate)).collect();
    let weight = evidence.iter().find_map(|evidence| evidence.cost_weight);
    let conditions = |noise, is_by_figures| {
        if is_by_cost { equal_cost_words(noise, is_by_figures, weight) } else { kind.name().to_owned() }
    };
    let is = |elo: Estimate, wanted: Option<bool>| sign(elo) == wanted;
    let stronger = played.iter().filter(|(_, elo)| is(*elo, Some(true)));
    let best = stronger.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let is_limited = evidence.iter().any(|own| own.own_limit.is_some() || own.reference_limit.is_some());
    let so_far = if is_limited && scale.is_empty() { " and with this amount of data" } else { scale };
    let others = evidence.iter().map(|evidence| evidence.set);
    let absent: Vec<&str> = others.filter(|set| played.iter().all(|(other, _)| other != set)).collect();
    let absent = match absent.len() {
        0 => String::new(),
        count => format!("; {} {} not played such matches", listed(&absent), if count == 1 { "has" } else { "have" }),
    };
    let open: Vec<&str> = played.iter().filter(|(_, elo)| is(*elo, None)).map(|(set, _)| *set).collect();
    Some(match best {
        Some((set, elo)) => {
            let rivals = not_weaker(set, kind);
            let rivals = if rivals.is_empty() {
                String::new()
            } else {
                format!("; not distinguished from it: {}", listed(&rivals))
            };
            let chosen = evidence.iter().find(|evidence| evidence.set == *set);
            let conditions = chosen.map(|own| conditions(own.cost_noise, own.cost_is_by_figures)).unwrap_or_default();
            let where_it_pays =
                chosen.filter(|_| weight.is_some()).and_then(Evidence::where_it_pays).unwrap_or_default();
            let elo = elo_words(*elo, kind.name());
            format!("By Elo at {conditions}{so_far}, choose {set}: {elo}{where_it_pays}{rivals}{absent}.")
        }
        None if !open.is_empty() => format!(
            "No set is shown to be stronger than {reference} at {}{scale}; not distinguished from it: {}{absent}.",
            conditions(None, false),
            listed(&open)
        ),
        None if !played.is_empty() && !absent.is_empty() => {
            let conditions = conditions(None, false);
            format!("No set is shown to be stronger than {reference} at {conditions}{scale}{absent}.")
        }
        None if !played.is_empty() => {
            let conditions = conditions(None, false);
            format!("By Elo at {conditions}{so_far}, choose {reference}: every other set is weaker.")
        }
        None => {
            let losses: Vec<(&str, &Difference)> =
                evidence.iter().filter_map(|evidence| Some((evidence.set, evidence.loss.as_ref()?))).collect();
            let is_compared = |set: &&str| losses.iter().any(|(other, _)| other == set);
            let missing: Vec<&str> = evidence.iter().map(|own| own.set).filter(|set| !is_compared(set)).collect();
            let not_compared =
                if missing.is_empty() { String::new() } else { format!("; not compared: {}", listed(&missing)) };
            let better = losses.iter().filter(|(_, loss)| loss.statement == Statement::Better);
            match better.min_by(|a, b| a.1.difference.total_cmp(&b.1.difference)) {
                Some((set, loss)) => {
                    let lowest = losses.iter().all(|(_, other)| other.difference >= loss.difference);
                    let whose = if lowest { "lowest loss" } else { "lowest loss shown to be better" };
                    let nodes = evidence.iter().find(|own| own.set == *set).and_then(|own| own.elo_equal_nodes);
                    let weaker = nodes.filter(|elo| sign(elo.estimate) == Some(false));
                    let weaker = weaker.map(|elo| format!(", yet it is {}", elo_words(elo.estimate, "equal nodes")));
                    let words = loss_words(loss, reference);
                    let weaker = weaker.unwrap_or_default();
                    format!("The {whose}{scale} is that of {set}: {words}{weaker}{not_compared}.")
                }
                None if losses.is_empty() => return None,
                None => {
                    format!("No set is shown to have a lower loss than {reference}{scale}{not_compared}.")
                }
            }
        }
    })
}

/// The worth at equal cost of the sets with a lower loss than the reference's; `None` for fewer than two of them.
fn price_of_loss(evidence: &[Evidence<'_>], reference: &str) -> Option<String> {
    let is_better =
        |evidence: &&Evidence<'_>| evidence.loss.as_ref().is_some_and(|loss| loss.statement == Statement::Better);
    let better: Vec<&Evidence<'_>> = evidence.iter().filter(is_better).collect();
    let played: Vec<(&Evidence<'_>, Option<bool>)> =
        better.iter().filter_map(|own| Some((*own, sign(own.elo_equal_cost?.estimate)))).collect();
    if played.len() < 2 {
        return None;
    }
    let of = |wanted: Option<bool>| played.iter().filter(|(_, is_stronger)| *is_stronger == wanted).count();
    let [stronger, weaker, open] = [Some(true), Some(false), None].map(of);
    // Time is not why a set is weaker that is as fast, or weaker with as many nodes, too.
    let is_weaker_by_time = |own: &Evidence<'_>| {
        let is_slower = own.speed.is_some_and(|speed| speed.high < 1.0 - EQUAL);
        is_slower && own.elo_equal_nodes.is_none_or(|elo| sign(elo.estimate) != Some(false))
    };
    let mut weaker_sets = played.iter().filter(|(_, is_stronger)| *is_stronger == Some(false));
    let is_by_time = stronger == 0 && weaker > open && weaker_sets.all(|(own, _)| is_weaker_by_time(own));
    let lesson = if is_by_time { ": a lower loss does not pay for a slower evaluation" } else { "" };
    let have = format!("{} sets have a lower loss than {reference}", better.len());
    Some(if played.len() == better.len() {
        format!(
            "{have}; at equal cost {stronger} of them are stronger, {weaker} weaker and {open} not distinguished{lesson}."
        )
    } else {
        let count = played.len();
        format!(
            "{have}, and {count} of them played at equal cost: {stronger} stronger, {weaker} weaker and {open} not \
             distinguished{lesson}."
        )
    })
}

/// What nodes are worth, if the matches tell, and what a weight of cost makes of it.
fn price_of_nodes(DoublingElo { elo, least_share }: DoublingElo, weight: Option<f64>) -> Option<String> {
    let number = |elo: f64| numbers::number(elo, 0, false);
    let half = number(elo.interval?);
    let fewer = number(100.0 * (1.0 - least_share));
    let meaning = match weight {
        Some(weight) => format!("with its weight, cost counts as if they were worth {}", number(weight * elo.mean)),
        None => "where they are worth less, cost weighs less".into(),
    };
    (sign(elo) == Some(true)).then(|| {
        let mean = number(elo.mean);
        format!("By matches with up to {fewer}% fewer nodes, twice the nodes are worth {mean} ± {half} Elo; {meaning}.")
    })
}

#[cfg(test)]
mod tests;
