//! Matches played in shards.

use super::*;

/// The document of a match and its games without what differs from one time to the next, or by shards.
fn reproducible(folder: &Path, arguments: &str, out: &str) -> (Value, String) {
    let mut document = json(folder, &format!("{arguments} --out {out}"));
    document["players"].as_array_mut().unwrap().iter_mut().for_each(|player| player["nps"] = Value::Null);
    document["resumed"] = Value::Null;
    (document, timeless(folder, out))
}

/// Shards, played in any order and some of them at once, make the match of one process.
#[test]
fn shards_make_the_match_of_one_process() {
    let folder = bench();
    let arguments = "a.safetensors b.safetensors --nodes 60 --pairs 7 --hash 1";
    let whole = reproducible(folder.path(), arguments, "whole");
    let mut children: Vec<_> = [2, 0]
        .map(|shard| {
            let mut command = command(folder.path(), &format!("{arguments} --out parts --shard {shard}/3"));
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .into();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let shard = json(folder.path(), &format!("{arguments} --out parts --shard 1/3"));
    assert_eq!((&shard["first_pair"], &shard["last_pair"]), (&3.into(), &4.into()), "{shard}");
    // The journals of the shards hold every game once, each in the slice of its shard.
    let mut games = Vec::new();
    for (name, pairs) in [("pairs-1-2", 0..2), ("pairs-3-4", 2..4), ("pairs-5-7", 4..7)] {
        let text = fs::read_to_string(folder.path().join("parts").join(name).join("games.journal")).unwrap();
        for line in text.lines().skip(1) {
            let line = without_line_sum(line).unwrap();
            let game = serde_json::from_str::<Value>(line).unwrap()["game"].as_u64().unwrap();
            assert!(pairs.contains(&(game / 2)), "{name} has game {game}");
            games.push(game);
        }
    }
    games.sort_unstable();
    assert_eq!(games, (0..14).collect::<Vec<_>>());
    assert_eq!(reproducible(folder.path(), arguments, "parts"), whole);
    refused(folder.path(), &format!("{arguments} --shard 3/3 --out parts"), 2, "numbered from 0");
}

/// Shards that begin at once take one cost of a node, so that their games are of one match.
#[test]
fn shards_at_equal_cost_share_the_cost() {
    let folder = bench();
    let arguments = "a.safetensors b.safetensors --equal-cost 60 --pairs 4 --hash 1 --out parts";
    let shards = [0, 1].map(|shard| {
        let mut command = command(folder.path(), &format!("{arguments} --shard {shard}/2"));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for shard in shards {
        let output = shard.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let document = json(folder.path(), arguments);
    let games: u64 = ["wins", "losses", "draws"].iter().map(|name| document["games"][name].as_u64().unwrap()).sum();
    assert_eq!(games, 8);
    let names = fs::read_dir(folder.path().join("parts")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let [cost] = names.iter().filter(|name| name.contains("cost-")).collect::<Vec<_>>()[..] else {
        panic!("{names:?}")
    };
    // A damaged one is refused before anything is measured.
    fs::write(folder.path().join("parts").join(cost), "{").unwrap();
    refused(folder.path(), arguments, 1, cost);
}

/// A sequential test is judged between shards: it stops where one process's test does, and later shards play nothing.
#[test]
fn a_sequential_test_is_judged_between_shards() {
    let folder = bench();
    let arguments = "a.safetensors b.safetensors --nodes 40 --pairs 400 --sprt -200,0 --model logistic --hash 1";
    let whole = reproducible(folder.path(), arguments, "whole");
    let pairs = ["ll", "ld", "wl_dd", "wd", "ww"].map(|name| whole.0["pairs"][name].as_u64().unwrap());
    let decided = pairs.iter().sum::<u64>();
    let mut shards = 0;
    while json(folder.path(), &format!("{arguments} --out parts --shard {shards}/40"))["pairs"].is_object() {
        shards += 1;
    }
    assert_eq!(shards, decided.div_ceil(10), "the test was decided by pair {decided}");
    let again = reproducible(folder.path(), arguments, "parts");
    assert_eq!(again, whole);
}
