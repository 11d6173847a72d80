//! How a client asks for the attention of a person who may look elsewhere: the bell, or a notification of the terminal. The text
//! passes [`display`], so that nothing in it can end the sequence or begin another.

use crate::display::{Form, display};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a notification.
const CHARACTERS: usize = 200;

/// What a terminal is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// Nothing.
    Off,
    /// The bell, which every terminal knows.
    #[default]
    Bell,
    /// The bell and a notification as iTerm2, kitty, WezTerm, foot and Windows Terminal show it.
    Osc9,
    /// The bell and a notification as urxvt, foot and VTE terminals show it.
    Osc777,
}

/// When and how clients ask for attention, as the configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Attention {
    /// What their terminals are sent.
    pub signal: Signal,
    /// Milliseconds a turn has to take for its end to be worth it; absent: no end is.
    pub turn_after_ms: Option<u64>,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            signal: Signal::default(),
            turn_after_ms: Some(Self::TURN_AFTER_MS),
        }
    }
}

impl Attention {
    /// The time a turn has to take where the configuration says nothing: as long as people keep looking, about.
    pub const TURN_AFTER_MS: u64 = 30_000;

    /// Whether the end of a turn that took so long is worth it.
    #[must_use]
    pub fn is_long(&self, turn_ms: u64) -> bool {
        self.turn_after_ms.is_some_and(|after| turn_ms >= after)
    }
}

/// The bytes that ask for attention with `text`; they move no cursor.
#[must_use]
pub fn sequence(signal: Signal, text: &str) -> String {
    let text = display(text, Form::Inline);
    let text: String = text.chars().take(CHARACTERS).collect();
    match signal {
        Signal::Off => String::new(),
        Signal::Bell => "\u{7}".to_owned(),
        Signal::Osc9 => format!("\u{1b}]9;{text}\u{1b}\\\u{7}"),
        // A semicolon separates title and text.
        Signal::Osc777 => format!("\u{1b}]777;notify;agentd;{}\u{1b}\\\u{7}", text.replace(';', ",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_the_sequence_or_begins_another() {
        let hostile = "a\u{7}b\u{1b}\\c\u{1b}]0;x\u{9c}d\u{202e};e\n";
        for signal in [Signal::Osc9, Signal::Osc777] {
            let sent = sequence(signal, hostile);
            let text = sent
                .strip_prefix('\u{1b}')
                .and_then(|rest| rest.strip_suffix("\u{1b}\\\u{7}"));
            assert!(text.is_some_and(|text| !text.chars().any(char::is_control)), "{sent:?}");
        }
        assert_eq!(sequence(Signal::Osc777, "a;b").matches(';').count(), 3);
        assert_eq!(sequence(Signal::Bell, hostile), "\u{7}");
        assert_eq!(sequence(Signal::Off, hostile), "");
    }

    #[test]
    fn a_text_is_short() {
        assert!(sequence(Signal::Osc9, &"x".repeat(10_000)).chars().count() < 220);
    }
}
