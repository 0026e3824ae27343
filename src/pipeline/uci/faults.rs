//! When an engine that fails again and again ends the work. One failure costs one piece of work; an engine that never
//! works would spoil everything.

/// Failures of an engine in a row that end the work: fewer while it has never worked, so that an unsuitable engine is
/// noticed early.
#[must_use]
pub const fn failures_allowed(has_worked: bool) -> u64 {
    if has_worked { 32 } else { 8 }
}

/// Counts the failures of several engines and holds back the spoiled work, a `T` each, until the engine works again:
/// the spoiled work of a useless engine is not to be kept as a result.
pub struct FaultLog<T> {
    engines: Vec<Streak>,
    held: Vec<Held<T>>,
}

/// An engine's failures since it last worked.
#[derive(Copy, Clone, Default)]
struct Streak {
    has_worked: bool,
    failures: u64,
}

struct Held<T> {
    engine: usize,
    spoiled: T,
}

/// An engine is useless.
#[derive(Debug)]
pub struct Useless<T> {
    /// Its failures in a row.
    pub failures: u64,
    pub last: T,
}

impl<T> FaultLog<T> {
    /// `has_worked`: by engine, whether it has worked before.
    pub fn new(has_worked: &[bool]) -> FaultLog<T> {
        let streak = |has_worked: &bool| Streak { has_worked: *has_worked, failures: 0 };
        FaultLog { engines: has_worked.iter().map(streak).collect(), held: Vec::new() }
    }

    /// Notes that an engine has worked; returns the work it spoiled before, which is to be kept now.
    pub fn worked(&mut self, engine: usize) -> Vec<T> {
        self.engines[engine] = Streak { has_worked: true, failures: 0 };
        self.held.extract_if(.., |held| held.engine == engine).map(|held| held.spoiled).collect()
    }

    /// Notes a failure. `has_worked`: whether the engine did some of its work before it failed.
    ///
    /// # Errors
    /// When the engine has failed too often in a row. The work it spoiled since it last worked is forgotten.
    pub fn failed(&mut self, engine: usize, has_worked: bool, spoiled: T) -> Result<(), Useless<T>> {
        let streak = &mut self.engines[engine];
        streak.has_worked |= has_worked;
        streak.failures += 1;
        let Streak { has_worked, failures } = *streak;
        if failures >= failures_allowed(has_worked) {
            self.held.retain(|held| held.engine != engine);
            return Err(Useless { failures, last: spoiled });
        }
        self.held.push(Held { engine, spoiled });
        Ok(())
    }

    /// At the end of the work: the work spoiled by engines that do work, and the last failure of an engine that never
    /// did.
    pub fn finish(self) -> (Vec<T>, Option<Useless<T>>) {
        let mut kept = Vec::new();
        let mut useless = None;
        for Held { engine, spoiled } in self.held {
            let Streak { has_worked, failures } = self.engines[engine];
            if has_worked {
                kept.push(spoiled);
            } else {
                useless = Some(Useless { failures, last: spoiled });
            }
        }
        (kept, useless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_kept_once_their_engine_works() {
        let mut log = FaultLog::new(&[false, false]);
        for spoiled in ["a", "b"] {
            log.failed(0, false, spoiled).expect("few failures");
        }
        log.failed(1, false, "c").expect("few failures");
        assert_eq!(log.worked(0), ["a", "b"]);
        log.failed(0, false, "d").expect("few failures");
        let (kept, useless) = log.finish();
        assert_eq!(kept, ["d"]);
        assert_eq!(useless.map(|useless| (useless.failures, useless.last)), Some((1, "c")));
    }

    #[test]
    fn too_many_failures_in_a_row_end_the_work() {
        let check = |worked_before: bool, works_partly: bool, allowed: u64| {
            let mut log = FaultLog::new(&[worked_before]);
            for failure in 1..allowed {
                assert!(log.failed(0, works_partly, failure).is_ok(), "{failure} of {allowed}");
            }
            let useless = log.failed(0, works_partly, allowed).expect_err("the last one allowed");
            assert_eq!((useless.failures, useless.last), (allowed, allowed));
            assert!(log.finish().0.is_empty());
        };
        check(false, false, 8);
        check(true, false, 32);
        check(false, true, 32);
        let mut log = FaultLog::new(&[false]);
        for failure in 0..100 {
            log.failed(0, false, failure).expect("never two in a row");
            assert_eq!(log.worked(0), [failure]);
        }
    }
}
