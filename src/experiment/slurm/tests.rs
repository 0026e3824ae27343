//! How steps become job arrays.

use super::stages::{ArrayTask, JobArray, arrange};
use crate::experiment::listed_steps::ListedStep;
use crate::units::SortedMap;

fn step(key: &str, kind: &'static str, needs: &[&str]) -> ListedStep {
    ListedStep {
        key: key.into(),
        kind,
        name: key.into(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        done: false,
        estimated_seconds: None,
        threads: 1,
        alone: ["speed", "equal speed", "match cost"].contains(&kind),
        gpu: false,
    }
}

/// Each array as `STAGE NUMBERS KEYS DEPENDENCY`; jobs are numbered from 1, and `live` gives the queue's.
fn arranged(steps: &[ListedStep], live: &[(&str, ArrayTask)], largest: u32) -> Vec<String> {
    let live: SortedMap<&str, ArrayTask> = live.iter().copied().collect();
    let missing: Vec<&ListedStep> = steps.iter().filter(|step| !live.contains_key(step.key.as_str())).collect();
    let mut found = Vec::new();
    arrange(&missing, &|key| live.get(key).copied(), largest, &mut |array: &JobArray<'_>| {
        let keys: Vec<String> = array.tasks.values().map(|keys| keys.join("+")).collect();
        let dependency = array.dependency().unwrap_or_default();
        let gpu = if array.gpu { " on a GPU" } else { "" };
        let text = format!("{}{gpu} {} {} {dependency}", array.stage, array.numbers(), keys.join(" "));
        found.push(text.trim_end().to_owned());
        Ok(found.len() as u64)
    })
    .expect("arranged");
    found
}

/// Two sets and two seeds, with measures, matches and one chain of trainings.
fn experiment() -> Vec<ListedStep> {
    let mut steps = vec![step("u", "updates", &[])];
    for seed in ["1", "2"] {
        let [a, b, c] = ["a", "b", "c"].map(|set| format!("{set}{seed}"));
        steps.push(step(&a, "train", &[]));
        steps.push(step(&format!("{a}v"), "validation", &[&a]));
        steps.push(step(&format!("{a}e"), "error", &[&a]));
        steps.push(step(&format!("{a}s"), "speed", &[&a]));
        steps.push(step(&b, "train", &[]));
        steps.push(step(&format!("{b}v"), "validation", &[&b]));
        steps.push(step(&c, "train", &[&a]));
        steps.push(step(&format!("{b}m"), "match", &[&b, &a]));
    }
    steps
}

#[test]
fn a_stage_is_an_array_that_corresponds_to_the_trainings() {
    let expected = [
        "train 0-3 a1 b1 a2 b2",
        "train-2 0,2 c1 c2 aftercorr:1",
        "measure 0 u",
        "measure 0-3 a1v+a1e b1v a2v+a2e b2v aftercorr:1",
        "speed 0,2 a1s a2s aftercorr:1",
        // Each match needs another reference.
        "match 1,3 b1m b2m afterany:1",
    ];
    assert_eq!(arranged(&experiment(), &[], 1_000), expected);
}

/// Trainings with and without a GPU are asked for apart, and may begin with each other's networks.
#[test]
fn trainings_on_gpus_have_arrays_of_their_own() {
    let mut steps = experiment();
    for step in &mut steps {
        step.gpu = ["a1", "b2", "c2"].contains(&step.key.as_str());
    }
    let expected = [
        "train 1-2 b1 a2",
        "train on a GPU 0,3 a1 b2",
        "train-2 0 c1 aftercorr:2",
        "train-2 on a GPU 2 c2 aftercorr:1",
        "measure 0 u",
    ];
    let found = arranged(&steps, &[], 1_000);
    assert_eq!(found[..5], expected);
    assert!(found[5..].iter().all(|array| !array.contains("on a GPU")), "{found:?}");
}

#[test]
fn what_all_tasks_need_is_waited_for_by_name() {
    let mut steps = vec![step("a", "train", &[]), step("b", "train", &[]), step("c", "train", &[])];
    steps.extend([("bm", "b"), ("cm", "c")].map(|(key, run)| step(key, "match", &[run, "a"])));
    steps.extend(["s1", "s2", "s3"].map(|key| step(key, "match shard", &["b", "a"])));
    steps.push(step("s4", "match shard", &["b", "a", "s1", "s2", "s3"]));
    let expected = [
        "train 0-2 a b c",
        "match-shards 0-2 s1 s2 s3 afterok:1_0:1_1",
        "match-shards-2 1 s4 aftercorr:1,afterok:1_0:2_0:2_1:2_2",
        "match 1-2 bm cm aftercorr:1,afterok:1_0",
    ];
    assert_eq!(arranged(&steps, &[], 1_000), expected);
}

/// Steps that are done need no waiting; steps in the queue are waited for where they are.
#[test]
fn earlier_submissions_are_taken_into_account() {
    let mut steps = experiment();
    steps.retain(|step| step.key.ends_with(['v', 'e']) || step.key == "b1");
    let live = [("b1", ArrayTask { job: 70, task: 5 })];
    let expected = ["measure 0-1,6 a1v+a1e a2v+a2e b2v", "measure 5 b1v aftercorr:70"];
    let found = arranged(&steps, &live, 1_000);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1], expected[1]);
    assert!(found[0].contains("a1v+a1e") && found[0].contains("b2v") && !found[0].contains("after"), "{found:?}");
}

#[test]
fn an_array_has_no_more_tasks_than_the_cluster_allows() {
    let steps: Vec<ListedStep> = (0..5)
        .flat_map(|run| {
            let train = format!("t{run}");
            [step(&train, "train", &[]), step(&format!("v{run}"), "validation", &[&train])]
        })
        .collect();
    let expected = [
        "train 0-1 t0 t1",
        "train 0-1 t2 t3",
        "train 0 t4",
        "measure 0-1 v0 v1 aftercorr:1",
        "measure 0-1 v2 v3 aftercorr:2",
        "measure 0 v4 aftercorr:3",
    ];
    assert_eq!(arranged(&steps, &[], 1), expected);
}
