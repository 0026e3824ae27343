//! Tasks on all cores, for closures of any type: rayon's generic code is compiled here alone.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The results of `task(0)` to `task(count - 1)`, in this order, computed by rayon's current pool. Tasks should take some
/// microseconds: each is started on its own.
pub fn map_tasks<T: Send>(count: usize, task: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let mut results: Vec<Mutex<Option<T>>> = Vec::with_capacity(count);
    for _ in 0..count {
        results.push(Mutex::new(None));
    }
    run_tasks(count, &|number| {
        let result = task(number);
        *results[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let mut in_order = Vec::with_capacity(count);
    for result in results {
        in_order.extend(result.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    in_order
}

fn run_tasks(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(task);
}

/// Runs a task on rayon's current pool while this thread, of the pool or not, runs another.
pub fn run_beside(beside: &mut (dyn FnMut() + Send), here: &mut dyn FnMut()) {
    rayon::in_place_scope(|scope| {
        scope.spawn(|_| beside());
        here();
    });
}

#[cfg(test)]
mod tests {
    use super::{map_tasks, run_beside};

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        let squares = map_tasks(1000, &|number| number * number);
        assert!(squares.len() == 1000 && (0..1000).all(|number| squares[number] == number * number));
        assert!(map_tasks(0, &|number| number).is_empty());
        let mut sum = 0;
        let here = std::thread::current().id();
        let mut ran = None;
        run_beside(&mut || sum += 3, &mut || ran = Some(std::thread::current().id()));
        assert_eq!((sum, ran), (3, Some(here)));
    }
}
