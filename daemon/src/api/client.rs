//! A connection's other end: who the kernel says it is, and who it says it is itself.

use super::peer::{Origin, Peer};
use protocol::frame::{ClientView, Role};
use protocol::method::Access;
use protocol::{By, ErrorKind, RpcError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The kind of a client that has not said what it is.
const UNKNOWN: &str = "unknown";

/// The client of one connection.
#[derive(Debug)]
pub(crate) struct Client {
    peer: Peer,
    introduced: Mutex<Introduced>,
}

/// What a client said of itself.
#[derive(Debug, Clone)]
pub(crate) struct Introduced {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) role: Role,
    pub(crate) answers: bool,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Client {
    pub(crate) fn new(peer: Peer) -> Self {
        let role = role_of(&peer, Role::Observer);
        let name = "anonymous".to_owned();
        let kind = UNKNOWN.to_owned();
        let introduced = Introduced {
            name,
            kind,
            role,
            answers: false,
            environment: BTreeMap::new(),
        };
        Self {
            peer,
            introduced: Mutex::new(introduced),
        }
    }

    /// Takes over what the client said of itself; a tool stays a tool.
    pub(crate) fn introduce(&self, mut introduced: Introduced) -> Role {
        introduced.role = role_of(&self.peer, introduced.role);
        introduced.answers &= introduced.role == Role::Controller;
        let role = introduced.role;
        *self.introduced.lock().unwrap_or_else(PoisonError::into_inner) = introduced;
        role
    }

    pub(crate) fn introduced(&self) -> Introduced {
        self.introduced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it has introduced itself.
    pub(crate) fn greeted(&self) -> bool {
        self.introduced.lock().unwrap_or_else(PoisonError::into_inner).kind != UNKNOWN
    }

    /// Who is recorded as having done what this client does.
    pub(crate) fn by(&self) -> By {
        let Introduced { name, kind, .. } = self.introduced();
        By::Client {
            client: name,
            kind,
            pid: self.peer.pid,
        }
    }

    /// How others see it.
    pub(crate) fn view(&self) -> ClientView {
        let Introduced { name, kind, role, .. } = self.introduced();
        ClientView {
            name,
            kind,
            pid: self.peer.pid,
            role,
        }
    }

    /// Whether it may use a method of this kind.
    ///
    /// # Errors
    /// `from_inside` for what a tool started, `not_authorized` for who did not show the token.
    pub(crate) fn allow(&self, access: Access) -> Result<(), RpcError> {
        match (access, self.introduced().role) {
            (Access::Watch, _) | (Access::Act, Role::Controller) => Ok(()),
            (Access::Act, Role::Tool) => Err(RpcError::new(
                ErrorKind::FromInside,
                "this was started by a tool of the daemon, which may watch but not act",
            )
            .hint("a person has to do this from a terminal of their own")),
            (Access::Act, Role::Observer) => Err(RpcError::new(
                ErrorKind::NotAuthorized,
                "acting needs the handshake with the token",
            )
            .hint("call daemon.hello with the content of `token` in the state directory")),
        }
    }
}

fn role_of(peer: &Peer, wanted: Role) -> Role {
    match peer.origin {
        Origin::Outside => wanted,
        Origin::Inside => Role::Tool,
    }
}
