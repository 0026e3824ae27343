//! Sources, the ranges of variables, as in `for P in pieces, N in next(P, east)`: their names, and how much they yield.
//!
//! What they yield stands in one file each: plainly in `reference.rs`, on bitboards in `lower/sources.rs`, on partially
//! known boards in `analysis/sources.rs`.

/// The range of a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// Pieces on their squares, kings included.
    Piece,
    /// Squares, whatever stands on them.
    Square,
}

/// A source; `V` is the piece that it starts from: a variable of the syntax, or its slot once it is resolved.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Source<V> {
    /// Every piece on the board, kings included.
    Pieces,
    /// `moves(P)`: squares that P could move to if it were its turn, whatever checks and pins there are.
    Moves(V),
    /// `attacks(P)`: squares that P attacks, whatever stands there.
    Attacks(V),
    /// `targets(P)`: pieces on the squares that P attacks.
    Targets(V),
    /// `next(P, east)`: the first piece in a direction from P.
    Next(V, Direction),
}

/// A direction on the oriented board.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    East,
    North,
    Northeast,
    Northwest,
}

impl Direction {
    pub const NAMED: [(&'static str, Direction); 4] = [
        ("east", Direction::East),
        ("north", Direction::North),
        ("northeast", Direction::Northeast),
        ("northwest", Direction::Northwest),
    ];

    pub fn name(self) -> &'static str {
        Direction::NAMED[self as usize].0
    }

    /// Change of file and rank per step.
    pub const fn step(self) -> (i32, i32) {
        match self {
            Direction::East => (1, 0),
            Direction::North => (0, 1),
            Direction::Northeast => (1, 1),
            Direction::Northwest => (-1, 1),
        }
    }
}

impl Source<()> {
    /// All sources, `next` once for all directions.
    pub const ALL: [Source<()>; 5] = [
        Source::Pieces,
        Source::Moves(()),
        Source::Attacks(()),
        Source::Targets(()),
        Source::Next((), Direction::East),
    ];
}

impl Source<usize> {
    /// Slot of the piece that the source starts from.
    pub fn of(self) -> Option<usize> {
        self.origin().copied()
    }
}

impl<V> Source<V> {
    pub const fn name(&self) -> &'static str {
        match self {
            Source::Pieces => "pieces",
            Source::Moves(_) => "moves",
            Source::Attacks(_) => "attacks",
            Source::Targets(_) => "targets",
            Source::Next(..) => "next",
        }
    }

    /// What its variable stands for.
    pub const fn kind(&self) -> VariableKind {
        match self {
            Source::Pieces | Source::Targets(_) | Source::Next(..) => VariableKind::Piece,
            Source::Moves(_) | Source::Attacks(_) => VariableKind::Square,
        }
    }

    /// The piece that the source starts from.
    pub const fn origin(&self) -> Option<&V> {
        match self {
            Source::Pieces => None,
            Source::Moves(of) | Source::Attacks(of) | Source::Targets(of) | Source::Next(of, _) => Some(of),
        }
    }

    /// The direction in which the source looks; `None` if it looks in all.
    pub const fn direction(&self) -> Option<Direction> {
        match self {
            Source::Next(_, direction) => Some(*direction),
            _ => None,
        }
    }

    /// The same source in another direction, if it has one.
    pub fn towards(self, direction: Direction) -> Source<V> {
        match self {
            Source::Next(of, _) => Source::Next(of, direction),
            other => other,
        }
    }

    /// The same source from another piece.
    pub fn map<W, E>(&self, map: impl FnOnce(&V) -> Result<W, E>) -> Result<Source<W>, E> {
        Ok(match self {
            Source::Pieces => Source::Pieces,
            Source::Moves(of) => Source::Moves(map(of)?),
            Source::Attacks(of) => Source::Attacks(map(of)?),
            Source::Targets(of) => Source::Targets(map(of)?),
            Source::Next(of, direction) => Source::Next(map(of)?, *direction),
        })
    }

    /// Whether both sources yield the same from equal pieces: they differ at most in the piece they start from.
    pub fn same_kind_as(&self, other: &Source<V>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.direction() == other.direction()
    }

    /// Most values that it yields from one piece; of `pieces`, on any board.
    pub const fn most_values(&self) -> usize {
        match self {
            Source::Pieces => 32,
            // A queen in the middle.
            Source::Moves(_) | Source::Attacks(_) => 27,
            Source::Targets(_) => 8,
            Source::Next(..) => 1,
        }
    }

    /// Typical number of values on a board of this many pieces, weighted by the work of finding them.
    pub const fn typical_values(&self, pieces: u64) -> u64 {
        match self {
            Source::Pieces => pieces,
            Source::Moves(_) | Source::Attacks(_) => 6,
            Source::Targets(_) | Source::Next(..) => 3,
        }
    }
}
