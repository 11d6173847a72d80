//! Tools whose work is reading and writing files. It is done off the runtime's threads, and what a call does is found out once more
//! right before it is done.

use async_trait::async_trait;
use serde_json::Value;

use super::digest::agrees;
use super::patience::Patience;
use super::{ArgumentError, Ended, Inspected, Outcome, Place, RunContext, Spec, Tool, blocking};

/// A tool that blocks on files.
pub(super) trait FileTool: Send + Sync + 'static {
    /// A call as it would be done now: its arguments checked, what they name resolved. It acts on the very value that was held against
    /// the verdict: resolving again could follow a link that was not there before.
    type Call;

    /// What models are told about it.
    fn about() -> &'static Spec;

    /// What the arguments mean now, and what is to be judged of that. Touches nothing.
    ///
    /// # Errors
    /// The path of the mistake in the arguments.
    fn look(arguments: &Value, place: &Place) -> Result<(Self::Call, Inspected), ArgumentError>;

    /// Whether the call, judged as `now` says, is the one of `digest`.
    fn is_of(_call: &Self::Call, now: &Inspected, digest: &str, _place: &Place) -> bool {
        agrees(&now.digest, digest)
    }

    /// Does it.
    ///
    /// # Errors
    /// What the model is told.
    fn act(call: Self::Call, place: &Place, patience: &Patience) -> Result<Ended, ArgumentError>;
}

#[async_trait]
impl<T: FileTool> Tool for T {
    fn spec(&self) -> &Spec {
        T::about()
    }

    async fn inspect(&self, arguments: &Value, place: &Place) -> Result<Inspected, ArgumentError> {
        let (arguments, place) = (arguments.clone(), place.clone());
        blocking(move || Ok(T::look(&arguments, &place)?.1)).await?
    }

    async fn run(&self, arguments: &Value, digest: &str, context: RunContext) -> Ended {
        let (arguments, digest, place) = (arguments.clone(), digest.to_string(), context.place);
        let patience = Patience::new(context.stop);
        Ended::of_blocking(move || match T::look(&arguments, &place) {
            Ok((call, now)) if !T::is_of(&call, &now, &digest, &place) => Ended::changed_since_approved(),
            Ok((call, _)) => {
                T::act(call, &place, &patience).unwrap_or_else(|error| Ended::new(Outcome::Error, error.to_string()))
            }
            Err(error) => Ended::new(Outcome::NotRun, error.to_string()),
        })
        .await
    }
}
