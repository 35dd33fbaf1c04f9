//! Converts errors of the store and of commands to problem details.

use axum::http::StatusCode;
use unstuck_store::StoreError;

use crate::commands::CommandError;
use crate::model::ProblemDetails;

impl From<StoreError> for ProblemDetails {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::UnknownRun { .. } | StoreError::UnknownEscalation { .. } => {
                StatusCode::NOT_FOUND
            }
            StoreError::AlreadyAnswered { .. } | StoreError::EscalationChanged { .. } => {
                StatusCode::CONFLICT
            }
            StoreError::LostLease { .. } | StoreError::RunExists { .. } => StatusCode::CONFLICT,
            StoreError::Busy { .. } | StoreError::Full { .. } | StoreError::ReadOnly { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CommandError> for ProblemDetails {
    fn from(error: CommandError) -> Self {
        let detail = error.to_string();
        match error {
            CommandError::NotFound(_) => Self::not_found(detail),
            CommandError::Conflict(_) => Self::conflict(detail),
            CommandError::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, detail),
            CommandError::Invalid { errors, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_errors(errors)
            }
            CommandError::Stale(_) => Self::new(StatusCode::PRECONDITION_FAILED, detail),
            CommandError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            CommandError::Store(error) => error.into(),
        }
    }
}
