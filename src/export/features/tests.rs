//! The texts of exported encoders.

use crate::export::{Export, ExportError, Language};
use crate::features::{FeatureSet, available_names};

fn source(request: &str, language: Language) -> String {
    let set = FeatureSet::resolve(request).expect("a set");
    Export::new(&set, language).features().expect("small tables")
}

#[test]
fn sets_of_single_pieces_are_sums() {
    let text = source("chess768-buckets", Language::C);
    assert!(text.contains("fsb_append(out, start + (color * 6 + role) * 64 + square, 1);"), "{text}");
    assert!(text.contains("fsb_orient(pov, king, 56u, UINT64_C(0x"), "{text}");
    assert!(!text.contains("fsb_pieces") && text.lines().count() < 300, "{text}");
    let text = source("half-ka-v2-hm", Language::Rust);
    assert!(text.contains("out.append(u64::from(start + first + square), 1);"), "{text}");
    let selected = "square(P, a1..d8) * role(P) for P in pieces if color(P) == own";
    assert!(source(selected, Language::C).contains("part != FSB_NONE"));
}

#[test]
fn no_shipped_source_is_long() {
    for name in available_names() {
        let set = FeatureSet::resolve(&name).expect("shipped");
        for language in Language::ALL {
            let text = Export::new(&set, language).features().expect("small tables");
            assert!(text.len() < 1 << 20, "{name} {language:?} {} bytes", text.len());
        }
    }
}

#[test]
fn large_tables_are_refused() {
    let text = "pair(role(P) * color(P) * square(P), role(Q) * color(Q) * square(Q)) for P in pieces, Q in pieces \
                if square(P) < square(Q)";
    let set = FeatureSet::resolve(text).expect("a set");
    match Export::new(&set, Language::C).features() {
        Err(error @ ExportError::LargeTables { .. }) => assert!(error.to_string().contains("fsbench select")),
        other => panic!("{:?}", other.map(|text| text.len())),
    }
}

#[test]
fn names_are_literals_of_c() {
    assert_eq!(super::c_string("a\"b\\ caf\u{e9}\u{301} ??/ \u{7}"), "\"a\\\"b\\\\ caf\u{e9}\u{301} \\?\\?/ \\007\"");
}
