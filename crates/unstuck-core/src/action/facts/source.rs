//! Facts about the address that the failed call uses: tarballs of repositories, mirrors.

use serde_json::Value as Json;

use super::{Facts, Source};
use crate::action::call::SimpleCommand;
use crate::action::link::Link;

pub(super) fn gather(facts: &mut Facts, source: &Source<'_>) {
    let in_args = source.call.args.values().filter_map(Json::as_str);
    let in_command = source
        .call
        .commands
        .iter()
        .flat_map(|command| &command.arguments);
    let words = in_command
        .filter(|word| word.literal)
        .map(|word| word.value.as_str());
    let Some(link) = Link::first(in_args.chain(words)) else {
        return;
    };
    facts.set("url", link.text.as_str());
    facts.set("host", link.host.as_str());
    if !link.base().is_empty() && !facts.values.contains_key("base") {
        facts.set("base", link.base());
    }
    about_mirror(facts, source, &link);
    if let Some(git) = facts
        .failed
        .clone()
        .filter(|command| command.program == "git")
    {
        about_repository(facts, source, &link, &git);
    }
}

fn about_mirror(facts: &mut Facts, source: &Source<'_>, link: &Link) {
    let mirrors = link.mirrors(&source.request.playbook.hosts);
    let Some(mirror) = mirrors.first() else {
        return;
    };
    facts.set("mirror", mirror.as_str());
    facts.set_raw("mirror_command", source.with_word(&link.text, mirror));
    let key = crate::action::arguments::holding(&source.call.args, &link.text);
    let args = key.map(|key| {
        let mut args = source.call.args.clone();
        args.insert(key.to_owned(), mirror.as_str().into());
        args
    });
    facts.set_call("mirror_args", args);
}

fn about_repository(facts: &mut Facts, source: &Source<'_>, link: &Link, git: &SimpleCommand) {
    let hosts = &source.request.playbook.hosts;
    let repository = link.repository();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if repository.is_empty() || repository == ".." || !repository.chars().all(is_name) {
        return;
    }
    let with_value = source.request.playbook.options_with_value("git");
    let operands = git.operands(with_value);
    let target = operands.skip_while(|word| word.value != link.text).nth(1);
    // Where a variable says where to, only the shell knows.
    if target.is_some_and(|word| !word.literal) {
        return;
    }
    facts.set(
        "target",
        target.map_or(repository, |word| word.value.as_str()),
    );
    let asked = git.option_value(&["-b", "--branch"]);
    let archive = link.archive(hosts, asked.unwrap_or("main"));
    let plain = archive.as_deref().and_then(Link::read);
    let mirrors = plain.map(|link| link.mirrors(hosts)).unwrap_or_default();
    facts.set_some("archive_mirror", mirrors.first().map(String::as_str));
    facts.set_some("archive", archive);
    // Nobody said which branch is the default one, and these two are nearly all there are.
    let master = || link.archive(hosts, "master");
    facts.set_some("archive_master", asked.is_none().then(master).flatten());
    facts.set("repo", repository);
    facts.set("tarball", format!("{repository}.tar.gz"));
}
