//! Takes the secrets of a profile out of any text that leaves the provider code.
//!
//! Providers echo keys in error bodies; HTTP errors print URLs. Each secret is looked for as it is and in the forms it
//! takes on the way: base64, URL-encoded and JSON-escaped.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};

/// Shorter secrets are placeholders such as `none`; cutting them out would only garble texts.
const SHORTEST_SECRET: usize = 6;

/// What stands where a secret was.
const MARK: &str = "[redacted]";

/// The forms of the secrets to look for, longest first.
#[derive(Clone, Default)]
pub struct Redactor {
    forms: Vec<SecretString>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

impl Redactor {
    /// A redactor of `secrets`.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .flat_map(forms_of)
            .collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self {
            forms: forms.into_iter().map(SecretString::from).collect(),
        }
    }

    /// `text` without the secrets.
    pub fn clean(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, form| {
            let form = form.expose_secret();
            if text.contains(form) {
                text.replace(form, MARK)
            } else {
                text
            }
        })
    }
}

fn forms_of(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut forms = vec![secret.to_owned(), url_encoded(secret), json_escaped(secret)];
    forms.extend(
        [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
            .iter()
            .map(|engine| engine.encode(bytes)),
    );
    forms
}

fn url_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn json_escaped(text: &str) -> String {
    serde_json::Value::from(text).to_string().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_secret_is_taken_out() {
        let secret = "sk+very/secret=\"1\"";
        let redactor = Redactor::new([secret]);
        for form in forms_of(secret) {
            let cleaned = redactor.clean(&format!("before {form} after"));
            assert_eq!(cleaned, "before [redacted] after", "{form}");
        }
    }

    #[test]
    fn placeholders_do_not_garble_texts() {
        assert_eq!(Redactor::new(["none", ""]).clean("none of it"), "none of it");
    }

    #[test]
    fn a_redactor_does_not_print_its_secrets() {
        assert!(!format!("{:?}", Redactor::new(["hidden-value"])).contains("hidden"));
    }
}
