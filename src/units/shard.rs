//! Shards: several processes share the items of one list, such as the batches of a stream or the files of a build.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every `of`-th item of a list, from item `index` on. The shards of a list have no item in common and together hold
/// all of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// Number of shards.
    pub of: u32,
}

impl Shard {
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Number of the shard's first item at or after `start`.
    #[must_use]
    pub fn first(self, start: u64) -> u64 {
        let index = u64::from(self.index);
        let of = u64::from(self.of);
        // No underflow: `start % of` is below `of`.
        let ahead = (index + of - start % of) % of;
        start.saturating_add(ahead)
    }

    /// Whether the shard holds the item with this number.
    #[must_use]
    pub const fn contains(self, item: usize) -> bool {
        item % self.of as usize == self.index as usize
    }
}

impl Default for Shard {
    fn default() -> Shard {
        Shard::WHOLE
    }
}

impl Display for Shard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            Some((_, 0)) => Err("there is at least 1 shard".into()),
            Some((_, of)) => Err(format!("shards are numbered from 0, so the last of {of} is {}/{of}", of - 1)),
            None => Err("expected INDEX/COUNT, such as 0/2 and 1/2 for two shards".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_written_and_read() {
        let check = |text: &str, expected: Result<(u32, u32), &str>| {
            let expected = expected.map(|(index, of)| Shard { index, of }).map_err(str::to_owned);
            assert_eq!(text.parse::<Shard>(), expected, "{text}");
        };
        check("0/1", Ok((0, 1)));
        check("3/4", Ok((3, 4)));
        check("4/4", Err("shards are numbered from 0, so the last of 4 is 3/4"));
        check("0/0", Err("there is at least 1 shard"));
        check("half", Err("expected INDEX/COUNT, such as 0/2 and 1/2 for two shards"));
        assert_eq!(Shard { index: 3, of: 4 }.to_string(), "3/4");
    }
}
