//! An approval in the live area, or, when it is too long for that, printed whole above it.

use super::LIVE_ROWS;
use crate::app::{App, Focus};
use crate::paint;
use crate::screen::Size;
use crate::wrap::wrap;
use protocol::frame::ApprovalView;
use protocol::wording::{Editing, approval_lines, key_line};
use ratatui::text::{Line, Span};

/// Rows of the live area that the spinner and the status take.
const OTHER_ROWS: usize = 2;

/// Whether the whole question has room in the live area of a terminal, beside an input of `input_rows`.
pub(crate) fn fits_live(view: &ApprovalView, size: Size, input_rows: usize) -> bool {
    let height = usize::from(LIVE_ROWS.min(size.rows.saturating_sub(1)));
    let keys = wrap(&Line::from(key_line(view, Editing::Offered)), size.columns, 0).len();
    let room = height.saturating_sub(OTHER_ROWS + input_rows + keys);
    // The number of lines alone decides for a text that no terminal has room for.
    let lines = approval_lines(view);
    lines.len() <= room && wrapped(&lines, size.columns).len() <= room
}

/// The question for the scrollback; long lines are left to the terminal, which joins them when they are copied.
pub(crate) fn whole_question(view: &ApprovalView) -> Vec<Line<'static>> {
    styled(&approval_lines(view))
}

/// The question that waits, whole or as what was printed above, and its keys.
pub(super) fn question_lines(app: &App, columns: u16) -> Vec<Line<'static>> {
    let Some(ask) = &app.ask else { return Vec::new() };
    let lines = approval_lines(&ask.view);
    let mut shown = if app.is_printed(&ask.view.id) {
        let head = lines
            .first()
            .map(|line| line.trim_end_matches(':').to_owned())
            .unwrap_or_default();
        let line = paint::line(format!("{head}; shown in full above"), paint::attention());
        wrap(&line, columns, 0)
    } else {
        wrapped(&lines, columns)
    };
    shown.extend(wrap(&keys(app, ask), columns, 0));
    shown
}

fn keys(app: &App, ask: &crate::app::Ask) -> Line<'static> {
    let others = match app.questions() {
        0 | 1 => String::new(),
        count => format!("  ({} more)", count - 1),
    };
    let keys = key_line(&ask.view, Editing::Offered);
    match &ask.focus {
        Focus::Telling(_) => paint::line(
            format!("denied when you have said what to do instead{others}"),
            paint::dim(),
        ),
        Focus::Always => Line::from(vec![
            Span::styled(
                "[Enter writes that rule of yours and allows the call]",
                paint::attention(),
            ),
            Span::styled(format!("  any other key goes back{others}"), paint::dim()),
        ]),
        Focus::Editing(_) => paint::line(
            format!("Enter allows the changed call once; more than was asked is asked anew{others}"),
            paint::dim(),
        ),
        Focus::Question => Line::from(vec![
            Span::styled(format!("[{keys}]"), paint::attention()),
            Span::styled(format!("  Esc back{others}"), paint::dim()),
        ]),
        Focus::Draft if app.draft.is_empty() => Line::from(vec![
            Span::styled(keys, paint::attention()),
            Span::styled(others, paint::dim()),
        ]),
        Focus::Draft => paint::line(format!("Ctrl-Y, then {keys}{others}"), paint::dim()),
    }
}

fn wrapped(lines: &[String], columns: u16) -> Vec<Line<'static>> {
    styled(lines).iter().flat_map(|line| wrap(line, columns, 4)).collect()
}

/// The first line asks; the indented ones are what it is about; the rest explains.
fn styled(lines: &[String]) -> Vec<Line<'static>> {
    let style = |(index, line): (usize, &String)| {
        let style = match line.strip_prefix("  ") {
            _ if index == 0 => paint::attention(),
            Some(text) => paint::diff_line(text),
            None => paint::dim(),
        };
        paint::line(line.clone(), style)
    };
    lines.iter().enumerate().map(style).collect()
}
