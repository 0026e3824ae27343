//! The golden file is what `fsbench encode` and `fsbench delta` say, and covers all kinds of moves.

use fsbench::chess::{Perspective, fen_of, legal_move, parse_fen};
use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;
use serde_json::Value;
use shakmaty::Position;

fn list(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as u32).collect()
}

#[test]
fn golden_lines_hold_what_the_reference_says() {
    for name in ["half-ka-v2-hm", "threat-roles", "mobility-bitset"] {
        let set = FeatureSet::resolve(name).unwrap();
        let files = Export::new(&set, Language::C).files().unwrap();
        let golden = files.iter().find(|file| file.name == "golden.jsonl").unwrap();
        let text = std::str::from_utf8(&golden.content).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3000);
        let mut kinds = [0; 3];
        for line in &lines {
            let position = parse_fen(line["fen"].as_str().unwrap()).unwrap();
            let reference = Perspective::ALL.map(|pov| set.reference(position.board(), pov));
            assert_eq!([list(&line["white"]), list(&line["black"])], reference, "{line}");
            let Some(mv) = line["move"].as_str() else { continue };
            let mv = legal_move(mv, &position).unwrap();
            kinds[0] += u32::from(mv.is_castle());
            kinds[1] += u32::from(mv.is_en_passant());
            kinds[2] += u32::from(mv.is_promotion());
            let after = position.play(mv).unwrap();
            assert_eq!(line["after"], fen_of(&after));
            for (pov, before) in Perspective::ALL.into_iter().zip(&reference) {
                let delta = &line["delta"][["white", "black"][pov.index()]];
                let mut rows = before.clone();
                for removed in list(&delta["removed"]) {
                    rows.remove(rows.iter().position(|row| *row == removed).unwrap());
                }
                rows.extend(list(&delta["added"]));
                rows.sort_unstable();
                assert_eq!(rows, set.reference(after.board(), pov), "{line}");
            }
        }
        assert!(kinds.iter().all(|kind| *kind >= 5), "{kinds:?}");
    }
}
