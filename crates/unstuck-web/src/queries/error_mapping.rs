//! Converts errors of the store and of commands to problem details.

use axum::http::StatusCode;
use unstuck_store::StoreError;

use crate::commands::WebCommandError;
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

impl From<WebCommandError> for ProblemDetails {
    fn from(error: WebCommandError) -> Self {
        let detail = error.to_string();
        match error {
            WebCommandError::NotFound(_) => Self::not_found(detail),
            WebCommandError::Conflict(_) => Self::conflict(detail),
            WebCommandError::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, detail),
            WebCommandError::Invalid { errors, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_errors(errors)
            }
            WebCommandError::Stale(_) => Self::new(StatusCode::PRECONDITION_FAILED, detail),
            WebCommandError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            WebCommandError::Store(error) => error.into(),
        }
    }
}
