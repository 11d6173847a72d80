//! The forms a secret is looked for in.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// All forms, none of them empty.
pub(super) fn all(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), url_encoded(secret), json_escaped(secret)];
    forms.extend(base64(secret));
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Those in base64, alone and inside of other texts.
pub(super) fn base64(secret: &str) -> impl Iterator<Item = String> {
    let alphabets = [&STANDARD, &URL_SAFE];
    alphabets
        .into_iter()
        .flat_map(move |alphabet| (0..3).map(move |before| base64_inside(secret, before, alphabet)))
}

/// Base64 of `secret` behind `before` other bytes, without the characters that these or what follows have a part in.
fn base64_inside(secret: &str, before: usize, alphabet: &Alphabet) -> String {
    const BITS: usize = 6;
    let bytes = [vec![0; before], secret.as_bytes().to_vec()].concat();
    let encoded = GeneralPurpose::new(alphabet, NO_PAD).encode(&bytes);
    let own = (before * 8).div_ceil(BITS)..bytes.len() * 8 / BITS;
    encoded.get(own).unwrap_or_default().to_owned()
}

fn url_encoded(text: &str) -> String {
    let encode = |byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .to_owned()
}
