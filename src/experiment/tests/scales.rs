//! Scales, several data files, and published results.

use super::*;
use crate::units::Seed;

fn parse(text: &str, scale: Option<&str>) -> Result<Experiment, ExperimentError> {
    Experiment::parse(Path::new("e.toml"), text.to_owned(), scale)
}

fn problem(text: &str, scale: Option<&str>) -> String {
    parse(text, scale).expect_err("a mistake").to_string()
}

#[test]
fn a_scale_replaces_settings_key_by_key() {
    let text = format!(
        "{TEXT}\n[scale.cpu]\n[scale.gpu]\nseeds = [1, 2, 7]\ndata = [\"a.fsd\", \"b.fsd@0.5\"]\n\
         [scale.gpu.train]\nl1 = 512\n[scale.gpu.train.recipe]\nwarm_up = 5\n[scale.gpu.match]\nnodes = 50\n"
    );
    let cpu = parse(&text, None).expect("an experiment");
    assert_eq!((cpu.name.as_str(), cpu.train.l1, cpu.seeds.len()), ("small-cpu", 8, 2));
    assert!(cpu.matches.is_none() && cpu.data.len() == 1);
    let gpu = parse(&text, Some("gpu")).expect("an experiment");
    assert_eq!((gpu.name.as_str(), gpu.train.l1, gpu.train.hidden.clone()), ("small-gpu", 512, vec![4]));
    assert_eq!((gpu.train.optimisation.warm_up, gpu.seeds, gpu.data.len()), (5, vec![Seed(1), Seed(2), Seed(7)], 2));
    assert!(gpu.matches.is_some() && gpu.rows.iter().all(|row| row.settings.l1 == 512));
    assert_eq!(parse(TEXT, None).expect("without scales").name, "small");
}

#[test]
fn mistakes_in_scales_are_named() {
    let scaled = |lines: &str| format!("{TEXT}\n{lines}");
    assert!(problem(TEXT, Some("gpu")).contains("no table [scale.gpu] in this file"));
    let found = problem(&scaled("[scale.gpu]\n[scale.full]"), None);
    assert!(found.contains("no scale `cpu`; choose one by --scale: full, gpu"), "{found}");
    assert!(problem(&scaled("[scale.cpu]\nname = \"x\""), None).contains("cannot have a name"));
    assert!(problem(&scaled("[scale]\ncpu = 3"), None).contains("scale.cpu must be a table"));
    // A mistake in a scale is found where it is written.
    let text = scaled("[scale.cpu.train]\nwidth = 3");
    let line = text.lines().position(|line| line == "width = 3").expect("written") + 1;
    let found = problem(&text, None);
    assert!(found.starts_with(&format!("e.toml:{line}:1")) && found.contains("width"), "{found}");
}

#[test]
fn several_files_are_one_data_set() {
    let folder = ExperimentFolder::new();
    let mut executor = FakeExecutor::default();
    std::fs::write(folder.folder.path().join("more.pgn"), "1. d4 *").expect("written");
    let text = TEXT.replace("data  = \"games.pgn\"", "data = [\"games.pgn\", \"more.pgn@0.25\"]");
    let inputs = folder.experiment(&text).expect("an experiment").inputs().expect("both exist");
    let names: Vec<_> =
        inputs.iter().map(|input| (input.origin.path().file_name().map(OsStr::to_owned), input.weight)).collect();
    assert_eq!(names, [(Some("games.pgn".into()), 1.0), (Some("more.pgn".into()), 0.25)]);
    let results = folder.run(&text, &mut executor).expect("done");
    assert_eq!(results.study.data, "games.pgn, more.pgn@0.25");
    // Another weight is other data.
    let trained = executor.calls.values().sum::<u32>();
    folder.run(&text, &mut executor).expect("done");
    assert_eq!(executor.calls.values().sum::<u32>(), trained);
    folder.run(&text.replace("@0.25", "@0.5"), &mut executor).expect("done");
    assert_eq!(executor.calls.values().sum::<u32>(), 2 * trained);

    let refused = |data: &str| {
        let text = TEXT.replace("data  = \"games.pgn\"", &format!("data = {data}"));
        folder.experiment(&text).and_then(|experiment| experiment.inputs()).expect_err("refused").to_string()
    };
    assert!(refused("[]").contains("data lists no file"));
    assert!(refused("[\"games.pgn\", \"none.pgn@2\"]").contains("no file none.pgn"));
    assert!(refused("[\"games.pgn@0\"]").contains("the weight 0 must be above 0"));
}

#[test]
fn published_results_belong_to_sets() {
    let published = |lines: &str| format!("{TEXT}\n[published]\nsource = \"a paper\"\n{lines}");
    let text =
        published("loss = { piece = [0.003, 0.00001], compact = [0.004, 0.0] }\nelo = { compact = [-20.0, 5.0] }");
    let experiment = parse(&text, None).expect("an experiment");
    assert_eq!(experiment.published.expect("published").loss["compact"], [0.004, 0.0]);
    assert!(problem(&published("loss = { pieces = [0.003, 0.0] }"), None).contains("none of the experiment's sets"));
    assert!(problem(&published("loss = { piece = [0.003, -1.0] }"), None).contains("its uncertainty"));
    assert!(problem(&published("loss = { piece = [0.0, 1.0] }"), None).contains("must be above 0"));
}

/// Every experiment of the repository is valid at every scale, and its sets exist.
#[test]
fn shipped_experiments_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let mut scaled = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("listed").path();
        if path.extension() != Some(OsStr::new("toml")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let table: toml::Table = toml::from_str(&text).expect("TOML");
        let scales: Vec<Option<&str>> = match table.get("scale").and_then(toml::Value::as_table) {
            Some(scales) => scales.keys().map(|name| Some(name.as_str())).collect(),
            None => vec![None],
        };
        scaled += usize::from(scales.len() > 1);
        for scale in scales {
            let experiment =
                Experiment::read(&path, scale).unwrap_or_else(|error| panic!("{} {scale:?}: {error}", path.display()));
            for row in &experiment.rows {
                crate::features::FeatureSet::resolve(row.set.get_ref()).expect("a set");
            }
        }
    }
    assert!(scaled >= 2, "{scaled}");
}
