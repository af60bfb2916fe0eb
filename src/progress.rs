//! The line of progress on stderr, which a person at a terminal sees: it shows what the one that
//! simulates or measures tells a [`Watch`].
//!
//! Called by the experiments, the sweep, the validation and the default job; steps are what
//! the caller counts (episodes, points, rows).

use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use sme_sim::observe::gauge::Gauge;
use terminal_size::terminal_size_of;

pub use sme_runs::watch::{Silent, Watch};

use crate::host;

/// A bar on stderr where that is a terminal, no watcher otherwise.
pub fn on_stderr() -> Box<dyn Watch> {
    if std::io::stderr().is_terminal() {
        Box::new(Bar::default())
    } else {
        Box::new(Silent)
    }
}

/// The time that something must take before the bar appears: short runs stay quiet.
const PATIENCE: Duration = Duration::from_millis(300);

/// The interval at which the line is written anew.
const TICK: Duration = Duration::from_millis(250);

/// From this width on the line has room for all that is known of a simulation.
const WIDE_COLUMNS: u16 = 100;

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
        bar.set_style(style(|_| String::new()));
        bar.set_message(what.to_owned());
        // A step that takes long is no reason to show nothing.
        let shown = bar.clone();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !shown.is_finished() {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
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
            shown.bar.inc(steps);
        }
    }

    fn end(&self) {
        if let Some(shown) = self.current.lock().take() {
            shown.bar.finish_and_clear();
        }
    }

    /// From now on the line says how far the simulation is, even while no step is done.
    fn gauge(&self, gauge: Arc<Gauge>) {
        let current = self.current.lock();
        let Some(shown) = current.as_ref() else {
            return;
        };
        let began = shown.began;
        let details = move |width| {
            let rss = host::rss_bytes();
            format!(", {}", simulated(&gauge, began.elapsed(), rss, width))
        };
        shown.bar.set_style(style(details));
    }
}

/// The style of the line: the name and count of steps, the bar, which takes the room that is left,
/// the time, and `details`, which are given the columns of the terminal.
fn style(details: impl Fn(u16) -> String + Clone + Send + Sync + 'static) -> ProgressStyle {
    let time = |state: &ProgressState, to: &mut dyn fmt::Write| {
        let text = left(state.pos(), state.len(), state.elapsed(), state.eta());
        // A line that cannot be written is lost, which does no harm.
        to.write_str(&text).unwrap_or_default();
    };
    let details = move |_: &ProgressState, to: &mut dyn fmt::Write| {
        let width = terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0);
        to.write_str(&details(width)).unwrap_or_default();
    };
    let template = "{msg} {pos}/{len} [{wide_bar}] {time}{details}";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    style
        .progress_chars("=> ")
        .with_key("time", time)
        .with_key("details", details)
}

/// The time that is left, as far as it can be told from the steps that are done; until then, the
/// time since the beginning.
fn left(done: u64, steps: Option<u64>, elapsed: Duration, eta: Duration) -> String {
    match (done, steps) {
        (0, _) | (_, None) => format!("{} so far", HumanDuration(elapsed)),
        _ => format!("{} left", HumanDuration(eta)),
    }
}

/// Simulated time, rate and, on a terminal wide enough, events and memory, in words.
fn simulated(gauge: &Gauge, elapsed: Duration, rss_bytes: Option<u64>, width: u16) -> String {
    let events = gauge.events() as f64;
    let rate = events / elapsed.as_secs_f64().max(1e-3);
    let now = format!("at {:.1} us", gauge.now().as_us());
    let (events, rate) = (events / 1e6, rate / 1e6);
    if width < WIDE_COLUMNS {
        return format!("{now}, {rate:.1} M events/s");
    }
    let memory = match rss_bytes {
        Some(bytes) => format!(", {:.2} GiB", bytes as f64 / f64::from(1 << 30)),
        None => String::new(),
    };
    format!("{now}, {events:.1} M events at {rate:.1} M/s{memory}")
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
    fn the_line_says_events_rate_time_and_memory() {
        let gauge = Gauge::default();
        gauge.is_at(sme_sim::time::Time::from_ns(12_340), 5_000_000);
        let text = |width| simulated(&gauge, Duration::from_secs(2), Some(3 << 29), width);
        assert_eq!(text(80), "at 12.3 us, 2.5 M events/s");
        assert_eq!(text(100), "at 12.3 us, 5.0 M events at 2.5 M/s, 1.50 GiB");
    }

    #[test]
    fn the_time_left_is_told_once_it_is_known() {
        let [second, minute] = [1, 60].map(Duration::from_secs);
        assert_eq!(left(0, Some(9), second, minute), "1 second so far");
        assert_eq!(left(1, Some(9), second, minute), "60 seconds left");
    }

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
