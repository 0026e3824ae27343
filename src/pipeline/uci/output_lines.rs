//! Parses the lines an engine writes: scores and options.

use crate::data::Eval;
use crate::units::Centipawn;

/// The facts of an `info` line about the search.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct InfoLine {
    /// The side to move's view; `None` if the line has no score.
    score: Option<ReportedScore>,
    pub depth: Option<u32>,
    pub nodes: Option<u64>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct ReportedScore {
    eval: Eval,
    /// Whether it is a lower or an upper bound.
    is_bound: bool,
}

impl InfoLine {
    /// Takes over the facts of a later line. A bound replaces no exact score: it belongs to an unfinished iteration.
    pub fn update(&mut self, later: InfoLine) {
        let keeps_score = match (self.score, later.score) {
            (_, None) => true,
            (Some(score), Some(later)) => later.is_bound && !score.is_bound,
            (None, Some(_)) => false,
        };
        if !keeps_score {
            self.score = later.score;
            self.depth = later.depth.or(self.depth);
        }
        self.nodes = later.nodes.or(self.nodes);
    }

    /// The last exact score, or the last bound if there is none.
    pub fn eval(&self) -> Option<Eval> {
        self.score.map(|score| score.eval)
    }
}

/// An `info` line, unless it belongs to another line than the first or is a message. Its words may come in any order.
pub fn info_line(info: &str) -> Option<InfoLine> {
    let mut words = info.split_ascii_whitespace();
    let mut line = InfoLine::default();
    let mut is_bound = false;
    while let Some(word) = words.next() {
        match word {
            // A word that is no number stays, as it may be the next key.
            "score" => {
                let kind = words.next();
                if let Some(value) = words.clone().next().and_then(|value| value.parse().ok()) {
                    words.next();
                    let eval = score(kind.unwrap_or_default(), value);
                    line.score = eval.map(|eval| ReportedScore { eval, is_bound: false });
                }
            }
            "lowerbound" | "upperbound" => is_bound = true,
            "multipv" if words.next() != Some("1") => return None,
            "string" => return None,
            "depth" => line.depth = words.next()?.parse().ok(),
            "nodes" => line.nodes = words.next()?.parse().ok(),
            _ => {}
        }
    }
    line.score = line.score.map(|score| ReportedScore { is_bound, ..score });
    Some(line)
}

fn score(kind: &str, value: i32) -> Option<Eval> {
    match kind {
        "cp" => Some(Eval::Score(Centipawn(value.clamp(-Eval::LARGEST, Eval::LARGEST)))),
        // Mate in 0 is reported for a position without legal moves, which is never searched.
        "mate" if value != 0 => Some(Eval::Mate(value.clamp(-999, 999))),
        _ => None,
    }
}

/// An option that an engine offers: `option name N type T [default D] [min A] [max B] [var V]…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOption {
    pub name: String,
    kind: String,
    min: Option<i64>,
    max: Option<i64>,
    choices: Vec<String>,
}

impl EngineOption {
    /// Parses an `option` line; returns `None` for any other line.
    pub fn parse(line: &str) -> Option<EngineOption> {
        let mut words = line.split_ascii_whitespace();
        if (words.next()?, words.next()?) != ("option", "name") {
            return None;
        }
        let mut key = "name";
        let mut fields: Vec<(&str, Vec<&str>)> = vec![(key, Vec::new())];
        for word in words {
            let is_key = match word {
                "type" => key == "name",
                "default" | "min" | "max" | "var" => key != "name",
                _ => false,
            };
            if is_key {
                key = word;
                fields.push((key, Vec::new()));
            } else if let Some((_, text)) = fields.last_mut() {
                text.push(word);
            }
        }
        let values =
            |key: &'static str| fields.iter().filter(move |field| field.0 == key).map(|field| field.1.join(" "));
        let number = |key| values(key).next()?.parse().ok();
        let name = values("name").next().filter(|name| !name.is_empty())?;
        let kind = values("type").next()?;
        Some(EngineOption { name, kind, min: number("min"), max: number("max"), choices: values("var").collect() })
    }

    /// The command that sets the option to `value`.
    ///
    /// # Errors
    /// The reason when the option cannot have this value.
    pub fn command(&self, value: &str) -> Result<String, String> {
        let name = &self.name;
        match self.kind.as_str() {
            "button" if value.is_empty() => return Ok(format!("setoption name {name}")),
            "button" => return Err("it is a button and takes no value".into()),
            "check" if !matches!(value, "true" | "false") => return Err("it is true or false".into()),
            "spin" => {
                let number: i64 = value.parse().map_err(|_| "it is a whole number".to_owned())?;
                let min = self.min.unwrap_or(i64::MIN);
                let max = self.max.unwrap_or(i64::MAX);
                if !(min..=max).contains(&number) {
                    return Err(format!("it goes from {min} to {max}"));
                }
            }
            "combo" if !self.choices.iter().any(|choice| choice.eq_ignore_ascii_case(value)) => {
                return Err(format!("it is one of {}", self.choices.join(", ")));
            }
            _ => {}
        }
        Ok(format!("setoption name {name} value {value}"))
    }
}

/// The option names most similar to `name`, the most similar first; at most five.
pub fn similar_names(name: &str, offers: &[EngineOption]) -> Vec<String> {
    let given = name.to_lowercase();
    let distance = |offer: &EngineOption| {
        let offered = offer.name.to_lowercase();
        let shared = offered.contains(&given) || given.contains(&offered);
        (!shared, strsim::damerau_levenshtein(&given, &offered))
    };
    let mut sorted: Vec<&EngineOption> = offers.iter().collect();
    sorted.sort_by_cached_key(|offer| distance(offer));
    sorted.into_iter().take(5).map(|offer| offer.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores() {
        let check = |lines: &[&str], expected: Option<Eval>| {
            let mut last = InfoLine::default();
            lines.iter().filter_map(|line| info_line(line)).for_each(|line| last.update(line));
            assert_eq!(last.eval(), expected, "{lines:?}");
        };
        let cp = |score| Some(Eval::Score(Centipawn(score)));
        check(&["info depth 5 score cp -31 nodes 3 pv e2e4"], cp(-31));
        check(&["info depth 5 score cp 99999999"], cp(30_000));
        check(&["info depth 5 score mate -2 nodes 3"], Some(Eval::Mate(-2)));
        check(&["info depth 5 score mate 0"], None);
        check(&["info depth 5 multipv 2 score cp 31"], None);
        check(&["info multipv 1 score cp 31"], cp(31));
        check(&["info string score cp 31"], None);
        check(&["info depth 5 score cp"], None);
        check(&["info depth 5 score cp x"], None);
        check(&["info depth 5 score cp 12.5"], None);
        check(&["info PV length: 1 plies to TB 0 from score 0 PV in TB: 1"], None);
        // The protocol fixes no order of the words.
        check(&["info depth 3 seldepth 4 pv e2e4 e7e5 score cp 25 nodes 100"], cp(25));
        check(&["info score upperbound cp 7"], None);
        check(&["info depth 1 score lowerbound", "info pv e2e4 depth 1 lowerbound score cp 7"], cp(7));
        // A bound stands only where no exact score does.
        check(&["info depth 1 score cp -98 lowerbound", "info depth 2 score cp -90 upperbound nodes 9"], cp(-90));
        check(&["info score cp 31 lowerbound", "info score cp 30", "info score cp 99 lowerbound"], cp(30));
        check(&["info depth 2 score -INFINITE nodes 5"], None);
        check(&["info depth 1 score cp 3", "info depth 2 score -INFINITE nodes 5"], cp(3));
    }

    #[test]
    fn depths_and_nodes() {
        let check = |lines: &[&str], depth: Option<u32>, nodes: Option<u64>| {
            let mut last = InfoLine::default();
            lines.iter().filter_map(|line| info_line(line)).for_each(|line| last.update(line));
            assert_eq!((last.depth, last.nodes), (depth, nodes), "{lines:?}");
        };
        let first = "info depth 5 seldepth 9 score cp 3 nodes 77 nps 1000 pv e2e4 e7e5";
        check(&[first], Some(5), Some(77));
        // Later lines without an exact score still count nodes.
        let more = "info depth 6 score cp 40 lowerbound nodes 90";
        check(&[first, more, "info nodes 99 nps 1000"], Some(5), Some(99));
        check(&["info depth 2 score -INFINITE nodes 5"], None, Some(5));
    }

    #[test]
    fn options() {
        let check = |line: &str, value: &str, expected: Result<&str, &str>| {
            let set = EngineOption::parse(line).unwrap().command(value);
            assert_eq!(set.as_deref().map_err(String::as_str), expected, "{line}");
        };
        let hash = "option name Hash type spin default 16 min 1 max 64";
        check(hash, "8", Ok("setoption name Hash value 8"));
        check(hash, "65", Err("it goes from 1 to 64"));
        check(hash, "many", Err("it is a whole number"));
        check("option name Clear Hash type button", "", Ok("setoption name Clear Hash"));
        check("option name Clear Hash type button", "1", Err("it is a button and takes no value"));
        check("option name Use NNUE type check default true", "yes", Err("it is true or false"));
        let style = "option name Style type combo default Normal var Solid var Very Risky var Normal";
        check(style, "very risky", Ok("setoption name Style value very risky"));
        check(style, "calm", Err("it is one of Solid, Very Risky, Normal"));
        check("option name Net type string default <empty>", "a b.nnue", Ok("setoption name Net value a b.nnue"));
        assert_eq!(EngineOption::parse("option name"), None);
        assert_eq!(EngineOption::parse("option name X"), None);
        assert_eq!(EngineOption::parse("id name X"), None);
    }

    #[test]
    fn similar_names_come_first() {
        let offers: Vec<_> = ["Threads", "Hash", "Clear Hash", "EvalFile"]
            .map(|name| EngineOption::parse(&format!("option name {name} type string")).unwrap())
            .into();
        assert_eq!(similar_names("evalfiel", &offers)[0], "EvalFile");
        assert_eq!(similar_names("hash", &offers)[..2], ["Hash", "Clear Hash"]);
    }
}
