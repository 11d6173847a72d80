//! The loop: keys, news of the session, replies, signals and time in; effects and drawing out. It draws only when something
//! changed, at most thirty times a second.

use crate::app::{App, Start};
use crate::link::{Link, Way};
use crate::paint::Look;
use crate::request::{Effect, Reply, Request, Which};
use crate::screen::{Narrowing, Screen, Size};
use crate::session::Now;
use crate::terminal::{self, Modes};
use crate::view;
use crossterm::event::{Event, EventStream};
use futures::StreamExt;
use protocol::client::ClientError;
use protocol::{ErrorKind, RpcError};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Time between two drawings at least.
const DRAW_EVERY: Duration = Duration::from_millis(33);
/// Time that calls made last get when the client leaves.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// What the client is started with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Id, piece of an id, name, or `last`; absent: a new session.
    pub session: Option<String>,
    /// Where the person stands; absolute.
    pub cwd: PathBuf,
    /// Profile of a new session's model.
    pub model: Option<String>,
    /// Mode of a new session.
    pub mode: Option<protocol::Mode>,
    /// Further directories to work in, absolute: of the session that is opened first, and of every new one.
    pub add_roots: Vec<PathBuf>,
}

/// Shows a session until the person leaves.
///
/// # Errors
/// When there is no terminal, no daemon, no such session. Nothing was drawn then; the text ends with a line `hint: …`.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    if !terminal::is_there() {
        anyhow::bail!(
            "this needs a terminal for its keys and its screen\nhint: use `agentctl send` in scripts and pipes"
        );
    }
    let way = Way {
        cwd: options.cwd,
        model: options.model,
        mode: options.mode,
        add_roots: options.add_roots,
    };
    let which = options.session.map_or(Which::New, Which::Named);
    let (client, info) = Link::open(&way, &which).await?;
    let look = Look::from_environment();
    let size = size()?;
    let hello = client.hello().clone();
    let link = Link::start(client, way, &info.id);
    let app = App::new(Start {
        hello,
        info,
        which,
        look,
        width: size.columns,
    });
    let modes = Some(Modes::enter()?);
    let screen = Screen::new(io::stdout(), look, Narrowing::from_environment());
    let mut running = Running {
        app,
        link,
        screen,
        modes,
        size,
        drawn: None,
    };
    let left = running.until_left().await;
    running.leave(left).await
}

struct Running {
    app: App,
    link: Link,
    screen: Screen<io::Stdout>,
    modes: Option<Modes>,
    size: Size,
    /// When it was drawn last.
    drawn: Option<Instant>,
}

/// Why the loop ended.
enum Left {
    ByKey,
    ByItself,
    /// A signal, by its number.
    BySignal(u8),
    /// The terminal is gone.
    Closed,
}

/// What woke the loop.
enum Woken {
    Terminal(Option<io::Result<Event>>),
    News(Option<crate::request::News>),
    Reply(Option<Reply>),
    Signal(u8),
    Draw,
    Tick,
}

impl Running {
    async fn until_left(&mut self) -> io::Result<Left> {
        let mut events = EventStream::new();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut dirty = true;
        loop {
            let tick = self.next_tick();
            let draw_at = self.draw_at();
            let woken = tokio::select! {
                event = events.next() => Woken::Terminal(event),
                number = caught(&mut terminate, &mut hang_up) => Woken::Signal(number),
                reply = self.link.replies.recv() => Woken::Reply(reply),
                news = self.link.news.recv(), if !self.app.is_full() => Woken::News(news),
                () = tokio::time::sleep_until(draw_at), if dirty => Woken::Draw,
                () = tokio::time::sleep(tick.unwrap_or_default()), if tick.is_some() && !dirty => Woken::Tick,
            };
            let now = Now::read();
            dirty = !matches!(woken, Woken::Draw);
            let effects = match woken {
                Woken::Terminal(Some(Ok(event))) => self.event(event, now)?,
                Woken::Terminal(Some(Err(_)) | None) => return Ok(Left::Closed),
                Woken::Signal(number) => return Ok(Left::BySignal(number)),
                Woken::Reply(Some(reply)) => self.app.reply(reply),
                Woken::News(Some(news)) => self.app.news(news, now),
                // A task that ended by itself has said why before.
                Woken::Reply(None) | Woken::News(None) => return Ok(Left::ByItself),
                Woken::Draw => {
                    self.draw(now)?;
                    Vec::new()
                }
                Woken::Tick => Vec::new(),
            };
            for effect in effects {
                if self.carry_out(effect)? == Go::Leave {
                    let by_itself = self.app.failure().is_some();
                    return Ok(if by_itself { Left::ByItself } else { Left::ByKey });
                }
            }
        }
    }

    fn event(&mut self, event: Event, now: Now) -> io::Result<Vec<Effect>> {
        Ok(match event {
            Event::Key(key) => self.app.key(key, now),
            Event::Paste(text) => {
                self.app.paste(&text, now);
                Vec::new()
            }
            Event::Resize(..) => {
                self.size = size()?;
                self.app.set_width(self.size.columns);
                Vec::new()
            }
            Event::FocusGained | Event::FocusLost => {
                self.app.focus(event == Event::FocusGained, now);
                Vec::new()
            }
            Event::Mouse(_) => Vec::new(),
        })
    }

    fn carry_out(&mut self, effect: Effect) -> io::Result<Go> {
        match effect {
            Effect::Call(request) => {
                if let Err(request) = self.link.call(request) {
                    let error = RpcError::new(ErrorKind::Busy, "too many calls wait for agentd").hint("try again");
                    self.app.reply(Reply::Failed {
                        request,
                        error: ClientError::Rpc(error),
                    });
                }
            }
            Effect::Follow(info) => self.link.follow(&info.id),
            Effect::Suspend => {
                self.screen.clear(self.size.columns)?;
                terminal::suspend(&mut self.modes)?;
                self.size = size()?;
                self.app.set_width(self.size.columns);
            }
            Effect::Ring(bytes) => {
                let mut terminal = io::stdout();
                terminal.write_all(bytes.as_bytes())?;
                terminal.flush()?;
            }
            Effect::Redraw => self.screen.clear(self.size.columns)?,
            Effect::Leave => return Ok(Go::Leave),
        }
        Ok(Go::On)
    }

    fn draw(&mut self, now: Now) -> io::Result<()> {
        // A change of size whose event has not come yet would break the rows that are drawn now.
        let size = size()?;
        if size != self.size {
            self.size = size;
            self.app.set_width(size.columns);
        }
        self.app.prepare(size);
        let finished = self.app.take_finished();
        let live = view::compose(&self.app, size, now);
        self.screen.draw(&finished, &live, size)?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    fn draw_at(&self) -> Instant {
        self.drawn.map_or_else(Instant::now, |drawn| drawn + DRAW_EVERY)
    }

    /// Time until what is shown changes although nothing happens.
    fn next_tick(&self) -> Option<Duration> {
        let state = &self.app.session.state;
        let (_, until) = state.mode(protocol::Time::now());
        let passes = until.is_some() || !state.jobs.is_empty();
        match state.is_busy() {
            true => Some(view::FRAME),
            false => passes.then_some(Duration::from_secs(1)),
        }
    }

    /// Puts the terminal back, says what remains to be said, and lets the last calls through.
    async fn leave(mut self, left: io::Result<Left>) -> anyhow::Result<ExitCode> {
        if let Some(Effect::Call(request @ Request::Delete(_))) = self.app.leave_session() {
            let _ = self.link.call(request);
        }
        let finished = self.app.take_finished();
        let closing = matches!(left, Ok(Left::Closed)) || left.is_err();
        if !closing {
            self.screen
                .draw(&finished, &crate::screen::Live::default(), self.size)?;
            self.screen.clear(self.size.columns)?;
        }
        self.modes = None;
        self.link.finish(LAST_CALLS).await;
        match left? {
            Left::ByItself => anyhow::bail!("{}", self.app.failure().unwrap_or("the connection to agentd ended")),
            Left::BySignal(number) => Ok(ExitCode::from(128 + number)),
            Left::Closed => Ok(ExitCode::SUCCESS),
            Left::ByKey => {
                if let Some(words) = self.app.farewell() {
                    writeln!(io::stdout(), "{words}")?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Go {
    On,
    Leave,
}

/// The number of the signal that came.
async fn caught(terminate: &mut Signal, hang_up: &mut Signal) -> u8 {
    tokio::select! {
        _ = terminate.recv() => 15,
        _ = hang_up.recv() => 1,
    }
}

fn size() -> io::Result<Size> {
    let (columns, rows) = crossterm::terminal::size()?;
    // Some terminals say 0 before they know better.
    Ok(Size {
        columns: if columns == 0 { 80 } else { columns },
        rows: if rows == 0 { 24 } else { rows },
    })
}
