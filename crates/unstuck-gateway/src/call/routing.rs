//! Upstream selection: the first upstream that can serve a request, then its fallbacks.

use unstuck_core::FailureKind;
use unstuck_core::decision::ModelCatalog;
use unstuck_core::event::SkippedUpstream;

use super::cost_budget::CallBudget;
use super::fallback_ineligibility::FallbackIneligibility;
use crate::protocol::{Protocol, RequestFacts};
use crate::settings::Upstream;

/// An upstream and the model to request from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamTarget {
    /// The index of the upstream.
    pub(crate) upstream: usize,
    /// The model name at this upstream.
    pub(crate) model: Option<String>,
}

/// Selects among all configured upstreams.
pub(crate) struct UpstreamSelector<'a> {
    pub(crate) upstreams: &'a [Upstream],
    pub(crate) catalog: &'a ModelCatalog,
    pub(crate) route_around_refusals: bool,
}

/// The requirements of a request that an upstream must fulfill.
pub(crate) struct RequestRequirements<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) request: &'a RequestFacts,
    /// The model name used by the client or the session.
    pub(crate) model: Option<&'a str>,
}

/// The selected fallback and the upstreams that were skipped.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FallbackSelection {
    pub(crate) target: Option<UpstreamTarget>,
    pub(crate) skipped: Vec<SkippedUpstream>,
}

impl UpstreamSelector<'_> {
    /// Selects the first upstream of the protocol, whatever its capabilities. Its own rejection says more than ours
    /// would.
    pub(crate) fn select_first(&self, needs: &RequestRequirements<'_>) -> Option<UpstreamTarget> {
        let mut all = self.upstreams.iter();
        let at = all.position(|one| one.protocol == needs.protocol)?;
        Some(self.target_at(at, needs))
    }

    /// Returns the model name at the first upstream.
    fn upstream_model<'a>(&'a self, needs: &RequestRequirements<'a>) -> Option<&'a str> {
        let mut all = self.upstreams.iter();
        let first = all.find(|one| one.protocol == needs.protocol)?;
        Some(first.model(needs.model?))
    }

    /// Returns true if the target has a fallback.
    pub(crate) fn has_fallback(&self, target: &UpstreamTarget, protocol: Protocol) -> bool {
        let mut behind = self.upstreams.iter().skip(target.upstream + 1);
        behind.any(|one| one.protocol == protocol)
    }

    /// Selects the next upstream that can serve the request within the budget, after a failure of that kind.
    pub(crate) fn select_fallback(
        &self,
        target: &UpstreamTarget,
        needs: &RequestRequirements<'_>,
        purse: &CallBudget<'_>,
        kind: FailureKind,
    ) -> FallbackSelection {
        let mut stand = FallbackSelection::default();
        if !self.may_fail_over(kind) {
            return stand;
        }
        let failed = &self.upstreams[target.upstream];
        let own = self.upstream_model(needs);
        for (at, one) in self.upstreams.iter().enumerate().skip(target.upstream + 1) {
            if one.protocol != needs.protocol {
                continue;
            }
            let next = self.target_at(at, needs);
            let more = match kind {
                FailureKind::ContextLimit => self.check_larger_context(one, failed, needs),
                _ => Ok(()),
            };
            let fits = more
                .and_then(|()| self.check_capabilities(one, needs))
                .and_then(|()| purse.check_fallback(own, next.model.as_deref()));
            match fits {
                Ok(()) => {
                    stand.target = Some(next);
                    break;
                }
                Err(unfit) => stand.skipped.push(SkippedUpstream {
                    upstream: one.name.clone(),
                    model: next.model,
                    why: unfit.to_string(),
                }),
            }
        }
        stand
    }

    fn target_at(&self, at: usize, needs: &RequestRequirements<'_>) -> UpstreamTarget {
        UpstreamTarget {
            upstream: at,
            model: needs
                .model
                .map(|model| self.upstreams[at].model(model).to_owned()),
        }
    }

    /// Returns true if another upstream could succeed after a failure of that kind.
    fn may_fail_over(&self, kind: FailureKind) -> bool {
        match kind {
            // Working around a refusal is left to humans.
            FailureKind::ContentFilter => self.route_around_refusals,
            // The request or the client's own key is wrong at every upstream.
            FailureKind::InvalidRequest | FailureKind::AuthRequired | FailureKind::AuthExpired => {
                false
            }
            _ => true,
        }
    }

    /// Checks whether an upstream can serve a request, as far as is known.
    fn check_capabilities(
        &self,
        upstream: &Upstream,
        needs: &RequestRequirements<'_>,
    ) -> Result<(), FallbackIneligibility> {
        let (asked, lacks) = (needs.request, upstream.missing);
        let tokens = asked.prompt_tokens;
        match self.context_size(upstream, needs) {
            Some(room) if tokens >= room => Err(FallbackIneligibility::Context {
                context_size: room,
                tokens,
            }),
            _ if lacks.tools && asked.tools => Err(FallbackIneligibility::Tools),
            _ if lacks.vision && asked.images => Err(FallbackIneligibility::Vision),
            _ if lacks.prefill && asked.prefill => Err(FallbackIneligibility::Prefill),
            _ => Ok(()),
        }
    }

    /// Returns true if one upstream has a larger context than another.
    fn check_larger_context(
        &self,
        one: &Upstream,
        other: &Upstream,
        needs: &RequestRequirements<'_>,
    ) -> Result<(), FallbackIneligibility> {
        let has_more = match (
            self.context_size(one, needs),
            self.context_size(other, needs),
        ) {
            (Some(room), Some(known)) => room > known,
            // Another model may have a larger context; nothing says otherwise.
            _ => needs
                .model
                .is_some_and(|model| one.model(model) != other.model(model)),
        };
        if has_more {
            Ok(())
        } else {
            Err(FallbackIneligibility::NoLargerContext)
        }
    }

    /// Returns the context size in tokens, if known.
    fn context_size(&self, upstream: &Upstream, needs: &RequestRequirements<'_>) -> Option<u64> {
        let model = needs.model.map(|model| upstream.model(model));
        let of_model = model.and_then(|model| self.catalog.find(model)?.context);
        match (upstream.context, of_model) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unstuck_core::decision::TokenUsage;

    use super::*;
    use crate::settings::UpstreamUnsupportedFeatures;
    use crate::spending::{BudgetOwner, BudgetRemaining};

    fn upstreams() -> Vec<Upstream> {
        let one = |name| Upstream::new(name, Protocol::Anthropic, "http://127.0.0.1:1").unwrap();
        let mut small = one("small");
        small.context = Some(1000);
        let mut plain = one("plain");
        plain.missing = UpstreamUnsupportedFeatures {
            prefill: true,
            ..UpstreamUnsupportedFeatures::default()
        };
        let mut renamed = one("renamed");
        renamed.models.insert("a".into(), "b".into());
        renamed.context = Some(500_000);
        vec![one("first"), small, plain, renamed]
    }

    fn stand(
        asked: &RequestFacts,
        kind: FailureKind,
        around: bool,
        purse: &CallBudget<'_>,
    ) -> FallbackSelection {
        let upstreams = upstreams();
        let choice = UpstreamSelector {
            upstreams: &upstreams,
            catalog: purse.catalog,
            route_around_refusals: around,
        };
        let needs = RequestRequirements {
            protocol: Protocol::Anthropic,
            request: asked,
            model: Some("a"),
        };
        let first = choice.select_first(&needs).unwrap();
        assert_eq!(first.upstream, 0);
        choice.select_fallback(&first, &needs, purse, kind)
    }

    fn after(
        asked: &RequestFacts,
        kind: FailureKind,
        around: bool,
    ) -> Option<(usize, Option<String>)> {
        let purse = CallBudget {
            remaining: None,
            policy: Arc::default(),
            extra_spent: 0.0,
            expected: TokenUsage::default(),
            catalog: &ModelCatalog::default(),
        };
        let stand = stand(asked, kind, around, &purse);
        stand.target.map(|target| (target.upstream, target.model))
    }

    /// Returns a catalog with models `a` and `b`; `a` costs ten times as much.
    fn priced() -> ModelCatalog {
        let model = |id: &str, usd: f64| {
            format!(
                "[[model]]\nid = \"{id}\"\nprovider = \"p\"\nprice = {{ input = {usd}, output = 0, as_of = \"2026-11-01\" }}\n"
            )
        };
        ModelCatalog::parse(&format!("{}{}", model("a", 10.0), model("b", 1.0))).unwrap()
    }

    /// S4-35: a fallback is checked before it is used.
    #[test]
    fn fallback_without_required_capability_is_skipped() {
        let short = RequestFacts::default();
        let long = RequestFacts {
            prompt_tokens: 5000,
            ..RequestFacts::default()
        };
        let begun = RequestFacts {
            prompt_tokens: 5000,
            prefill: true,
            ..RequestFacts::default()
        };
        assert_eq!(
            after(&short, FailureKind::ServerError, false),
            Some((1, Some("a".into())))
        );
        assert_eq!(
            after(&long, FailureKind::ServerError, false),
            Some((2, Some("a".into())))
        );
        assert_eq!(
            after(&begun, FailureKind::ServerError, false),
            Some((3, Some("b".into())))
        );
    }

    /// S4-35: the first fallback that can serve the request within the budget is used, and the reasons for skipping the
    /// others are recorded.
    #[test]
    fn fallback_over_budget_is_skipped() {
        let catalog = priced();
        let mut purse = CallBudget {
            remaining: Some(BudgetRemaining {
                usd: 5.0,
                owner: BudgetOwner::Session,
            }),
            policy: Arc::default(),
            extra_spent: 0.0,
            expected: TokenUsage {
                input: 1_000_000,
                ..TokenUsage::default()
            },
            catalog: &catalog,
        };
        let short = RequestFacts::default();
        let cheap = stand(&short, FailureKind::ServerError, false, &purse);
        assert_eq!(cheap.target.unwrap().upstream, 3);
        let told: Vec<_> = cheap.skipped.iter().map(ToString::to_string).collect();
        let why = "(a) was skipped: would cost about $10.00; $5.00 left in the session budget";
        assert_eq!(told, [format!("small {why}"), format!("plain {why}")]);
        purse.remaining = Some(BudgetRemaining {
            usd: 0.5,
            owner: BudgetOwner::Day,
        });
        let nobody = stand(&short, FailureKind::ServerError, false, &purse);
        assert_eq!((nobody.target, nobody.skipped.len()), (None, 3));
    }

    #[test]
    fn refusals_and_invalid_requests_do_not_fail_over() {
        let asked = RequestFacts::default();
        assert_eq!(after(&asked, FailureKind::ContentFilter, false), None);
        assert!(after(&asked, FailureKind::ContentFilter, true).is_some());
        assert_eq!(after(&asked, FailureKind::InvalidRequest, false), None);
        assert_eq!(after(&asked, FailureKind::AuthRequired, false), None);
    }
}
