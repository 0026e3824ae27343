//! The sentences, from fixed evidence.

use super::*;
use crate::statistics::NoiseSource;

fn difference(low: f64, high: f64) -> Difference {
    let statement = if low > 0.0 {
        Statement::Worse
    } else if high < 0.0 {
        Statement::Better
    } else {
        Statement::NotDistinguished
    };
    Difference { measure: ComparedMeasure::Loss, difference: f64::midpoint(low, high), low, high, statement, seeds: 3 }
}

fn elo(mean: f64, half: f64) -> Option<JudgedElo> {
    let outlook = Outlook { dominant: Some(NoiseSource::Games), more_seeds: None, more_games: Some(1_200) };
    Some(JudgedElo { estimate: Estimate { mean, interval: Some(half), count: 3 }, outlook })
}

fn none(_set: &str, _kind: MatchKind) -> Vec<&'static str> {
    Vec::new()
}

fn evidence(loss: &Difference, speed: f64, elo_equal_cost: Option<JudgedElo>) -> Evidence<'static> {
    timed(loss, RelativeSpeed::exact(speed), elo_equal_cost)
}

fn timed(loss: &Difference, speed: RelativeSpeed, elo_equal_cost: Option<JudgedElo>) -> Evidence<'static> {
    Evidence {
        set: "piece-move",
        facts: String::new(),
        samples: "306,214".into(),
        own_limit: None,
        reference_limit: None,
        loss: Some(*loss),
        speed: Some(speed),
        loss_outlook: None,
        elo_equal_nodes: None,
        elo_equal_cost,
        is_same_network: false,
        cost_noise: None,
        cost_is_by_figures: false,
        cost_weight: None,
        log2_speed: None,
    }
}

#[test]
fn a_match_at_equal_cost_decides() {
    let loss = difference(-0.4, -0.2);
    let weaker = evidence(&loss, 0.69, elo(-24.0, 15.0));
    let expected = "piece-move is 0.30% better than piece in loss (−0.40% to −0.20%), 31% slower, 24 ± 15 Elo \
                    weaker at equal cost: not worth it.";
    assert_eq!(weaker.sentence("piece", false).expect("known"), expected);
    let all = [evidence(&loss, 0.69, elo(-24.0, 15.0)), evidence(&loss, 0.69, elo(-40.0, 15.0))];
    assert!(summary(&all, "piece", "", &none).expect("a choice").contains("choose piece: every other set is weaker"));
    let open = [evidence(&loss, 0.69, elo(-4.0, 15.0))];
    assert!(
        open[0]
            .sentence("piece", false)
            .expect("known")
            .ends_with("undecided; if the difference stays, 1,200 more games would tell.")
    );
    assert!(summary(&open, "piece", "", &none).expect("open").contains("not distinguished from it: piece-move"));
    let strong = [evidence(&loss, 0.69, elo(20.0, 15.0))];
    assert!(
        summary(&strong, "piece", "", &none).expect("a choice").contains("choose piece-move: 20 ± 15 Elo stronger")
    );
    // So may another be; and a set that has not played is not weaker.
    let rivals = |_: &str, _: MatchKind| vec!["rival"];
    assert!(summary(&strong, "piece", "", &rivals).expect("a choice").ends_with("; not distinguished from it: rival."));
    let late = [evidence(&loss, 0.69, elo(-24.0, 15.0)), Evidence { set: "late", ..evidence(&loss, 0.69, None) }];
    let expected = "No set is shown to be stronger than piece at equal cost; late has not played such matches.";
    assert_eq!(summary(&late, "piece", "", &none).as_deref(), Some(expected));
    // A set that might be stronger still hides none that is.
    let wide = Evidence { set: "wide", ..evidence(&loss, 0.69, elo(40.0, 60.0)) };
    let [narrow] = strong;
    assert!(summary(&[wide, narrow], "piece", "", &none).expect("a choice").contains("choose piece-move: 20 ± 15 Elo"));
    let weighed = [Evidence { cost_weight: Some(0.3), ..evidence(&loss, 0.69, elo(20.0, 15.0)) }];
    assert!(
        summary(&weighed, "piece", "", &none)
            .expect("a choice")
            .starts_with("By Elo at equal cost (cost weighs 0.3), c")
    );
}

/// Recipes of one network cost the same, so that equal nodes are equal cost.
#[test]
fn equal_nodes_decide_between_networks_of_one_shape() {
    let loss = difference(-0.1, 0.1);
    let nodes = || Evidence { elo_equal_nodes: elo(-43.0, 35.0), speed: None, ..evidence(&loss, 1.0, None) };
    let of = |own: &Evidence<'_>| own.sentence("default", false).expect("known");
    let ending = "43 ± 35 Elo weaker at equal nodes";
    let other = nodes();
    assert!(of(&other).ends_with(&format!("{ending}: undecided, because not everything was measured.")));
    let same = Evidence { is_same_network: true, ..nodes() };
    assert!(of(&same).ends_with(&format!("{ending}: not worth it.")));
    let text = summary(&[same], "default", "", &none).expect("a choice");
    assert_eq!(text, "By Elo at equal nodes, choose default: every other set is weaker.");
}

/// 46 Elo for a quarter of the nodes: −log2 0.75 = 0.415.
#[test]
fn where_a_costly_set_pays_is_said() {
    let loss = difference(-13.0, -3.0);
    let of = |nodes: f64, log2: f64| {
        let costly = Evidence {
            log2_speed: Some(log2),
            elo_equal_nodes: elo(nodes, 30.0),
            ..evidence(&loss, 0.5, elo(-41.0, 27.0))
        };
        costly.sentence("piece", false).expect("known")
    };
    let ending = "not worth it; by its 46 Elo at equal nodes it pays where twice the nodes are worth less than 111 Elo \
                  (39 by the lower end of its interval).";
    assert!(of(46.0, 0.75f64.log2()).ends_with(ending), "{}", of(46.0, 0.75f64.log2()));
    for other in [of(26.0, 0.75f64.log2()), of(46.0, 0.1), of(46.0, -0.02)] {
        assert!(other.ends_with("not worth it."), "{other}");
    }
    // A set that won by cost's weight is told where it would win by the whole cost.
    let chosen = Evidence {
        log2_speed: Some(0.75f64.log2()),
        elo_equal_nodes: elo(46.0, 30.0),
        cost_weight: Some(0.3),
        ..evidence(&loss, 0.5, elo(41.0, 27.0))
    };
    let limit = "; by its 46 Elo at equal nodes it pays where twice the nodes are worth less than 111 Elo";
    assert!(chosen.sentence("piece", false).expect("known").contains(&format!("worth it{limit}")));
    assert!(
        summary(&[chosen], "piece", "", &none).expect("a choice").contains(&format!("stronger at equal cost{limit}"))
    );
    let price = |mean, weight| {
        let elo = Estimate { mean, interval: Some(45.0), count: 33 };
        price_of_nodes(DoublingElo { elo, least_share: 0.84 }, weight)
    };
    let text = price(210.0, None).expect("known");
    assert!(text.starts_with("By matches with up to 16% fewer nodes, twice the nodes are worth 210 ± 45 Elo; where"));
    assert!(price(210.0, Some(0.3)).expect("known").ends_with("cost counts as if they were worth 63."));
    assert_eq!(price(40.0, None), None);
}

#[test]
fn what_a_lower_loss_is_worth_is_said() {
    let better = difference(-0.4, -0.2);
    let worse = difference(0.1, 0.3);
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
    let absent = of(&[weaker(), weaker(), evidence(&better, 0.7, None)]).expect("two played");
    assert!(absent.starts_with("3 sets have a lower loss than piece, and 2 of them played at equal cost: 0 stronger,"));
    // Time is not why a set is weaker that is as fast, or weaker with as many nodes.
    let fast = evidence(&better, 1.2, elo(-24.0, 15.0));
    let weak = Evidence { elo_equal_nodes: elo(-30.0, 9.0), ..weaker() };
    for other in [fast, weak] {
        assert!(of(&[weaker(), weaker(), other]).expect("three sets").ends_with("0 not distinguished."));
    }
}

/// Without a match at equal cost, one at equal nodes decides where cost can only confirm it.
#[test]
fn games_at_equal_nodes_go_before_losses() {
    let better = difference(-0.4, -0.2);
    let of = |nodes: f64, speed: f64| {
        let own = Evidence { elo_equal_nodes: elo(nodes, 15.0), ..evidence(&better, speed, None) };
        let text = own.sentence("piece", false).expect("known");
        (text, summary(&[own], "piece", "", &none).expect("a choice"))
    };
    assert!(of(-89.0, 0.5).0.ends_with("weaker at equal nodes: not worth it."));
    assert!(of(-89.0, 1.2).0.ends_with("only a match at equal cost can decide."));
    assert!(of(89.0, 0.5).0.ends_with("only a match at equal cost can decide."));
    assert!(of(89.0, 1.2).0.ends_with("stronger at equal nodes: worth it."));
    assert!(of(4.0, 1.2).0.ends_with("worth it by loss; no match at equal cost was played."));
    assert!(of(-89.0, 0.5).1.ends_with(", yet it is 89 ± 15 Elo weaker at equal nodes."), "{}", of(-89.0, 0.5).1);
    let missing = Evidence { loss: None, set: "late", ..evidence(&better, 1.0, None) };
    let open = evidence(&difference(-0.4, 0.2), 1.0, None);
    let text = summary(&[open, missing], "piece", "", &none).expect("losses");
    assert_eq!(text, "No set is shown to have a lower loss than piece; not compared: late.");
}

/// An interval that excludes 0 does not seem to end there.
#[test]
fn bounds_near_zero_have_enough_digits() {
    let loss = difference(-22.0, -0.02);
    assert_eq!(loss_words(&loss, "piece"), "11.01% better than piece in loss (−22.00% to −0.02%)");
}

#[test]
fn without_games_loss_and_speed_decide_where_they_agree() {
    let [better, worse, open] = [difference(-4.0, -2.0), difference(2.0, 4.0), difference(-1.0, 1.0)];
    let of = |loss: &Difference, speed: f64| evidence(loss, speed, None).judgement(false).words().to_owned();
    assert!(of(&better, 1.0).starts_with("worth it by loss") && of(&better, 2.0).starts_with("worth it by loss"));
    assert_eq!([of(&better, 0.5), of(&worse, 2.0)], ["only a match at equal cost can decide"; 2]);
    assert_eq!([of(&worse, 1.0), of(&worse, 0.5)], ["not worth it"; 2]);
    assert_eq!([of(&open, 0.99), of(&open, 0.5)], ["undecided", "not worth it as far as this shows"]);
    // At equal speed the loss decides.
    assert_eq!(evidence(&worse, 0.2, None).judgement(true), Judgement::NotWorthIt);
    let nothing = Evidence { loss: None, speed: None, ..evidence(&worse, 1.0, None) };
    assert!(nothing.sentence("piece", false).is_none());
}

/// Where the data limit a verdict, it is about this amount of data, whatever the evidence says.
#[test]
fn few_samples_make_a_verdict_about_the_data() {
    let [better, worse, open] = [difference(-4.0, -2.0), difference(2.0, 4.0), difference(-1.0, 1.0)];
    let why = "it was best at epoch 2 of 8 and has 0.2 samples a parameter";
    let limit = || Some(why.to_owned());
    for loss in [&better, &worse, &open] {
        for speed in [0.5, 1.0, 2.0] {
            for elo in [None, elo(-40.0, 9.0), elo(40.0, 9.0), elo(0.0, 9.0)] {
                let limited = Evidence { own_limit: limit(), ..evidence(loss, speed, elo) };
                let text = limited.sentence("piece", false).expect("known");
                assert!(text.contains("with 306,214 training samples"), "{text}");
                assert!(text.ends_with(&format!("; {why}: more data may change this.")), "{text}");
                assert!(!text.contains("not worth it"), "{text}");
            }
        }
    }
    let all = [Evidence { own_limit: limit(), ..evidence(&worse, 1.0, elo(-40.0, 9.0)) }];
    let expected = "By Elo at equal cost and with this amount of data, choose piece: every other set is weaker.";
    assert_eq!(summary(&all, "piece", "", &none).as_deref(), Some(expected));

    // More data may help the reference alone: that matters where it is not ahead.
    let by_reference = |elo| Evidence { reference_limit: limit(), ..evidence(&open, 1.0, elo) };
    let text = |elo| by_reference(elo).sentence("piece", false).expect("known");
    assert!(text(elo(-40.0, 9.0)).ends_with(": not worth it."), "{}", text(elo(-40.0, 9.0)));
    assert!(text(elo(40.0, 9.0)).ends_with("more data may change this."), "{}", text(elo(40.0, 9.0)));
}

#[test]
fn noise_and_own_code_stand_beside_a_speed() {
    let speed = |ratio, error: f64, share| RelativeSpeed {
        ratio,
        low: ratio / error,
        high: ratio * error,
        finding_features: share,
        is_by_figures: false,
    };
    let check = |ratio, error, share, expected: &str| assert_eq!(speed(ratio, error, share).words(), expected);
    check(0.4, 1.0, None, "60% slower");
    check(0.4, 1.5, None, "60% slower (noisy: 40% to 73%)");
    check(0.9, 1.5, None, "10% slower (noisy: 40% slower to 35% faster)");
    check(1.01, 1.5, None, "as fast (noisy: 33% slower to 52% faster)");
    check(1.5, 1.2, None, "50% faster (noisy: 25% to 80%)");
    check(1.5, 1.4, None, "50% faster (noisy: 7% faster to 2.1 times as fast)");
    let own_code = "of its time finding features";
    check(0.4, 1.0, Some(0.544), &format!("60% slower (54% {own_code})"));
    check(0.4, 1.5, Some(0.544), &format!("60% slower (noisy: 40% to 73%; 54% {own_code})"));
    check(1.5, 1.0, Some(0.544), "50% faster");

    // A noisy speed decides only where its whole interval says the same.
    let [worse, open] = [difference(2.0, 4.0), difference(-1.0, 1.0)];
    let of = |loss, ratio, error| timed(loss, speed(ratio, error, None), None).judgement(false);
    assert_eq!(of(&open, 0.4, 1.5), Judgement::NotWorthItSoFar);
    assert_eq!(of(&worse, 0.5, 1.5), Judgement::NotWorthIt);
    for (loss, ratio) in [(&open, 0.9), (&open, 1.0), (&open, 1.2), (&worse, 1.0)] {
        let judgement = of(loss, ratio, 1.5);
        assert!(judgement.words().contains("timings are noisy"), "{ratio}: {judgement:?}");
    }
}

#[test]
fn noise_in_the_cost_of_a_match_is_said() {
    let open = difference(-1.0, 1.0);
    let noisy = Evidence { cost_noise: Some([0.85, 1.2]), ..evidence(&open, 1.0, elo(-40.0, 9.0)) };
    let text = noisy.sentence("piece", false).expect("known");
    assert!(text.contains("weaker at equal cost (noisy: 85% to 120% of the nodes that were searched)"), "{text}");
    let light = Evidence { cost_weight: Some(0.3), ..evidence(&open, 1.0, elo(40.0, 9.0)) };
    let text = light.sentence("piece", false).expect("known");
    assert!(text.ends_with("40 ± 9 Elo stronger at equal cost (cost weighs 0.3): worth it."), "{text}");
    let speed = RelativeSpeed { is_by_figures: true, ..RelativeSpeed::exact(0.87) };
    let own = Evidence { cost_is_by_figures: true, ..timed(&open, speed, elo(-40.0, 9.0)) };
    let text = own.sentence("piece", false).expect("known");
    assert!(text.contains("13% slower (by your figures), "), "{text}");
    assert!(text.contains("weaker at equal cost (by your figures)"), "{text}");
}

#[test]
fn what_would_tell_is_named() {
    let check = |dominant, more_seeds, more_games, expected: &str| {
        let outlook = Outlook { dominant, more_seeds, more_games };
        assert_eq!(
            undecided(outlook, "games"),
            format!("undecided; if the difference stays, {expected} would tell"),
            "{outlook:?}"
        );
    };
    let [seeds, games] = [NoiseSource::Seeds, NoiseSource::Games].map(Some);
    check(seeds, Some(3), Some(1_200), "3 more seeds or 1,200 more games");
    check(games, Some(3), Some(1_200), "1,200 more games or 3 more seeds");
    check(games, None, Some(1_200), "1,200 more games");
    check(seeds, Some(1), None, "1 more seed");
    assert_eq!(
        undecided(Outlook { dominant: None, more_seeds: None, more_games: None }, "games"),
        "undecided, more seeds would tell"
    );
    assert_eq!(
        undecided(Outlook { dominant: seeds, more_seeds: None, more_games: None }, "validation games"),
        "undecided, and no practical number of seeds or validation games alone would tell"
    );
}
