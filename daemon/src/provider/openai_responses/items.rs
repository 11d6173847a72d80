//! The output items of a response while they grow.
//!
//! Items can be open at the same time, so nothing is "current": a `Slot` is an item of the wire, found by its index or id;
//! an `Open` is an item the sink knows. A message gives one for its text and one for its refusal, everything else one.

use serde_json::{Map, Value};

use super::slot::{Key, Slot, Stage, call, hosted, private_size, some_fields, texts};
use crate::provider::decoded::{Budget, Item, PARAGRAPH, Part, ReplyTooLarge};
use crate::provider::{ItemKind, Sink};

/// Where parts stand that were only seen in a finished item: behind all streamed ones.
const LATE: usize = 1 << 32;

/// An item the sink knows.
#[derive(Debug)]
struct Open {
    slot: usize,
    voice: Voice,
    /// The running texts by their part number.
    parts: Vec<(PartKey, Part)>,
}

/// What kind of text an event carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Refusal,
    Reasoning,
    /// A call or a hosted tool; it has no running text of its own.
    Silent,
}

/// Which part of an item: summaries and full reasoning are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKey {
    Content(Option<u64>),
    Summary(Option<u64>),
    /// A part read from the finished item.
    Finished(usize),
}

/// All items of one response.
#[derive(Debug, Default)]
pub(super) struct Items {
    slots: Vec<Slot>,
    opens: Vec<Open>,
    /// Counts parts in order of appearance.
    next_part: usize,
    budget: Budget,
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes `response.output_item.added`.
    pub(super) fn added(&mut self, key: Key, raw: Map<String, Value>, sink: &mut dyn Sink) {
        let slot = self.slot(key);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.raw = raw;
        }
        self.announce(slot, sink);
    }

    /// Takes `response.output_item.done`, which is what counts.
    pub(super) fn done(&mut self, key: Key, raw: Map<String, Value>, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let place = self.slot(key);
        if let Some(slot) = self.slots.get_mut(place) {
            let cut = raw.get("status").is_some_and(|status| status == "incomplete");
            slot.stage = if cut { Stage::Cut } else { Stage::Done };
            slot.raw = raw;
            self.budget.spend(private_size(slot))?;
        }
        self.announce(place, sink);
        self.say_unsaid(place, sink)
    }

    /// Adds a fragment of running text.
    pub(super) fn say(
        &mut self,
        key: Key,
        voice: Voice,
        part: PartKey,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), ReplyTooLarge> {
        let slot = self.slot(key);
        self.say_in(slot, voice, part, text, sink)
    }

    /// Whether any text of this part was streamed; of any part where it is not numbered.
    pub(super) fn has_said(&self, key: &Key, voice: Voice, part: PartKey) -> bool {
        let place = self.place(key);
        let mut own = self
            .opens
            .iter()
            .filter(|open| open.voice == voice && Some(open.slot) == place);
        own.any(|open| {
            open.parts
                .iter()
                .any(|(known, _)| *known == part || part == PartKey::Content(None))
        })
    }

    /// Adds a fragment of a call's arguments.
    pub(super) fn argue(&mut self, key: &Key, text: &str, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let Some(place) = self.place(key) else {
            return Ok(());
        };
        self.budget.spend(text.len())?;
        if let Some(slot) = self.slots.get_mut(place) {
            slot.arguments.push_str(text);
        }
        if let Some(item) = self
            .opens
            .iter()
            .position(|open| open.slot == place)
            .filter(|_| !text.is_empty())
        {
            sink.push(item, text);
        }
        Ok(())
    }

    /// Takes a call's whole arguments: they are only news where none were streamed.
    pub(super) fn argued(&mut self, key: &Key, whole: &str, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        match self.place(key).and_then(|place| self.slots.get(place)) {
            Some(slot) if slot.arguments.is_empty() => self.argue(key, whole, sink),
            _ => Ok(()),
        }
    }

    /// The items, and what the provider wants back unchanged.
    pub(super) fn finish(self) -> (Vec<Item>, Vec<Value>) {
        let reasoning = self.slots.iter().filter(|slot| slot.kind() == "reasoning");
        let replay = reasoning.map(|slot| Value::Object(slot.raw.clone())).collect();
        let slots = &self.slots;
        let items = self
            .opens
            .into_iter()
            .filter_map(|open| Some(item(slots.get(open.slot)?, open.voice, open.parts)));
        (items.collect(), replay)
    }

    /// The latest slot of `key`. An event without an index may name an item that others named by theirs.
    fn place(&self, key: &Key) -> Option<usize> {
        let same = |slot: &Slot| slot.key == *key;
        let named = |slot: &Slot| matches!(key, Key::Id(id) if !id.is_empty() && slot.text("id") == Some(id));
        self.slots
            .iter()
            .rposition(same)
            .or_else(|| self.slots.iter().rposition(named))
    }

    fn slot(&mut self, key: Key) -> usize {
        if let Some(place) = self.place(&key) {
            return place;
        }
        self.slots.push(Slot {
            key,
            raw: Map::new(),
            stage: Stage::Growing,
            arguments: String::new(),
        });
        self.slots.len() - 1
    }

    /// Opens the item of a slot at once where its kind says what it will be; a message waits for its first word.
    fn announce(&mut self, place: usize, sink: &mut dyn Sink) {
        let Some(slot) = self.slots.get(place) else { return };
        if self.opens.iter().any(|open| open.slot == place) {
            return;
        }
        let (voice, kind) = match slot.kind() {
            "message" | "" => return,
            "reasoning" => (Voice::Reasoning, ItemKind::Reasoning),
            "function_call" | "custom_tool_call" => {
                let text = |field: &str| slot.text(field).unwrap_or_default().to_owned();
                (
                    Voice::Silent,
                    ItemKind::Call {
                        name: text("name"),
                        provider_call_id: text("call_id"),
                    },
                )
            }
            _ => (Voice::Silent, ItemKind::Opaque),
        };
        self.open(place, voice, kind, sink);
    }

    fn open(&mut self, slot: usize, voice: Voice, kind: ItemKind, sink: &mut dyn Sink) -> usize {
        let item = self.opens.len();
        sink.open(item, kind);
        self.opens.push(Open {
            slot,
            voice,
            parts: Vec::new(),
        });
        item
    }

    fn say_in(
        &mut self,
        slot: usize,
        voice: Voice,
        part: PartKey,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), ReplyTooLarge> {
        self.budget.spend(text.len())?;
        let known = self
            .opens
            .iter()
            .position(|open| open.slot == slot && open.voice == voice);
        let item = match known {
            Some(item) => item,
            None => {
                let kind = match voice {
                    Voice::Text => ItemKind::Text,
                    Voice::Refusal => ItemKind::Refusal,
                    Voice::Reasoning => ItemKind::Reasoning,
                    Voice::Silent => return Ok(()),
                };
                self.open(slot, voice, kind, sink)
            }
        };
        let Some(open) = self.opens.get_mut(item) else {
            return Ok(());
        };
        let spoken = open.parts.iter().any(|(_, part)| !part.text.is_empty());
        let place = match open.parts.iter().position(|(known, _)| *known == part) {
            Some(place) => place,
            None => {
                let late = if matches!(part, PartKey::Finished(_)) { LATE } else { 0 };
                open.parts.push((
                    part,
                    Part {
                        order: late + self.next_part,
                        text: String::new(),
                    },
                ));
                self.next_part += 1;
                open.parts.len() - 1
            }
        };
        if let Some((_, part)) = open.parts.get_mut(place).filter(|_| !text.is_empty()) {
            if voice == Voice::Reasoning && spoken && part.text.is_empty() {
                sink.push(item, PARAGRAPH);
            }
            part.text.push_str(text);
            sink.push(item, text);
        }
        Ok(())
    }

    /// Says what a finished item holds and no delta said.
    fn say_unsaid(&mut self, place: usize, sink: &mut dyn Sink) -> Result<(), ReplyTooLarge> {
        let Some(slot) = self.slots.get(place) else {
            return Ok(());
        };
        let said = |voice: Voice| {
            self.opens
                .iter()
                .any(|open| open.slot == place && open.voice == voice && !open.parts.is_empty())
        };
        let mut unsaid = Vec::new();
        match slot.kind() {
            "message" => {
                if !said(Voice::Text) {
                    unsaid.extend(
                        texts(slot, "content", "output_text", "text")
                            .into_iter()
                            .map(|text| (Voice::Text, text)),
                    );
                }
                if !said(Voice::Refusal) {
                    unsaid.extend(
                        texts(slot, "content", "refusal", "refusal")
                            .into_iter()
                            .map(|text| (Voice::Refusal, text)),
                    );
                }
            }
            "reasoning" if !said(Voice::Reasoning) => {
                let summary = texts(slot, "summary", "", "text").into_iter();
                let all = summary.chain(texts(slot, "content", "", "text"));
                unsaid.extend(all.map(|text| (Voice::Reasoning, text)));
            }
            "function_call" | "custom_tool_call" if slot.arguments.is_empty() => {
                let (key, whole) = (slot.key.clone(), slot.whole_arguments().to_owned());
                return self.argue(&key, &whole, sink);
            }
            _ => {}
        }
        for (number, (voice, text)) in unsaid.into_iter().enumerate() {
            self.say_in(place, voice, PartKey::Finished(number), &text, sink)?;
        }
        Ok(())
    }
}

fn item(slot: &Slot, voice: Voice, parts: Vec<(PartKey, Part)>) -> Item {
    let parts: Vec<Part> = parts.into_iter().map(|(_, part)| part).collect();
    match voice {
        Voice::Text => Item::Text {
            parts,
            private: some_fields(slot, &["id", "phase"]),
        },
        Voice::Refusal => Item::Refusal {
            text: parts.into_iter().map(|part| part.text).collect(),
        },
        // What `added` holds of a reasoning item is not what the provider takes back.
        Voice::Reasoning => {
            let whole = slot.stage == Stage::Done && slot.kind() == "reasoning";
            Item::Reasoning {
                parts,
                private: whole.then(|| Value::Object(slot.raw.clone())),
            }
        }
        Voice::Silent if matches!(slot.kind(), "function_call" | "custom_tool_call") => Item::Call(call(slot)),
        Voice::Silent => hosted(slot),
    }
}
