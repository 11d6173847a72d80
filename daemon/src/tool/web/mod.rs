//! Reading a page of the web for a tool: which addresses may be reached, the request itself, and its body as text.
//!
//! The host is judged by name before anything is asked of the network, and by address in the one resolver step whose answers
//! are the only ones a connection is made to. Nothing follows a page to another host: that is a call of its own, to be judged
//! as such. Requests carry no cookies and nothing of the user's but a name and version.

mod get;
mod ranges;
mod reach;
mod text;

pub(super) use get::{Extent, Failure, Fetched, Page, Web};
pub(super) use reach::Reach;
pub(super) use text::{TextOf, text_of};

impl super::Inspected {
    /// The call reaches `url`: rules go by its host, and a person sees the whole of it.
    pub(in crate::tool) fn reaching(mut self, url: reqwest::Url) -> Self {
        let host = url.host_str().map(str::to_owned);
        self.facts.host.clone_from(&host);
        self.action.host = host;
        self.action.url = Some(url.into());
        self
    }
}
