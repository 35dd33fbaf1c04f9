//! Who is asked, with which model: the first upstream that can serve a request, then those that stand in for it.

use unstuck_core::Kind;
use unstuck_core::decision::Catalog;

use crate::protocol::{Asked, Protocol};
use crate::settings::Upstream;

/// Who is asked, with which model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The place of the upstream among all.
    pub(crate) upstream: usize,
    /// What the model is called there.
    pub(crate) model: Option<String>,
}

/// All who can be asked.
pub(crate) struct Choice<'a> {
    pub(crate) upstreams: &'a [Upstream],
    pub(crate) catalog: &'a Catalog,
    pub(crate) route_around_refusals: bool,
}

/// What a request needs of whom it is sent to.
pub(crate) struct Needs<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) asked: &'a Asked,
    /// The model, by the name that the client or the session gives it.
    pub(crate) model: Option<&'a str>,
}

impl Choice<'_> {
    /// Whom to ask first: the first of the protocol, whatever it can do. Its own refusal says more than ours would.
    pub(crate) fn first(&self, needs: &Needs<'_>) -> Option<Target> {
        let at = self
            .upstreams
            .iter()
            .position(|one| one.protocol == needs.protocol)?;
        Some(self.target(at, needs))
    }

    /// Who stands in for an upstream after a failure of that kind: the next that can serve the request.
    pub(crate) fn after(&self, target: &Target, needs: &Needs<'_>, kind: Kind) -> Option<Target> {
        if !self.may_change(kind) {
            return None;
        }
        let failed = &self.upstreams[target.upstream];
        let mut others = self.upstreams.iter().enumerate().skip(target.upstream + 1);
        let (at, _) = others.find(|(_, one)| {
            one.protocol == needs.protocol
                && self.serves(one, needs)
                && (kind != Kind::ContextLimit || self.room(one, needs) > self.room(failed, needs))
        })?;
        Some(self.target(at, needs))
    }

    fn target(&self, at: usize, needs: &Needs<'_>) -> Target {
        Target {
            upstream: at,
            model: needs
                .model
                .map(|model| self.upstreams[at].model(model).to_owned()),
        }
    }

    /// Whether another upstream could do better after a failure of that kind.
    fn may_change(&self, kind: Kind) -> bool {
        match kind {
            // Going round a refusal is a person's to decide.
            Kind::ContentFilter => self.route_around_refusals,
            // The request itself or the client's own key is wrong, everywhere.
            Kind::InvalidRequest | Kind::AuthRequired | Kind::AuthExpired => false,
            _ => true,
        }
    }

    /// Whether an upstream can serve a request, as far as is known.
    fn serves(&self, upstream: &Upstream, needs: &Needs<'_>) -> bool {
        let asked = needs.asked;
        let lacks = upstream.lacks;
        let fits = self
            .room(upstream, needs)
            .is_none_or(|room| asked.prompt_tokens < room);
        fits && !(lacks.tools && asked.tools)
            && !(lacks.vision && asked.images)
            && !(lacks.prefill && asked.prefill)
    }

    /// How many tokens fit into the context there, where that is known.
    fn room(&self, upstream: &Upstream, needs: &Needs<'_>) -> Option<u64> {
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
    use super::*;
    use crate::settings::Lacks;

    fn upstreams() -> Vec<Upstream> {
        let one = |name| Upstream::new(name, Protocol::Anthropic, "http://127.0.0.1:1").unwrap();
        let mut small = one("small");
        small.context = Some(1000);
        let mut plain = one("plain");
        plain.lacks = Lacks {
            prefill: true,
            ..Lacks::default()
        };
        let mut renamed = one("renamed");
        renamed.models.insert("a".into(), "b".into());
        renamed.context = Some(500_000);
        vec![one("first"), small, plain, renamed]
    }

    fn after(asked: &Asked, kind: Kind, around: bool) -> Option<(usize, Option<String>)> {
        let upstreams = upstreams();
        let catalog = Catalog::default();
        let choice = Choice {
            upstreams: &upstreams,
            catalog: &catalog,
            route_around_refusals: around,
        };
        let needs = Needs {
            protocol: Protocol::Anthropic,
            asked,
            model: Some("a"),
        };
        let first = choice.first(&needs).unwrap();
        assert_eq!(first.upstream, 0);
        choice
            .after(&first, &needs, kind)
            .map(|target| (target.upstream, target.model))
    }

    /// S4-35: a fallback is checked before it is used.
    #[test]
    fn who_cannot_serve_a_request_does_not_stand_in() {
        let short = Asked::default();
        let long = Asked {
            prompt_tokens: 5000,
            ..Asked::default()
        };
        let begun = Asked {
            prompt_tokens: 5000,
            prefill: true,
            ..Asked::default()
        };
        assert_eq!(
            after(&short, Kind::ServerError, false),
            Some((1, Some("a".into())))
        );
        assert_eq!(
            after(&long, Kind::ServerError, false),
            Some((2, Some("a".into())))
        );
        assert_eq!(
            after(&begun, Kind::ServerError, false),
            Some((3, Some("b".into())))
        );
    }

    #[test]
    fn a_refusal_is_not_gone_round_and_a_wrong_request_not_sent_again() {
        let asked = Asked::default();
        assert_eq!(after(&asked, Kind::ContentFilter, false), None);
        assert!(after(&asked, Kind::ContentFilter, true).is_some());
        assert_eq!(after(&asked, Kind::InvalidRequest, false), None);
        assert_eq!(after(&asked, Kind::AuthRequired, false), None);
    }
}
