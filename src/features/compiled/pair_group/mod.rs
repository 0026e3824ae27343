//! Groups of blocks that bind a piece and a piece that it attacks, or any two pieces, and read nothing else: threats,
//! pairs of pawns. The pairs of a board are found once for all blocks of a group and both perspectives; a table by both
//! codes and both squares then gives their indices.

mod changes;
mod pairs;
mod sight;

use std::cell::RefCell;
use std::collections::HashMap;

use crate::chess::{Board, ByPerspective, Orientation, Perspective, Square};
use crate::features::spec::{DROPPED, SourceSpec, VariableKind};

use super::encode::Kings;
use super::oriented_board::{Binding, Placement, squares};
use super::{CompiledBlock, PlacementNeeds};
use pairs::{PiecePairs, pair};

/// The range of the second variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum PairSource {
    /// The pieces that the first one attacks.
    Targets,
    Pieces,
}

/// Blocks of one orientation and one source, as one table.
#[derive(Debug)]
pub struct PairGroup {
    orientation: Orientation,
    source: PairSource,
    /// By code of the first and code of the second piece, as the perspective sees them.
    kinds: Box<[PairKind; 256]>,
    /// By both oriented squares: the index beyond a kind's base, [`NO_PAIR`] where there is none. Kinds may share one.
    tables: Vec<[u16; 4096]>,
    /// Whether no two pairs of states have one index, so that pairs with a changed piece change their index.
    is_distinct: bool,
    /// Whether a pair is looked up in one order only, because the tables have the index of its other order there too.
    is_unordered: bool,
    /// By code and square of the first piece, as White sees them: squares of second pieces with which there may be an
    /// index for some perspective. Only where the source is all pieces.
    partners: Box<[[u64; 64]; 16]>,
    /// The codes of first and of second pieces that matter to either perspective: bit by code.
    codes: [u16; 2],
}

#[derive(Copy, Clone, Debug)]
struct PairKind {
    base: u32,
    table: u16,
}

/// The pairs of two codes in one block.
struct KindOfBlock {
    /// Code of the first piece · 16 + code of the second.
    kind: usize,
    base: u32,
    table: Box<[u16; 4096]>,
}

const NO_PAIR: u16 = u16::MAX;
/// The table without pairs.
const EMPTY: PairKind = PairKind { base: 0, table: 0 };

/// The parts of a placement that pairs need.
const NEEDS: PlacementNeeds = PlacementNeeds { bitboards: true, attacks: true };

/// No piece attacks more pieces.
const MOST_TARGETS: usize = 8;

/// Buffers, and the findings of a search for changes.
#[derive(Default)]
struct PairScratch {
    /// Pairs taken away, pairs brought; an encoding uses the first too.
    pairs: [PiecePairs; 2],
    /// The masks that orient the boards before and after.
    masks: ByPerspective<[Option<u32>; 2]>,
}

thread_local! {
    static SCRATCH: RefCell<PairScratch> = RefCell::default();
}

impl PairGroup {
    /// The groups of a set's blocks, and the number of the group of each block that is in one. `blocks`: each candidate
    /// with the index of its first row.
    pub fn all<'a>(
        blocks: impl Iterator<Item = Option<(&'a CompiledBlock, u32)>>,
    ) -> (Vec<PairGroup>, Vec<Option<usize>>) {
        let mut groups: Vec<PairGroup> = Vec::new();
        let mut group_of = Vec::new();
        for candidate in blocks {
            let kinds = candidate.and_then(|(block, offset)| Some((block, block.pair_kinds(offset)?)));
            let Some((block, (source, kinds))) = kinds else {
                group_of.push(None);
                continue;
            };
            let fits = |group: &PairGroup| {
                (group.orientation, group.source) == (block.orientation, source)
                    && kinds.iter().all(|own| group.kinds[own.kind].table == EMPTY.table)
            };
            let at = groups.iter().position(fits).unwrap_or(groups.len());
            if at == groups.len() {
                groups.push(PairGroup::new(block.orientation, source));
            }
            kinds.into_iter().for_each(|own| groups[at].add(own));
            group_of.push(Some(at));
        }
        groups.iter_mut().for_each(PairGroup::finish);
        (groups, group_of)
    }

    fn new(orientation: Orientation, source: PairSource) -> PairGroup {
        let tables = vec![[NO_PAIR; 4096]];
        PairGroup {
            orientation,
            source,
            kinds: Box::new([EMPTY; 256]),
            tables,
            is_distinct: true,
            is_unordered: false,
            partners: Box::new([[0; 64]; 16]),
            codes: [0; 2],
        }
    }

    fn add(&mut self, KindOfBlock { kind, base, table }: KindOfBlock) {
        let known = self.tables.iter().position(|other| *other == *table);
        let number = known.unwrap_or(self.tables.len());
        if number == self.tables.len() {
            self.tables.push(*table);
        }
        self.kinds[kind] = PairKind { base, table: number as u16 };
        // The other perspective sees the colours exchanged.
        for (codes, code) in self.codes.iter_mut().zip([kind >> 4, kind & 15]) {
            *codes |= 1 << code | 1 << (code ^ 8);
        }
    }

    fn finish(&mut self) {
        self.is_distinct = self.has_distinct_indices();
        if self.source == PairSource::Pieces {
            self.join_orders();
            self.find_partners();
        }
    }

    /// The index of two oriented states, first · 1024 + second.
    fn index(&self, pair: u32) -> Option<u32> {
        let kind = &self.kinds[kind_of(pair)];
        let beyond = self.tables[usize::from(kind.table)][squares_of(pair)];
        (beyond != NO_PAIR).then(|| kind.base + u32::from(beyond))
    }

    /// Gives both orders of a pair the index of the order that has one, unless both have.
    fn join_orders(&mut self) {
        let swapped = |at: usize| (at & 63) << 6 | at >> 6;
        let mut joined = Vec::new();
        // Also kinds whose first piece is never first in the definition: they are the reverse of others.
        for kind in 0..256 {
            let reverse = (kind & 15) << 4 | kind >> 4;
            let [own, other] = [kind, reverse].map(|kind| self.kinds[kind]);
            let [table, of_other] = [own, other].map(|kind| &self.tables[usize::from(kind.table)]);
            let base = match (own.table == EMPTY.table, other.table == EMPTY.table) {
                (true, true) => continue,
                (true, false) => other.base,
                (false, true) => own.base,
                (false, false) => own.base.min(other.base),
            };
            let mut both = Box::new([NO_PAIR; 4096]);
            for at in 0..4096 {
                both[at] = match (table[at], of_other[swapped(at)]) {
                    (NO_PAIR, NO_PAIR) => continue,
                    (beyond, NO_PAIR) => own.base - base + u32::from(beyond),
                    (NO_PAIR, beyond) => other.base - base + u32::from(beyond),
                    _ => return,
                }
                .try_into()
                .unwrap_or(NO_PAIR);
                if both[at] == NO_PAIR {
                    return;
                }
            }
            joined.push(KindOfBlock { kind, base, table: both });
        }
        self.kinds.fill(EMPTY);
        self.tables.truncate(1);
        joined.into_iter().for_each(|own| self.add(own));
        self.is_unordered = true;
    }

    fn find_partners(&mut self) {
        // As all orientations see the states; colours are exchanged for Black.
        let exchanges = [0, 7, 56, 63, 512, 512 | 7, 512 | 56, 512 | 63].map(|state| pair(state, state));
        for kind in 0..256u32 {
            if self.kinds[kind as usize].table == EMPTY.table {
                continue;
            }
            for squares in 0..4096u32 {
                let seen = (kind >> 4) << 16 | (squares >> 6) << 10 | (kind & 15) << 6 | squares & 63;
                if self.index(seen).is_some() {
                    for exchange in exchanges {
                        let pair = seen ^ exchange;
                        self.partners[(pair >> 16 & 15) as usize][(pair >> 10 & 63) as usize] |= 1 << (pair & 63);
                    }
                }
            }
        }
    }

    fn has_distinct_indices(&self) -> bool {
        let of_kind = |kind: &PairKind| {
            let base = kind.base;
            let known = self.tables[usize::from(kind.table)].iter().filter(|beyond| **beyond != NO_PAIR);
            known.map(move |beyond| base + u32::from(*beyond)).collect::<Vec<_>>()
        };
        let mut indices: Vec<u32> = self.kinds.iter().flat_map(of_kind).collect();
        indices.sort_unstable();
        indices.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> usize {
        self.tables.len() * size_of::<[u16; 4096]>() + size_of::<[PairKind; 256]>()
    }

    /// Appends the active features of a placement, for each perspective with a list.
    pub fn append(&self, placement: &Placement, povs: &[Perspective], out: &mut [&mut Vec<u32>]) {
        SCRATCH.with_borrow_mut(|PairScratch { pairs: [pairs, _], .. }| {
            self.pairs_of(placement, pairs);
            for (pov, out) in povs.iter().zip(out) {
                let (Some(king), Some(_)) = (placement.king(*pov), placement.king(pov.other())) else { continue };
                self.push(pairs.as_slice(), *pov, self.orientation.mask(Square::new(king), *pov), out);
            }
        });
    }

    /// Appends the features of pairs as a perspective sees them.
    fn push(&self, pairs: &[u32], pov: Perspective, mask: u32, out: &mut Vec<u32>) {
        let state = (pov.index() as u32) << 9 | mask;
        let exchange = pair(state, state);
        let from = out.len();
        out.resize(from + pairs.len(), 0);
        let mut count = from;
        for seen in pairs.iter().map(|pair| pair ^ exchange) {
            let kind = &self.kinds[kind_of(seen)];
            let beyond = self.tables[usize::from(kind.table)][squares_of(seen)];
            out[count] = kind.base + u32::from(beyond);
            count += usize::from(beyond != NO_PAIR);
        }
        out.truncate(count);
    }

    fn pairs_of(&self, placement: &Placement, pairs: &mut PiecePairs) {
        pairs.clear(self.most_pairs(placement.pieces().len()));
        let victims = squares(u64::from(self.codes[1])).fold(0, |all, code| all | placement.by_code(code as usize));
        for state in placement.pieces() {
            let code = state >> 6 & 15;
            let square = usize::from(state & 63);
            if self.codes[0] >> code & 1 == 0 {
                continue;
            }
            let seconds = match self.source {
                PairSource::Targets => placement.attacks_from(square) & victims,
                PairSource::Pieces => victims & self.partners_of(u32::from(*state)),
            };
            pairs.push(u32::from(*state), seconds, |to| placement.state_at(to));
        }
    }

    /// A bound on the number of pairs of so many first pieces.
    fn most_pairs(&self, pieces: usize) -> usize {
        pieces
            * match self.source {
                PairSource::Targets => MOST_TARGETS,
                PairSource::Pieces => pieces,
            }
    }

    /// The mask that orients a board; `None` without both kings.
    fn mask(&self, board: &Board, pov: Perspective) -> Option<u32> {
        let (own, _) = (board.king_of(pov.own())?, board.king_of(pov.other().own())?);
        Some(self.orientation.mask(own, pov))
    }

    /// Appends all features of two boards.
    pub fn both(&self, boards: [&Board; 2], pov: Perspective, out: [&mut Vec<u32>; 2]) {
        for (board, out) in boards.into_iter().zip(out) {
            self.append(&Placement::of(board, NEEDS), &[pov], &mut [out]);
        }
    }

    /// Squares of second pieces with which the state, as White sees it, may have an index: beyond its own square where
    /// pairs are looked up in one order.
    #[inline(always)]
    fn partners_of(&self, state: u32) -> u64 {
        let partners = self.partners[(state >> 6 & 15) as usize][(state & 63) as usize];
        partners & if self.is_unordered { !0 << (state & 63) } else { !0 }
    }
}

/// Where [`PairGroup::kinds`] has a pair's codes.
#[inline(always)]
const fn kind_of(pair: u32) -> usize {
    (pair >> 12 & 0xf0 | pair >> 6 & 15) as usize
}

/// Where a table has a pair's squares.
#[inline(always)]
const fn squares_of(pair: u32) -> usize {
    (pair >> 4 & 0xfc0 | pair & 63) as usize
}

impl CompiledBlock {
    /// The block as kinds of a group. `None` if it binds or reads anything else, or if bindings share rows.
    fn pair_kinds(&self, offset: u32) -> Option<(PairSource, Vec<KindOfBlock>)> {
        let ([first, second], [term]) = (&self.binders[..], &self.terms[..]) else { return None };
        let source = match second.source {
            SourceSpec::Targets(of) if of == first.slot => PairSource::Targets,
            SourceSpec::Pieces => PairSource::Pieces,
            _ => return None,
        };
        let base = term.king_independent_base?;
        let is_simple = first.source == SourceSpec::Pieces
            && first.is_unconditional()
            && second.kind == VariableKind::Piece
            && !second.has_residual()
            && !second.reads_earlier(|slot| slot != first.slot)
            && term.counts.is_empty()
            && self.guards.is_empty()
            && !self.shares_rows();
        if !is_simple {
            return None;
        }
        let index = |row: u32| match &self.spec.renumbering {
            None => Some(offset + row),
            Some(table) if table[row as usize] == DROPPED => None,
            Some(table) => Some(self.spec.offset + table[row as usize]),
        };
        let mut found: HashMap<usize, Vec<(usize, u32)>> = HashMap::new();
        let mut bindings = self.bindings(&Kings::default());
        for (code, allowed_squares) in &term.masks[first.slot] {
            for square in squares(*allowed_squares) {
                bindings[first.slot] = Binding { code: *code, square };
                let mut buffer = None;
                let allowed = second.allowed_by_pairs(&bindings, &mut buffer);
                let row = base + term.tables[first.slot][code << 6 | square as usize];
                for (other, in_mask) in &term.masks[second.slot] {
                    for to in squares(in_mask & allowed.map_or(!0, |allowed| allowed[*other])) {
                        if let Some(index) = index(row + term.tables[second.slot][other << 6 | to as usize]) {
                            let kind = found.entry(code << 4 | other).or_default();
                            kind.push(((square << 6 | to) as usize, index));
                        }
                    }
                }
            }
        }
        let mut kinds = Vec::new();
        for (kind, pairs) in found {
            let base = pairs.iter().map(|(_, index)| *index).min()?;
            let mut table = Box::new([NO_PAIR; 4096]);
            for (at, index) in pairs {
                // Indices that lie further apart do not fit.
                table[at] = u16::try_from(index - base).ok().filter(|beyond| *beyond != NO_PAIR)?;
            }
            kinds.push(KindOfBlock { kind, base, table });
        }
        // The order of a hash map is random.
        kinds.sort_unstable_by_key(|own| own.kind);
        Some((source, kinds))
    }
}
