use super::*;
use crate::record::{LossFunction, LossSums, ValidationLosses};
use crate::report::figures::Figure;
use crate::report::summary::Summary;
use crate::report::{markdown, test_records};

const SHARES: [f64; 5] = [0.0625, 0.125, 0.25, 0.5, 1.0];
const GAMES: u32 = 60;

/// The loss of a set with this floor on a share, if the rest falls with the cube root of the data.
fn loss(set: usize, share: f64) -> f64 {
    let [floor, reducible] = [[0.011, 0.001], [0.0098, 0.002]][set];
    floor + reducible * share.powf(-1.0 / 3.0)
}

/// Two sets that cross at 0.58 of the data.
fn results() -> Results {
    let all = test_records::results();
    let mut results = Results { matches: Vec::new(), ..all.clone() };
    results.study.rows.truncate(2);
    results.study.scaling = Some(Scaling { shares: SHARES.to_vec(), by: ScalingBy::Steps, seeds: None });
    let rows = results.study.rows.clone();
    results.runs.retain(|run| run.key.method == Method::Eval && rows.iter().any(|row| row.set == run.key.set));
    for (set, row) in rows.iter().enumerate() {
        for share in SHARES {
            for seed in &row.seeds {
                let own = RunKey { set: row.set.clone(), method: row.method, seed: *seed };
                let key = RunKey { set: Scaling::label(&row.set, share), ..own.clone() };
                let whole = all.runs.iter().find(|run| run.key == own).expect("a run").clone();
                if share < 1.0 {
                    let distinct_samples = Some((share * 400_000.0) as u64);
                    results.runs.push(RunRecord { key: key.clone(), distinct_samples, ..whole });
                }
                let noise = 1.0 + 1e-3 * ((7 * seed.0 + 3 * set as u64) as f64 / share).sin();
                let sums = |game: u32| {
                    let difficulty = 1.0 + 0.3 * f64::from(game).sin();
                    let own = 1.0 + 0.01 * (f64::from(game) * (1.7 + set as f64)).sin();
                    let loss = (50.0 * loss(set, share) * noise * difficulty * own) as f32;
                    LossSums { game, samples: 50, loss, preferred: 0 }
                };
                let losses = ValidationLosses { games: (0..GAMES).map(sums).collect(), ..ValidationLosses::default() };
                let record = ValidationRecord::new(LossFunction::Eval(Default::default()), losses);
                results.validation.push(NetResult { key, record });
            }
        }
    }
    results
}

#[test]
fn curves_cross_where_they_do() {
    let results = results();
    let summary = Summary::of(&results);
    assert_eq!((summary.methods.len(), summary.methods[0].rows.len()), (1, 2), "shares are no rows");
    let scaling = summary.methods[0].scaling.as_ref().expect("curves");
    assert_eq!((scaling.samples, scaling.sets.len(), scaling.predicted), (400_000, 2, Some([2, 2])));
    let [crossing] = &scaling.crossings[..] else { panic!("one crossing") };
    assert_eq!((crossing.set.as_str(), crossing.against.as_str()), ("compact", "piece"));
    // 0.0012 = 0.001 share^(−1/3).
    let Interval { low, high, .. } = crossing.samples;
    let truth = 400_000.0 * (0.001f64 / 0.0012).powi(3);
    assert!((low..=high).contains(&truth), "{low} {high} {truth}");
    let sentences = scaling.sentences(Method::Eval);
    assert!(
        sentences[0].starts_with("piece is passed in loss by compact at 23")
            && sentences[0].ends_with("; you have 400,000."),
        "{}",
        sentences[0]
    );
    let lowest = "With ten times the data, 4.0 M positions, compact has the lowest loss: compact 0.01";
    assert!(sentences[1].starts_with(lowest), "{}", sentences[1]);
    let verdict = &summary.methods[0].verdict;
    assert!(sentences.iter().all(|sentence| verdict.contains(sentence)), "{verdict:?}");
    assert!(verdict[0].contains("with 400,000 positions"), "{}", verdict[0]);
    let page = markdown(&summary);
    assert!(page.contains("More data: loss = E + A") && page.contains("hold 2 of 2 sets' losses"), "{page}");
    let figure = Figure::all(&summary).into_iter().find(|figure| figure.name() == "data-eval").expect("a figure");
    let svg = figure.inline_svg().expect("drawn");
    assert!(svg.contains("<title>piece, ") && svg.ends_with("</svg>\n"));
    let frames = crate::report::DataFrames::of(&summary, &results).expect("frames");
    crate::report::table_document::check_meanings(&frames);
    let heights = [frames.scaling, frames.crossings].map(|frame| frame.map(|frame| frame.height()));
    assert_eq!(heights, [Some(2), Some(1)]);
}

#[test]
fn sentences_are_about_the_choice() {
    let summary = Summary::of(&results());
    let mut scaling = summary.methods[0].scaling.clone().expect("curves");
    let [piece, compact] = &scaling.sets[..] else { panic!("two sets") };
    let set = |name: &str, like: &SetScaling| SetScaling { set: name.into(), ..like.clone() };
    scaling.sets = vec![piece.clone(), compact.clone(), set("c", piece), set("d", piece)];
    let crossing = |set: &str, against: &str, value: f64| SetCrossing {
        set: set.into(),
        against: against.into(),
        samples: Interval { value, low: value / 2.0, high: value * 2.0 },
        is_open: false,
    };
    // Compact is the best with the 400,000 positions at hand.
    scaling.crossings = vec![
        crossing("c", "piece", 200_000.0),
        crossing("compact", "piece", 100_000.0),
        crossing("c", "compact", 300_000.0),
        crossing("d", "compact", 800_000.0),
        crossing("d", "c", 900_000.0),
    ];
    scaling.predicted = Some([2, 4]);
    let sentences = scaling.sentences(Method::Eval);
    assert_eq!(
        sentences[..4],
        [
            "Curves of the smaller shares foretell 2 of 4 losses with all data: what follows about more than 400,000 \
             positions is a guess.",
            "piece is passed in loss by compact at 100,000 positions (50,000 to 200,000), c at 200,000 (100,000 to \
             400,000); you have 400,000.",
            "compact is passed in loss by d at 800,000 positions (400,000 to 1.6 M); you have 400,000.",
            "Crossings of other pairs: 2, in the table of more data.",
        ]
    );
}

#[test]
fn too_few_shares_give_no_curves() {
    let mut results = results();
    results.validation.retain(|result| !result.key.set.contains("share 0.0") && !result.key.set.contains("share 0.2"));
    let summary = Summary::of(&results);
    let methods = &summary.methods;
    assert_eq!(methods[0].scaling.as_ref().map(|scaling| scaling.sets.len()), Some(2), "0.125, 0.5 and 1");
    results.validation.retain(|result| !result.key.set.contains("share 0.5"));
    assert!(Summary::of(&results).methods[0].scaling.is_none());
}

#[test]
fn amounts_have_two_digits() {
    let check = |samples: f64, expected: &str| assert_eq!(amount(samples), expected);
    check(207_000.0, "210,000");
    check(950_000.0, "950,000");
    check(999_000.0, "1.0 M");
    check(6_650_000.0, "6.7 M");
    check(21_400_000.0, "21 M");
    check(1_240_000_000.0, "1,200 M");
    check(85.0, "85");
    check(3.2, "3");
}
