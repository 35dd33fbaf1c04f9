//! Settings page: agents, models, webhooks and budgets.

use maud::{Markup, html};

use super::chart;
use super::layout::{self, NavItem, PageFrame};
use super::parts::controls::button;
use super::parts::icon::Icon;
use super::parts::{badge, empty_state, money, sanitized_text};
use crate::model::{Agent, BudgetResponse, Budgets, Model, Models, Webhook};

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct SettingsPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Agents.
    pub(crate) agents: Vec<Agent>,
    /// Models and prices.
    pub(crate) models: Models,
    /// Webhooks.
    pub(crate) webhooks: Vec<Webhook>,
    /// Budgets.
    pub(crate) budgets: Budgets,
}

/// Renders the page.
pub(crate) fn page(view: &SettingsPage) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Settings" } p class="dim" { "Settings are stored in configuration files; " code { "unstuck config show --origin" } " shows the source of each value." } } }
        (budgets(view))
        (webhooks(view))
        (agents(view))
        (models(view))
    };
    layout::page(&view.frame, NavItem::Settings, "Settings", body)
}

/// Renders one part of the page.
pub(crate) fn part(view: &SettingsPage, name: &str) -> Option<Markup> {
    (name == "budgets").then(|| budgets(view))
}

fn budgets(view: &SettingsPage) -> Markup {
    html! {
        section data-part="budgets" data-about="call_finished attempt_failed attempt_succeeded" data-quietly aria-labelledby="budgets-title" {
            div class="section-head" { h2 id="budgets-title" { "Budgets" } span class="dim small" { (money::usd(view.budgets.spent_today_usd)) " spent on API calls today (UTC)" } }
            @if view.budgets.budgets.iter().all(|one| one.usd.is_none() && one.tokens.is_none()) { (empty_state::empty_state("No budgets configured.", "Example configuration:", Some("[budget]\nper_day = { usd = 20 }"))) }
            @else { div class="tiles" { @for one in &view.budgets.budgets { (budget_row(one)) } } }
        }
    }
}

fn budget_row(one: &BudgetResponse) -> Markup {
    let name = match one.id.as_str() {
        "run" => "per run",
        "day" => "per day",
        "session" => "per gateway session",
        "gateway_day" => "per day, gateway",
        other => other,
    };
    html! {
        @if one.usd.is_some() || one.tokens.is_some() {
            div class="card tile" {
                @match (one.usd, one.tokens) {
                    (Some(usd), _) => { span class="big" { (money::usd(usd)) } }
                    (None, Some(tokens)) => { span class="big" { (money::tokens(tokens)) " tokens" } }
                    (None, None) => {}
                }
                span class="name" { (sanitized_text::one_line(name, 60)) }
                @if let (Some(spent), Some(usd)) = (one.spent_usd, one.usd) { span class="small" { (chart::share_bar(spent / usd.max(f64::MIN_POSITIVE))) " " (money::usd(spent)) " spent" } }
            }
        }
    }
}

fn webhooks(view: &SettingsPage) -> Markup {
    let refused = view.frame.permissions.change_refusal();
    html! {
        section aria-labelledby="webhooks-title" {
            div class="section-head" { h2 id="webhooks-title" { "Webhooks" } }
            @if view.webhooks.is_empty() { (empty_state::empty_state("No webhooks configured.", "Example configuration:", Some("[webhooks]\non_escalation = \"https://hooks.example/unstuck\""))) }
            @else { div class="card flush" { table class="table folds" {
                caption class="hidden-visually" { "Webhooks by event" }
                thead { tr { th scope="col" { "Event" } th scope="col" { "Target" } th scope="col" { "Format" } th scope="col" { "Test" } } }
                tbody { @for one in &view.webhooks { tr {
                    th scope="row" { (sanitized_text::one_line(&one.event.replace('_', " "), 60)) }
                    td data-name="Target" { code { (sanitized_text::one_line(&one.target, 200)) } }
                    td data-name="Format" { (sanitized_text::one_line(&one.format, 60)) }
                    td { form class="row" data-api={ "/api/webhooks/" (one.id) "/test" } data-done="Sent. Check that it arrived." data-tell="response" {
                        (button("", "submit", refused, html! { "Send test" span class="hidden-visually" { " to " (sanitized_text::one_line(&one.target, 80)) } })) span class="says" role="status" {}
                    } }
                } } }
            } } }
        }
    }
}

fn agents(view: &SettingsPage) -> Markup {
    html! {
        section aria-labelledby="agents-title" {
            div class="section-head" { h2 id="agents-title" { "Agents" } }
            div class="card flush" { table class="table folds" {
                caption class="hidden-visually" { "Supported agents" }
                thead { tr { th scope="col" { "Agent" } th scope="col" { "Status" } th scope="col" { "Prompt via" } th scope="col" { "Capabilities" } } }
                tbody { @for agent in &view.agents { tr {
                    th scope="row" { div class="title-cell" { span { (sanitized_text::one_line(&agent.title, 80)) } code class="small dim" { (sanitized_text::one_line(&agent.id, 60)) } } }
                    td data-name="Status" { div { (installed(agent)) } }
                    td data-name="Prompt via" { (sanitized_text::one_line(&agent.prompt, 30)) }
                    td data-name="Capabilities" { (capabilities(agent)) }
                } } }
            } }
        }
    }
}

fn installed(agent: &Agent) -> Markup {
    html! {
        @match agent.installed {
            Some(true) => { (badge::badge("is-ok", Icon::Check, "Installed")) @if let Some(version) = &agent.version { " " span class="small dim" title=[agent.path.as_deref().map(|path| sanitized_text::one_line(path, 300))] { (sanitized_text::one_line(version, 60)) } } }
            Some(false) => { (badge::badge("is-gone", Icon::Cross, "Not found")) }
            None => { span class="dim" { "not checked" } }
        }
    }
}

fn capabilities(agent: &Agent) -> String {
    let all = [
        (agent.resumes, "resume conversations"),
        (agent.model, "choose model"),
        (agent.tools, "restrict tools"),
    ];
    let able: Vec<_> = all
        .into_iter()
        .filter(|(can, _)| *can)
        .map(|(_, words)| words)
        .collect();
    if able.is_empty() {
        "–".to_owned()
    } else {
        able.join(", ")
    }
}

fn models(view: &SettingsPage) -> Markup {
    html! {
        section aria-labelledby="models-title" {
            div class="section-head" { h2 id="models-title" { "Models and prices" } span class="dim small" { "USD per million tokens" } }
            @for ladder in &view.models.ladders {
                p class="small" { span class="label" { "Ladder " (sanitized_text::one_line(&ladder.id, 40)) ": " }
                    @for (at, model) in ladder.models.iter().enumerate() { @if at > 0 { " → " } span class="tag" { (sanitized_text::one_line(model, 80)) } } }
            }
            div class="card flush" { table class="table folds tight lined" {
                caption class="hidden-visually" { "Models and prices" }
                thead { tr { th scope="col" { "Model" } th scope="col" { "Provider" } th scope="col" class="number" { "Input" } th scope="col" class="number" { "Cached" } th scope="col" class="number" { "Output" } th scope="col" class="number" { "Context" } th scope="col" { "Price date" } } }
                tbody { @for model in &view.models.models { (model_row(model)) } }
            } }
        }
    }
}

fn model_row(model: &Model) -> Markup {
    let price = model.price.as_ref();
    let usd = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), money::usd);
    html! {
        tr {
            th scope="row" { code { (sanitized_text::one_line(&model.id, 100)) } }
            td data-name="Provider" { (sanitized_text::one_line(&model.provider, 60)) }
            td data-name="Input" class="number" { (usd(price.map(|price| price.input))) }
            td data-name="Cached" class="number" { (usd(price.and_then(|price| price.cached))) }
            td data-name="Output" class="number" { (usd(price.map(|price| price.output))) }
            td data-name="Context" class="number" { (model.context.map_or_else(|| "–".to_owned(), money::tokens)) }
            td data-name="Price date" { (price.map_or_else(|| "unknown".to_owned(), |price| sanitized_text::one_line(&price.as_of, 20))) }
        }
    }
}
