//! Candidates against shipped sets and the reference encoder.

use std::collections::HashMap;

use shakmaty::Position;

use super::*;
use crate::chess::{Board, Perspective, random_game};
use crate::features::FeatureSet;

fn keys(toml: &str) -> CandidateKeys {
    let value: serde_json::Value = toml::from_str(toml).expect("TOML");
    crate::json::from_value(&value, "search").expect("keys")
}

fn tried(incumbent: &str, keys: &CandidateKeys) -> Result<Vec<Candidate>, SettingError> {
    candidates(incumbent, keys, Seed(1), &|written| Ok(written.to_owned()), &NetworkFindings::default())
}

fn candidates_of(incumbent: &str, toml: &str) -> Vec<Candidate> {
    tried(incumbent, &keys(toml)).expect("candidates")
}

fn changes_of(incumbent: &str, toml: &str) -> Vec<String> {
    candidates_of(incumbent, toml).into_iter().map(|candidate| candidate.change).collect()
}

fn boards(games: u64) -> Vec<Board> {
    let game = |game| random_game(&mut Seed(3).stream("candidates", game), 100).into_iter().step_by(9);
    (0..games).flat_map(game).map(|(position, _)| position.board().clone()).collect()
}

/// Asserts that features of two sets stand for each other one to one.
fn assert_renamed(found: &str, shipped: &str) {
    let [found, expected] = [found, shipped].map(|set| FeatureSet::resolve(set).expect("a definition"));
    assert_eq!(found.num_features(), expected.num_features(), "{shipped}");
    let columns = |set: &FeatureSet| {
        let mut columns: HashMap<u32, Vec<(usize, usize)>> = HashMap::new();
        for (number, board) in boards(12).iter().enumerate() {
            for pov in Perspective::ALL {
                for feature in set.reference(board, pov) {
                    columns.entry(feature).or_default().push((number, pov.index()));
                }
            }
        }
        let mut columns: Vec<_> = columns.into_values().collect();
        columns.sort();
        columns
    };
    assert_eq!(columns(&found), columns(&expected), "{shipped}");
}

#[test]
fn generated_blocks_agree_with_the_reference_encoder() {
    let list = candidates_of("chess768-mirrored", "[grammar]\nlimit = 120\nmax_features = 5000");
    assert_eq!(list.len(), 120);
    let sizes: Vec<u32> = list.iter().map(|candidate| candidate.features).collect();
    assert!(sizes.is_sorted() && sizes.iter().all(|size| (770..=768 + 5000).contains(size)), "{sizes:?}");
    let boards = boards(2);
    let mut active = Vec::new();
    for candidate in &list {
        let set = FeatureSet::resolve(&candidate.set).expect("a definition");
        assert_eq!(set.num_features(), candidate.features, "{}", candidate.change);
        for board in &boards {
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                active.sort_unstable();
                assert_eq!(active, set.reference(board, pov), "{} on {board}", candidate.change);
            }
        }
    }
}

/// The texts of every generated block say the size that the grammar counts with.
#[test]
fn every_block_of_the_grammar_is_a_definition() {
    use crate::features::Composition;
    let sources = Grammar::default().sources;
    for source in sources {
        let grammar = Grammar { sources: vec![source], limit: 100_000, max_features: 300, ..Grammar::default() };
        let blocks = grammar.blocks(Seed(0)).expect("blocks");
        assert!(blocks.len() >= 20, "{source:?}: {}", blocks.len());
        let mut last = 0;
        for block in blocks {
            let size = Composition::of_expression(&block, Default::default()).expect(&block).size();
            assert!(size >= last && (2..=300).contains(&size), "{block}");
            last = size;
        }
    }
}

#[test]
fn the_grammar_keeps_its_bounds_and_its_seed() {
    let drawn = |seed, toml: &str| keys(toml).grammar.expect("a grammar").blocks(Seed(seed)).expect("blocks");
    let toml = "[grammar]\nlimit = 40";
    assert_eq!(drawn(1, toml), drawn(1, toml));
    assert_ne!(drawn(1, toml), drawn(2, toml));
    let single = drawn(1, "[grammar]\nmax_pieces = 1\nlimit = 5000\naxes = [\"file\", \"color\"]");
    assert!(single.iter().all(|block| !block.contains("Q in") && !block.contains("rank(P")), "{single:#?}");
    assert!(single.contains(&"file(P) * color(P) for P in pieces".to_owned()), "{single:#?}");
}

#[test]
fn mirrored_chess768_is_the_shipped_set() {
    let list = candidates_of("chess768", "mirror = [\"king-left\", \"king-right\", \"none\"]");
    let [left, right] = &list[..] else { panic!("{list:?}") };
    assert_eq!((left.change.as_str(), left.kind), ("mirrored, own king on the files a to d", ChangeKind::Mirror));
    assert_renamed(&left.set, "chess768-mirrored");
    let identity = |set: &str| FeatureSet::resolve(set).expect("a definition").identity().clone();
    assert_eq!(identity(&left.set), identity("chess768-mirrored"));
    assert_eq!(identity(&right.set), identity("chess768-hm"));
    let back = candidates_of(&right.set, "mirror = [\"none\"]");
    assert_eq!(identity(&back[0].set), identity("chess768"));
}

/// The layouts of the shipped sets, from the set without buckets, from another layout and on the other half.
#[test]
fn king_buckets_are_those_of_the_shipped_sets() {
    let layouts = "king_buckets = [\"kb2\", \"kb4\", \"kb8\", \"kb16\"]";
    for from in ["chess768-hm", "chess768-kb2-hm"] {
        for candidate in candidates_of(from, layouts) {
            let name = candidate.change.split(['(', ')']).nth(1).expect("a name").to_owned();
            let shipped = format!("chess768-{name}-hm");
            assert_renamed(&candidate.set, &shipped);
            let [found, expected] = [&candidate.set, &shipped].map(|set| FeatureSet::resolve(set).expect("a set"));
            assert_eq!(found.identity(), expected.identity(), "{}", candidate.set);
            let factors = |set| crate::features::Factors::of(set).expect("determined");
            assert_eq!(factors(&found), factors(&expected));
        }
    }
    let other_half = candidates_of("chess768-mirrored", layouts);
    assert_renamed(&other_half[1].set, "chess768-kb4-hm");
    let whole = candidates_of("chess768", "king_buckets = [\"chess768-buckets\"]");
    assert_renamed(&whole[0].set, "chess768-buckets");
    let without = candidates_of("chess768-kb8-hm", "king_buckets = [\"none\"]");
    assert_eq!(without[0].change, "no king buckets");
    assert_renamed(&without[0].set, "chess768-hm");
    let unmirrored = candidates_of("chess768-kb4-hm", "mirror = [\"none\", \"king-left\"]");
    assert_eq!(unmirrored[0].features, 4 * 768);
    assert_renamed(&unmirrored[1].set, "chess768-kb4-hm");
    let half_ka = candidates_of("half-ka", "king_buckets = [\"chess768-buckets\"]");
    assert_renamed(&half_ka[0].set, "chess768-buckets");
}

/// The first block that can have them gets rows for king squares; what is merged becomes a layout in the candidate's
/// text.
#[test]
fn king_squares_are_told_apart_and_merged() {
    let by_square = |incumbent: &str| by_king_square(incumbent).expect("a definition");
    let check = |incumbent: &str, expected: &str| {
        let found = by_square(incumbent).expect("a block");
        let [found, expected] = [&found[..], expected].map(|set| FeatureSet::resolve(set).expect("a definition"));
        assert_eq!(found.identity(), expected.identity(), "{incumbent}");
    };
    let pieces = "color(P) * role(P) * square(P) for P in pieces";
    let threats = "role(P) * color(P) * role(T) * color(T) for P in pieces, T in targets(P)";
    let mirrored = |features: &str| format!("features = \"{features}\"\nmirror = \"king-left\"");
    let squares = mirrored(&format!("square(K) * {pieces}"));
    check("chess768-mirrored", &squares);
    check(&mirrored(&format!("{pieces} + {threats}")), &mirrored(&format!("square(K) * {pieces} + {threats}")));
    check(&squares, &squares);
    let selected = FeatureSet::resolve("piece").expect("shipped").select(&[1, 2]).expect("a selection");
    assert_eq!(by_square(selected.definition()), None);

    let keys = keys("king_buckets = [{ merged = 3 }]");
    let squares = MergedSquares { merged: 3 };
    let thirds = (0..64).map(|square| if square % 8 < 4 { (square / 24).min(2) } else { -1 }).collect();
    let findings = NetworkFindings { layouts: vec![(squares, thirds)], ..NetworkFindings::default() };
    let tried = |incumbent: &str, findings: &NetworkFindings| {
        candidates(incumbent, &keys, Seed(0), &|set| Ok(set.to_owned()), findings).expect("candidates")
    };
    let list = tried("chess768-mirrored", &findings);
    assert_eq!((list[0].change.as_str(), list[0].features), ("3 king buckets (merged)", 3 * 768));
    let table: toml::Table = list[0].set.parse().expect("TOML");
    let numbers = table["buckets"]["layout"].as_array().expect("a table");
    assert_eq!((numbers.len(), numbers[26].as_integer(), numbers[28].as_integer()), (64, Some(1), Some(-1)));
    assert_eq!(tried("chess768-mirrored", &NetworkFindings::default()), []);
    let (_, counted) = keys.before_training();
    assert_eq!(tried("chess768", &counted)[0].features, 3 * 768);
}

/// What a feature does not determine is no factor: of a sum, the term that is active too.
#[test]
fn refined_blocks_share_what_their_features_determine() {
    let check = |incumbent: &str, expected: Option<u32>| {
        let refined = &candidates_of(incumbent, "king_buckets = [\"chess768-buckets\"]")[0].set;
        let set = FeatureSet::resolve(refined).expect("a definition");
        let factors = crate::features::Factors::of(&set).expect("determined");
        assert_eq!(factors.map(|factors| factors.size), expected, "{refined}");
    };
    check("square(P) * role(P) for P in pieces", Some(384));
    check("(role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces", Some(704));
    check("(file(P) + rank(P)) * role(P) for P in pieces", None);
    check("role(P) * count(3 for M in moves(P)) for P in pieces", Some(6));
    check("count(8 for P in pieces if role(P) == pawn)", None);
}

#[test]
fn tables_are_layouts_too() {
    let halves = ["0, 0, 0, 0, 1, 1, 1, 1"; 8].join(", ");
    let toml = format!("king_buckets = [[{halves}]]");
    let list = candidates_of("chess768", &toml);
    assert_eq!((list[0].change.as_str(), list[0].features), ("2 king buckets (layout 1)", 1536));
    let error = tried("chess768", &keys("king_buckets = [[0, 1]]")).expect_err("short").message;
    assert_eq!(error, "layout 1 has 2 numbers; it needs 64");
}

#[test]
fn several_blocks_are_dropped_refined_and_kept_apart() {
    let set = "chess768 + threat-roles + compact";
    assert_eq!(
        changes_of(set, "drop = true").len(),
        2 + FeatureSet::resolve("compact").expect("shipped").blocks().len()
    );
    let two = "chess768-mirrored + threat-roles";
    let list = candidates_of(two, "drop = true\nking_buckets = [\"kb2\"]");
    let changes: Vec<&str> = list.iter().map(|candidate| candidate.change.as_str()).collect();
    let pieces = "color(P) * role(P) * square(P) for P in pieces";
    let threats = "role(P) * color(P) * role(T) * color(T) for P in pieces, T in targets(P)";
    let all = "2 king buckets (kb2)";
    let expected = [
        all.to_owned(),
        format!("{all} of {pieces}"),
        format!("{all} of {threats}"),
        format!("without {pieces}"),
        format!("without {threats}"),
    ];
    assert_eq!(changes, expected);
    let features: Vec<u32> = list.iter().map(|candidate| candidate.features).collect();
    assert_eq!(features, [2 * 912, 1536 + 144, 768 + 288, 144, 768]);
    assert_renamed(&list[4].set, "chess768-mirrored");
    assert_renamed(&list[3].set, "threat-roles");
    assert_eq!(changes_of("chess768", "drop = true"), [] as [&str; 0], "a set of one block");
    let sizes: Vec<(u32, &str)> = list[3..].iter().map(|each| (each.features, each.change.as_str())).collect();
    assert_eq!(sizes, [(144, &format!("without {pieces}")[..]), (768, &format!("without {threats}")[..])]);
}

#[test]
fn added_blocks_see_the_incumbents_board() {
    let toml = "blocks = [\"square(P) for P in pieces if role(P) == pawn\", \"threat-roles\", \"chess768\"]";
    let list = candidates_of("chess768-mirrored", toml);
    let changes: Vec<&str> = list.iter().map(|candidate| candidate.change.as_str()).collect();
    let block = "square(P) for P in pieces if role(P) == pawn";
    assert_eq!(changes, [format!("plus {block}").as_str(), "plus threat-roles", "plus chess768"]);
    let expected =
        format!("features = \"color(P) * role(P) * square(P) for P in pieces + {block}\"\nmirror = \"king-left\"");
    let [found, expected] = [&list[0].set, &expected].map(|set| FeatureSet::resolve(set).expect("a definition"));
    assert_eq!(found.identity(), expected.identity());
    assert_renamed(&list[1].set, "chess768-mirrored + threat-roles");
}

/// A definition is tried once, whatever key it comes from, and never the incumbent.
#[test]
fn definitions_are_tried_once() {
    let toml = "blocks = [\"file(P) for P in pieces\", \"file(Q) for Q in pieces\", \"piece\", \"piece + rank(P) for P in pieces\"]
        mirror = [\"none\"]";
    let changes = changes_of("piece + compact", toml);
    assert_eq!(changes, ["plus file(P) for P in pieces", "plus piece + rank(P) for P in pieces"]);
}

#[test]
fn the_most_important_features_are_kept() {
    let importance: Vec<f64> = (0..768 + 144).map(|feature| f64::from((feature * 7) % 10)).collect();
    let keys = keys("select = [100, 144]");
    let findings = NetworkFindings { importance: Some(importance.clone()), ..NetworkFindings::default() };
    let list = candidates("chess768 + threat-roles", &keys, Seed(0), &|set| Ok(set.to_owned()), &findings)
        .expect("candidates");
    let sizes: Vec<u32> = list.iter().map(|candidate| candidate.features).collect();
    assert_eq!(sizes, [100 + 144, 768 + 100, 144 + 144]);
    assert!(list[0].change.starts_with("the 100 features of greatest importance of color(P)"), "{}", list[0].change);
    let mut order: Vec<u32> = (0..768).collect();
    order.sort_by(|a, b| importance[*b as usize].total_cmp(&importance[*a as usize]).then(a.cmp(b)));
    order.truncate(100);
    order.sort_unstable();
    let [set, whole] = [&list[0].set, "chess768"].map(|set| FeatureSet::resolve(set).expect("a set"));
    for board in boards(2) {
        let kept =
            set.reference(&board, Perspective::White).into_iter().filter_map(|feature| order.get(feature as usize));
        let important = whole.reference(&board, Perspective::White).into_iter();
        assert!(kept.copied().eq(important.filter(|feature| order.contains(feature))), "{board}");
    }
    let again = candidates_of(&list[0].set, "mirror = [\"king-left\"]\ndrop = true");
    assert_eq!(again.len(), 3, "the selection stays as it is: {again:?}");
}

#[test]
fn mistakes_name_their_key() {
    let check = |toml: &str, key: &str, expected: &str| {
        let error = tried("chess768", &keys(toml)).expect_err(toml);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(expected), "{error}");
    };
    check("blocks = [\"sqare(P) for P in pieces\"]", "blocks", "there is no axis `sqare`");
    check("blocks = [\"no-such-set\"]", "blocks", "the block no-such-set cannot be added");
    check("king_buckets = [\"kb5\"]", "king_buckets", "there is no layout kb5");
    check("king_buckets = [\"chess768\"]", "king_buckets", "has 0 tables of buckets");
    check("king_buckets = [[0, 0, 0]]", "king_buckets", "layout 1 has 3 numbers");
    check("[grammar]\nmax_features = 1", "grammar", "the grammar yields no block");
    check("[grammar]\naxes = []\nsources = [\"pieces\"]", "grammar", "add sources or axes");
    check("select = [5]", "select", "importance");
    let error = keys("king_buckets = [{ merged = 64 }]").check(Seed(0)).expect_err("nothing to merge").to_string();
    assert_eq!(error, "king squares are merged into 2 to 63 buckets, not 64");
    let value: serde_json::Value = toml::from_str("king_buckets = [{ merge = 8 }]").expect("TOML");
    let error = crate::json::from_value::<CandidateKeys>(&value, "search").expect_err("no such key").to_string();
    assert!(error.contains("a table of buckets, or { merged = 8 }"), "{error}");
    let error = tried("chess7", &keys("drop = true")).expect_err("no such set").to_string();
    assert!(error.starts_with("the incumbent cannot be used"), "{error}");
    let error = keys("select = [0]").check(Seed(0)).expect_err("nothing").to_string();
    assert_eq!(error, "select keeps at least 1 feature of a block");
    let error = keys("blocks = [\"piece\", \"piece\"]").check(Seed(0)).expect_err("twice").to_string();
    assert_eq!(error, "blocks lists 'piece' twice");
    assert!(keys("[grammar]\nlimit = 0").check(Seed(0)).is_err());
    assert!(keys("king_buckets = [\"kb4\", \"none\"]\nselect = [9]\n[grammar]").check(Seed(0)).is_ok());
}
