//! Counts the unusual features of a file's games and how they were read, so that nothing is passed over in silence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::eval_options::{EvalView, WholeNumbers};
use crate::text::grouped;

/// The unusual features of the games that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgnNotes {
    /// Comments that look like scores but are in no known form.
    pub unread_scores: u64,
    /// The first of them, shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_examples: Vec<String>,
    /// Scores without a point, whose unit follows from the rest of the file or from the options.
    pub whole_numbers: u64,
    /// A score that is a whole number, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_number_example: Option<String>,
    /// How those were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_numbers_read_as: Option<WholeNumbers>,
    /// Whose view the scores in `[%eval …]` were taken for; stated where whole numbers were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<EvalView>,
    /// Whether the options gave the unit.
    pub unit_was_given: bool,
    /// Scores with a depth after a slash, `[%eval 0.16/16]`, which were taken for the mover's view.
    pub mover_scores: u64,
    /// Scores cut to ±30,000 centipawns.
    pub scores_cut: u64,
    /// Zeros that a program writes beside a book move.
    pub book_scores: u64,
    /// Malformed tags that are not needed.
    pub malformed_tags: u64,
    /// Games that an illegal move ended; the moves before it were read.
    pub ended_by_illegal_move: u64,
    /// Whether a score has a point.
    #[serde(skip)]
    pub(super) points: bool,
    /// Whether a score certainly has a decimal comma.
    #[serde(skip)]
    pub(super) commas: bool,
}

impl PgnNotes {
    const EXAMPLES: usize = 3;

    /// Adds the notes of later games.
    pub(super) fn add(&mut self, later: PgnNotes) {
        self.unread_scores += later.unread_scores;
        for example in later.unread_examples {
            self.add_unread_example(example);
        }
        self.whole_numbers += later.whole_numbers;
        if self.whole_number_example.is_none() {
            self.whole_number_example = later.whole_number_example;
        }
        self.mover_scores += later.mover_scores;
        self.scores_cut += later.scores_cut;
        self.book_scores += later.book_scores;
        self.malformed_tags += later.malformed_tags;
        self.ended_by_illegal_move += later.ended_by_illegal_move;
        self.points |= later.points;
        self.commas |= later.commas;
    }

    pub(super) fn add_unread_example(&mut self, example: String) {
        if self.unread_examples.len() < Self::EXAMPLES && !self.unread_examples.contains(&example) {
            self.unread_examples.push(example);
        }
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    /// Whether a score may have been read wrongly or was lost: a reason for a warning.
    #[must_use]
    pub fn concerns_scores(&self) -> bool {
        let assumed = self.whole_numbers > 0 && !self.unit_was_given;
        assumed || self.unread_scores > 0 || self.scores_cut > 0
    }

    /// One sentence per kind, with its count.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |count: u64, text: &str| {
            if count > 0 {
                lines.push(format!("{} {text}", grouped(&count.to_string())));
            }
        };
        say(self.whole_numbers, &self.describe_whole_numbers());
        let examples: Vec<String> = self.unread_examples.iter().map(|example| format!("`{example}`")).collect();
        say(self.unread_scores, &format!("comments look like scores and were not read: {}", examples.join(", ")));
        let by_mover = "scores with a depth after a slash (`[%eval 0.16/16]`) were taken for the mover's view; \
                        --eval-view says otherwise";
        say(self.mover_scores, by_mover);
        say(self.scores_cut, "scores were cut to 30,000 centipawns");
        say(self.book_scores, "zeros beside book moves were not taken for scores");
        say(self.malformed_tags, "malformed tags were passed over");
        say(self.ended_by_illegal_move, "games ended by an illegal move; the moves before it were read");
        lines
    }

    fn describe_whole_numbers(&self) -> String {
        let example = self.whole_number_example.as_deref().unwrap_or_default();
        let view = match self.view {
            _ if !example.starts_with("[%eval") => "",
            Some(EvalView::Mover) => ", the mover's view",
            _ => ", White's view",
        };
        let why = match (self.unit_was_given, self.whole_numbers_read_as) {
            (true, _) => "as --eval-unit says",
            (false, Some(WholeNumbers::Centipawns)) => {
                "since no score of the file has a point; --eval-unit and --eval-view say otherwise"
            }
            (false, Some(WholeNumbers::DecimalComma)) => "since others certainly have a decimal comma",
            (false, _) => "since other scores of the file have a point",
        };
        let read_as = match self.whole_numbers_read_as {
            Some(WholeNumbers::Centipawns) => "centipawns",
            Some(WholeNumbers::DecimalComma) if !self.unit_was_given => "pawns with a decimal comma",
            _ => "pawns",
        };
        format!("scores without a point (`{example}`) were read as {read_as}{view}, {why}")
    }
}
