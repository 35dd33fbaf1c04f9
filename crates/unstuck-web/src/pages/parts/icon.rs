//! Line icons in the color of the text; each stands next to a label.

use maud::{Markup, html};

/// An icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    /// Overview.
    Overview,
    /// Inbox.
    Inbox,
    /// Runs.
    Runs,
    /// Failures.
    Failures,
    /// Policies.
    Policies,
    /// Settings.
    Settings,
    /// Success.
    Check,
    /// Recovered.
    Recovered,
    /// Failure.
    Cross,
    /// Waiting.
    Clock,
    /// Running.
    Running,
    /// Needs human input.
    Person,
    /// Stopped.
    Stopped,
}

impl Icon {
    const fn path(self) -> &'static str {
        match self {
            Self::Overview => "M3 12h4l2.5-7 5 14 2.5-7h4",
            Self::Inbox => "M4 13l2.5-8h11L20 13v6H4zM4 13h5l1 2.5h4l1-2.5h5",
            Self::Runs => "M4 6h16M4 12h16M4 18h10",
            Self::Failures => "M4 20V4M4 20h16M8.5 16v-4M13 16V7M17.5 16v-6",
            Self::Policies => {
                "M12 3l7 3v5.5c0 4.4-3 7.9-7 9.5-4-1.6-7-5.1-7-9.5V6zM9 12l2.2 2.2L15.2 10"
            }
            Self::Settings => "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
            Self::Check => "M5 12.5l4.5 4.5L19 7.5",
            Self::Recovered => "M4.5 12a7.5 7.5 0 1 1 2.2 5.3M4.5 18v-5h5",
            Self::Cross => "M6.5 6.5l11 11M17.5 6.5l-11 11",
            Self::Clock => "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 7.5V12l3 2",
            Self::Running => "M12 3.5a8.5 8.5 0 1 1-8.5 8.5",
            Self::Person => {
                "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c1-4 4-6 7.5-6s6.5 2 7.5 6"
            }
            Self::Stopped => "M7 7h10v10H7z",
        }
    }

    /// Renders the icon, hidden from screen readers.
    pub(crate) fn render(self) -> Markup {
        let class = (self == Self::Running).then_some("turning");
        html! {
            svg class=[class] viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"
                stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false" {
                path d=(self.path()) {}
            }
        }
    }
}

/// Renders the logo: a loop with an exit.
pub(crate) fn logo() -> Markup {
    html! {
        svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.6" stroke-linecap="round"
            stroke-linejoin="round" aria-hidden="true" focusable="false" {
            path d="M14.5 15.5A5.5 5.5 0 1 1 15 8.5L20.5 3M15.5 3h5v5" {}
        }
    }
}
