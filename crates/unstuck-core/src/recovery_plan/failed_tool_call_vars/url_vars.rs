//! Template variables of the URL that the failed call uses: tarballs of repositories, mirrors.

use serde_json::Value as Json;

use super::{FailedToolCallVarSources, FailedToolCallVars};
use crate::recovery_plan::alternative_urls::RemoteUrl;
use crate::recovery_plan::failed_tool_call::SimpleCommand;

pub(super) fn gather(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let in_args = source.call.args.values().filter_map(Json::as_str);
    let in_command = source
        .call
        .commands
        .iter()
        .flat_map(|command| &command.arguments);
    let words = in_command
        .filter(|word| word.literal)
        .map(|word| word.value.as_str());
    let Some(link) = RemoteUrl::first_in(in_args.chain(words)) else {
        return;
    };
    facts.set("url", link.text.as_str());
    facts.set("host", link.host.as_str());
    if !link.last_segment().is_empty() && !facts.values.contains_key("base") {
        facts.set("base", link.last_segment());
    }
    add_mirrors(facts, source, &link);
    if let Some(git) = facts
        .failed_command
        .clone()
        .filter(|command| command.program == "git")
    {
        add_repository_archive(facts, source, &link, &git);
    }
}

fn add_mirrors(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    link: &RemoteUrl,
) {
    let mirrors = link.mirrors(&source.request.recovery_knowledge.hosts);
    let Some(mirror) = mirrors.first() else {
        return;
    };
    facts.set("mirror", mirror.as_str());
    facts.set_raw(
        "mirror_command",
        source.with_replacement(&link.text, mirror),
    );
    let key = crate::recovery_plan::tool_argument_fixes::argument_containing(
        &source.call.args,
        &link.text,
    );
    let args = key.map(|key| {
        let mut args = source.call.args.clone();
        args.insert(key.to_owned(), mirror.as_str().into());
        args
    });
    facts.set_call("mirror_args", args);
}

fn add_repository_archive(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    link: &RemoteUrl,
    git: &SimpleCommand,
) {
    let hosts = &source.request.recovery_knowledge.hosts;
    let repository = link.repository_name();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if repository.is_empty() || repository == ".." || !repository.chars().all(is_name) {
        return;
    }
    let with_value = source.request.recovery_knowledge.options_with_value("git");
    let operands = git.operands(with_value);
    let target = operands.skip_while(|word| word.value != link.text).nth(1);
    // If the URL contains a variable, only the shell knows the target.
    if target.is_some_and(|word| !word.literal) {
        return;
    }
    facts.set(
        "target",
        target.map_or(repository, |word| word.value.as_str()),
    );
    let asked = git.option_value(&["-b", "--branch"]);
    let archive = link.archive_url(hosts, asked.unwrap_or("main"));
    let plain = archive.as_deref().and_then(RemoteUrl::parse);
    let mirrors = plain.map(|link| link.mirrors(hosts)).unwrap_or_default();
    facts.set_some("archive_mirror", mirrors.first().map(String::as_str));
    facts.set_some("archive", archive);
    // The default branch is unknown, and these two are nearly always right.
    let master = || link.archive_url(hosts, "master");
    facts.set_some("archive_master", asked.is_none().then(master).flatten());
    facts.set("repo", repository);
    facts.set("tarball", format!("{repository}.tar.gz"));
}
