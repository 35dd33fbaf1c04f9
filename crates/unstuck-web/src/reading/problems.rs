//! Errors of the store and of deeds, as those who ask are told of them.

use axum::http::StatusCode;
use unstuck_store::StoreError;

use crate::deeds::DeedError;
use crate::model::Problem;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::UnknownRun { .. } | StoreError::NoQuestion { .. } => StatusCode::NOT_FOUND,
            StoreError::Answered { .. } | StoreError::OtherQuestion { .. } => StatusCode::CONFLICT,
            StoreError::LostLease { .. } | StoreError::RunExists { .. } => StatusCode::CONFLICT,
            StoreError::Busy { .. } | StoreError::Full { .. } | StoreError::ReadOnly { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<DeedError> for Problem {
    fn from(error: DeedError) -> Self {
        let detail = error.to_string();
        match error {
            DeedError::NotFound(_) => Self::not_found(detail),
            DeedError::Conflict(_) => Self::conflict(detail),
            DeedError::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, detail),
            DeedError::Invalid { errors, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_errors(errors)
            }
            DeedError::Stale(_) => Self::new(StatusCode::PRECONDITION_FAILED, detail),
            DeedError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            DeedError::Store(error) => error.into(),
        }
    }
}
