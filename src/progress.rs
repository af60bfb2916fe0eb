//! Progress of something that takes long: who simulates or measures tells a [`Watch`], and a
//! person at a terminal sees a bar on stderr. Results never depend on it.
//!
//! Called by the experiments, the sweep, the validation and the default job; steps are whatever
//! the caller counts (episodes, points, rows).

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

/// Who is told of progress. Every method may be called from any thread.
pub trait Watch: Sync {
    /// `steps` steps of `what` lie ahead; what was under way before is over.
    fn begin(&self, what: &str, steps: u64);
    /// `steps` more are done.
    fn advance(&self, steps: u64);
    /// Nothing is under way any more.
    fn end(&self);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn begin(&self, _what: &str, _steps: u64) {}
    fn advance(&self, _steps: u64) {}
    fn end(&self) {}
}

/// A bar on stderr where that is a terminal, nobody otherwise.
pub fn on_stderr() -> Box<dyn Watch> {
    if std::io::stderr().is_terminal() {
        Box::new(Bar::default())
    } else {
        Box::new(Silent)
    }
}

/// How long something must take before the bar appears: short runs stay quiet.
const PATIENCE: Duration = Duration::from_millis(300);

/// A progress bar on stderr, gone again when the work is done.
#[derive(Debug, Default)]
struct Bar {
    current: Mutex<Option<Shown>>,
}

#[derive(Debug)]
struct Shown {
    bar: ProgressBar,
    began: Instant,
}

impl Watch for Bar {
    fn begin(&self, what: &str, steps: u64) {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = "{msg} [{bar:40}] {pos}/{len}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        let shown = Shown {
            bar,
            began: Instant::now(),
        };
        if let Some(before) = self.current.lock().replace(shown) {
            before.bar.finish_and_clear();
        }
    }

    fn advance(&self, steps: u64) {
        if let Some(shown) = self.current.lock().as_ref() {
            if shown.bar.is_hidden() && shown.began.elapsed() >= PATIENCE {
                shown.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            shown.bar.inc(steps);
        }
    }

    fn end(&self) {
        if let Some(shown) = self.current.lock().take() {
            shown.bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_counts_from_any_thread_and_starts_anew() {
        let bar = Bar::default();
        bar.advance(3);
        bar.begin("points", 1_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| bar.advance(1)));
            }
        });
        let position = || {
            bar.current
                .lock()
                .as_ref()
                .map(|shown| shown.bar.position())
        };
        assert_eq!(position(), Some(400));
        bar.begin("rows", 10);
        assert_eq!(position(), Some(0));
        bar.end();
        assert_eq!(position(), None);
    }
}
