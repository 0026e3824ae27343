//! Arranges steps in job arrays: one a stage, so far as their needs allow. A task of an array does one step, or all
//! measures of a network.
//!
//! A task has the number of its training, so that it can wait for the task of the same number (`aftercorr`); steps that
//! all its tasks need are waited for with `afterok`. Where tasks need different steps, the array waits until those
//! arrays have ended (`afterany`), and a task whose needs failed says so and ends.

use std::collections::BTreeSet;

use super::SlurmError;
use crate::experiment::listed_steps::ListedStep;
use crate::units::SortedMap;

/// A task of a job array.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrayTask {
    pub job: u64,
    pub task: u32,
}

/// A job array to submit.
#[derive(Clone, Debug, PartialEq)]
pub struct JobArray<'a> {
    pub stage: String,
    /// Whether its tasks measure time.
    pub alone: bool,
    /// Whether each of its tasks trains on a GPU.
    pub gpu: bool,
    /// Keys of the steps that a task does one after the other, by its number.
    pub tasks: SortedMap<u32, Vec<&'a str>>,
    after: After,
}

/// The condition that an array waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct After {
    /// The array whose tasks of the same numbers must have succeeded.
    corresponding: Option<u64>,
    /// Tasks that must have succeeded.
    succeeded: BTreeSet<ArrayTask>,
    /// Arrays that must have ended.
    ended: BTreeSet<u64>,
}

impl JobArray<'_> {
    /// As `sbatch --dependency` takes it.
    pub fn dependency(&self) -> Option<String> {
        let After { corresponding, succeeded, ended } = &self.after;
        let mut terms: Vec<String> = corresponding.iter().map(|job| format!("aftercorr:{job}")).collect();
        if !succeeded.is_empty() {
            let places = succeeded.iter().map(|place| format!(":{}_{}", place.job, place.task));
            terms.push(format!("afterok{}", places.collect::<String>()));
        }
        if !ended.is_empty() {
            terms.push(super::commands::after_any(ended));
        }
        (!terms.is_empty()).then(|| terms.join(","))
    }

    /// The arrays that it waits for.
    pub fn needed_jobs(&self) -> impl Iterator<Item = u64> {
        let After { corresponding, succeeded, ended } = &self.after;
        corresponding.iter().copied().chain(succeeded.iter().map(|place| place.job)).chain(ended.iter().copied())
    }

    /// The numbers of its tasks, as `sbatch --array` takes them.
    pub fn numbers(&self) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &task in self.tasks.keys() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == task => *last = task,
                _ => ranges.push((task, task)),
            }
        }
        let range =
            |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
    }
}

/// Steps that one task does.
struct Task<'a> {
    /// Its number, unless another task of its array has it.
    number: u32,
    keys: Vec<&'a str>,
    needs: BTreeSet<&'a str>,
}

/// A task, and where its needs are done.
type WithNeeds<'a> = (Task<'a>, BTreeSet<ArrayTask>);

/// The stages in the order in which they are submitted.
const STAGES: [&str; 7] = ["train", "measure", "speed", "match-cost", "match-shards", "match", "timed-match"];

fn stage_of(step: &ListedStep) -> &'static str {
    match (step.kind, step.alone) {
        ("train", _) => "train",
        ("match cost", _) => "match-cost",
        ("match shard", _) => "match-shards",
        ("match", false) => "match",
        ("match", true) => "timed-match",
        (_, false) => "measure",
        (_, true) => "speed",
    }
}

/// Arranges the missing steps in arrays. `submit` gets one after the other and returns its job; `live`: where steps are
/// that are in the queue already; `largest`: the largest number of a task.
pub fn arrange<'a>(
    missing: &[&'a ListedStep],
    live: &dyn Fn(&str) -> Option<ArrayTask>,
    largest: u32,
    submit: &mut dyn FnMut(&JobArray<'a>) -> Result<u64, SlurmError>,
) -> Result<(), SlurmError> {
    let missing_keys: BTreeSet<&str> = missing.iter().map(|step| step.key.as_str()).collect();
    let numbers = training_numbers(missing, live);
    let mut places: SortedMap<&str, ArrayTask> = SortedMap::new();
    for stage in STAGES {
        let mut left: Vec<&ListedStep> = missing.iter().copied().filter(|step| stage_of(step) == stage).collect();
        let alone = left.first().is_some_and(|step| step.alone);
        let mut round = 1;
        while !left.is_empty() {
            // Steps that wait for others of their stage come in a later round.
            let waits = |step: &ListedStep| {
                let unplaced =
                    |need: &String| missing_keys.contains(need.as_str()) && !places.contains_key(need.as_str());
                step.needs.iter().any(unplaced)
            };
            let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(|step| waits(step));
            if now.is_empty() {
                // A circle cannot be; a step's needs come before it.
                break;
            }
            left = later;
            let name = if round == 1 { stage.to_owned() } else { format!("{stage}-{round}") };
            round += 1;
            let place_of = |key: &str| places.get(key).copied().or_else(|| live(key));
            let together = stage == "measure" || stage == "speed";
            let mut round_arrays = Vec::new();
            for gpu in [false, true] {
                let alike: Vec<&ListedStep> = now.iter().copied().filter(|step| step.gpu == gpu).collect();
                let tasks = tasks(&alike, &numbers, together);
                round_arrays.extend(arrays(&name, [alone, gpu], tasks, &place_of, largest));
            }
            for array in round_arrays {
                let job = submit(&array)?;
                for (&task, keys) in &array.tasks {
                    places.extend(keys.iter().map(|&key| (key, ArrayTask { job, task })));
                }
            }
        }
    }
    Ok(())
}

/// A training's number: as it stands in the queue, else the number of the training that it begins with, else the next.
fn training_numbers<'a>(
    missing: &[&'a ListedStep],
    live: &dyn Fn(&str) -> Option<ArrayTask>,
) -> SortedMap<&'a str, u32> {
    let mut numbers = SortedMap::new();
    let mut next = 0;
    for step in missing {
        let own = if step.kind == "train" { Some(&step.key) } else { step.needs.first() };
        let Some(own) = own.filter(|own| !numbers.contains_key(own.as_str())) else { continue };
        let begins_with = step.needs.first().filter(|_| step.kind == "train");
        let known = live(own).map(|place| place.task);
        let number = known.or_else(|| numbers.get(begins_with?.as_str()).copied()).unwrap_or(next);
        next = next.max(number + 1);
        numbers.insert(own.as_str(), number);
    }
    numbers
}

/// The tasks of a round; `together`: one for all steps of a training, else one a step.
fn tasks<'a>(steps: &[&'a ListedStep], numbers: &SortedMap<&str, u32>, together: bool) -> Vec<Task<'a>> {
    let mut tasks: Vec<Task<'a>> = Vec::new();
    for step in steps {
        let own = if step.kind == "train" { Some(step.key.as_str()) } else { step.needs.first().map(String::as_str) };
        let number = own.and_then(|own| numbers.get(own).copied());
        let needs: BTreeSet<&str> = step.needs.iter().map(String::as_str).collect();
        let same = tasks.iter_mut().find(|task| together && number == Some(task.number) && task.needs == needs);
        match same {
            Some(task) => task.keys.push(&step.key),
            None => {
                let unused = tasks.iter().map(|task| task.number + 1).max().unwrap_or(0);
                tasks.push(Task { number: number.unwrap_or(unused), keys: vec![&step.key], needs });
            }
        }
    }
    tasks
}

/// Groups the tasks of a round: those that can begin at once, those that wait for one task each, and the others.
fn arrays<'a>(
    stage: &str,
    [alone, gpu]: [bool; 2],
    tasks: Vec<Task<'a>>,
    place_of: &dyn Fn(&str) -> Option<ArrayTask>,
    largest: u32,
) -> Vec<JobArray<'a>> {
    let size = largest.saturating_add(1);
    let with_places = |task: Task<'a>| {
        let places = task.needs.iter().filter_map(|need| place_of(need)).collect();
        (task, places)
    };
    let with_needs: Vec<WithNeeds<'a>> = tasks.into_iter().map(with_places).collect();
    let (free, bound): (Vec<_>, Vec<_>) = with_needs.into_iter().partition(|(_, needs)| needs.is_empty());
    let mut common = bound.iter().map(|(_, needs)| needs.clone()).reduce(|a, b| &a & &b).unwrap_or_default();
    if let [(task, needs)] = &bound[..]
        && let Some(own) = needs.iter().find(|place| place.task == task.number % size)
    {
        // A single task corresponds to its training, as it would among others.
        common.remove(own);
    }
    let own_only =
        |(task, needs): &WithNeeds<'_>| (needs - &common).into_iter().all(|place| place.task == task.number % size);
    let are_distinct = |tasks: &[WithNeeds<'_>]| {
        tasks.iter().map(|(task, _)| task.number).collect::<BTreeSet<_>>().len() == tasks.len()
    };
    let mut groups: SortedMap<(u8, Option<u64>), Vec<WithNeeds<'a>>> = SortedMap::new();
    groups.get_or_default((0, None)).extend(free);
    // Arrays that correspond, where every other need is common to all.
    let corresponds = are_distinct(&bound) && bound.iter().all(own_only);
    for (task, needs) in bound {
        let others = &needs - &common;
        let jobs: BTreeSet<u64> = others.iter().map(|place| place.job).collect();
        let group = match (corresponds, jobs.len()) {
            (true, 0) => (1, None),
            (true, 1) => (1, jobs.first().copied()),
            _ if others.is_empty() => (1, None),
            _ => (2, None),
        };
        groups.get_or_default(group).push((task, needs));
    }
    let mut arrays = Vec::new();
    for ((kind, corresponding), group) in groups {
        let after = match kind {
            0 => After::default(),
            1 => After { corresponding, succeeded: common.clone(), ended: BTreeSet::new() },
            _ => After {
                ended: group.iter().flat_map(|(_, needs)| needs.iter().map(|place| place.job)).collect(),
                ..After::default()
            },
        };
        let keep = are_distinct(&group);
        let mut parts: SortedMap<u32, SortedMap<u32, Vec<&'a str>>> = SortedMap::new();
        for ((task, _), ordinal) in group.into_iter().zip(0..) {
            let number = if keep { task.number } else { ordinal };
            parts.get_or_default(number / size).insert(number % size, task.keys);
        }
        let array = |tasks| JobArray { stage: stage.to_owned(), alone, gpu, tasks, after: after.clone() };
        arrays.extend(parts.into_values().map(array));
    }
    arrays
}
