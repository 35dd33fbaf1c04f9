use proptest::prelude::*;

use super::ToolFileKnowledge;

/// Lockfiles of every format, each with the package `d` of the default registry.
const LOCKFILES: [(&str, &str); 12] = [
    (
        "package-lock.json",
        "{\"name\": \"x\", \"version\": \"1.0.0\", \"lockfileVersion\": 3, \"packages\": {\n\"\": {\"name\": \"x\", \"version\": \"1.0.0\"},\n\"node_modules/d\": {\"version\": \"1.0.0\", \"resolved\": \"https://registry.npmjs.org/d/-/d-1.0.0.tgz\", \"integrity\": \"sha512-AA==\", \"license\": \"SEE LICENSE IN x/y\", \"funding\": {\"url\": \"http://example.com\"}}}}",
    ),
    (
        "yarn.lock",
        "# yarn lockfile v1\n\n\nd@1.0.0, d@^1.0.0:\n  version \"1.0.0\"\n  resolved \"https://registry.yarnpkg.com/d/-/d-1.0.0.tgz#aa\"\n  integrity sha512-AA==\n  dependencies:\n    e \"^1\"\n",
    ),
    (
        "berry/yarn.lock",
        "__metadata:\n  version: 8\n  cacheKey: 10c0\n\n\"d@npm:^1.0.0\":\n  version: 1.0.0\n  resolution: \"d@npm:1.0.0\"\n  checksum: 10c0/AA\n  languageName: node\n  linkType: hard\n",
    ),
    (
        "pnpm-lock.yaml",
        "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      d:\n        specifier: ^1\n        version: 1.0.0\npackages:\n  d@1.0.0:\n    resolution: {integrity: sha512-AA==}\n    engines: {node: '>=6'}\nsnapshots:\n  d@1.0.0: {}\n",
    ),
    (
        "bun.lock",
        "{\n  \"lockfileVersion\": 1, // bun\n  \"workspaces\": {\"\": {\"name\": \"x\"},},\n  \"packages\": {\n    \"d\": [\"d@1.0.0\", \"\", {\"dependencies\": {\"e\": \"^1\"},}, \"sha512-AA==\"],\n  },\n}\n",
    ),
    (
        "Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"d\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"AA\"\ndependencies = [\n \"e\",\n]\n",
    ),
    (
        "poetry.lock",
        "[[package]]\nname = \"d\"\nversion = \"1.0.0\"\ndescription = \"see http://example.com\"\nfiles = [\n    {file = \"d-1.0.0.whl\", hash = \"sha256:AA\"},\n]\n\n[metadata]\nlock-version = \"2.0\"\ncontent-hash = \"0\"\n",
    ),
    (
        "uv.lock",
        "version = 1\n\n[[package]]\nname = \"d\"\nversion = \"1.0.0\"\nsource = { registry = \"https://pypi.org/simple\" }\nsdist = { url = \"https://files.pythonhosted.org/packages/d.tar.gz\", hash = \"sha256:AA\", size = 1 }\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\nsource = { virtual = \".\" }\n",
    ),
    (
        "pdm.lock",
        "[[package]]\nname = \"d\"\nversion = \"1.0.0\"\nfiles = [{file = \"d.whl\", hash = \"sha256:AA\"}]\n",
    ),
    (
        "Pipfile.lock",
        "{\"_meta\": {\"hash\": {\"sha256\": \"0\"}, \"sources\": [{\"name\": \"pypi\", \"url\": \"https://pypi.org/simple\", \"verify_ssl\": true}]}, \"default\": {\"d\": {\"hashes\": [\"sha256:AA\"], \"index\": \"pypi\", \"version\": \"==1.0.0\"}}}",
    ),
    (
        "Gemfile.lock",
        "GEM\n  remote: https://rubygems.org/\n  specs:\n    d (1.0.0)\n      e (>= 1)\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  d\n\nCHECKSUMS\n  d (1.0.0) sha256=AA\n\nBUNDLED WITH\n   2.5.0\n",
    ),
    ("go.sum", "d/d v1.0.0 h1:AA=\nd/d v1.0.0/go.mod h1:AA=\n"),
];

fn part(path: &str, text: &str) -> String {
    let known = ToolFileKnowledge::built_in();
    known.rule_for(path).relevant_part(text.as_bytes())
}

/// Returns true if a change of a lockfile needs no approval.
fn is_allowed(path: &str, before: &str, after: &str) -> bool {
    let rule = ToolFileKnowledge::built_in().rule_for(path);
    rule.allows_change(&part(path, before), &part(path, after))
}

fn lockfile(path: &str) -> &'static str {
    let mut all = LOCKFILES.iter();
    all.find(|(known, _)| *known == path).unwrap().1
}

#[test]
fn new_lockfiles_and_new_registry_packages_need_no_approval() {
    for (path, text) in LOCKFILES {
        assert!(is_allowed(path, "", text), "{path}: {}", part(path, text));
        let updated = text.replace("1.0.0", "1.0.1").replace("AA", "BB");
        assert!(
            is_allowed(path, text, &updated),
            "{path}: {}",
            part(path, &updated)
        );
        assert!(is_allowed(path, text, text), "{path}");
    }
}

#[test]
fn changed_hash_of_a_package_needs_approval() {
    for (path, text) in LOCKFILES {
        let other = text.replace("AA", "BB");
        assert!(
            !is_allowed(path, text, &other),
            "{path}: {}",
            part(path, &other)
        );
    }
    let composer = |reference: &str, shasum: &str| {
        format!(
            "{{\"packages\": [{{\"name\": \"a/d\", \"version\": \"1.0.0\", \"dist\": {{\"type\": \"zip\", \"url\": \"https://repo.example/d.zip\", \"reference\": \"{reference}\", \"shasum\": \"{shasum}\"}}}}]}}"
        )
    };
    assert!(is_allowed(
        "composer.lock",
        &composer("1", "2"),
        &composer("1", "2")
    ));
    assert!(!is_allowed(
        "composer.lock",
        &composer("1", "2"),
        &composer("2", "2")
    ));
    assert!(!is_allowed(
        "composer.lock",
        &composer("1", "2"),
        &composer("1", "3")
    ));
}

#[test]
fn removed_hash_of_a_package_needs_approval() {
    for (path, gone) in [
        ("package-lock.json", ", \"integrity\": \"sha512-AA==\""),
        ("yarn.lock", "  integrity sha512-AA==\n"),
        ("berry/yarn.lock", "  checksum: 10c0/AA\n"),
        ("pnpm-lock.yaml", "integrity: sha512-AA=="),
        ("bun.lock", ", \"sha512-AA==\""),
        ("Cargo.lock", "checksum = \"AA\"\n"),
        ("poetry.lock", ", hash = \"sha256:AA\""),
        ("uv.lock", ", hash = \"sha256:AA\""),
        ("Pipfile.lock", "\"sha256:AA\""),
    ] {
        let text = lockfile(path);
        let other = text.replace(gone, "");
        assert_ne!(text, other, "{path}");
        assert!(
            !is_allowed(path, text, &other),
            "{path}: {}",
            part(path, &other)
        );
    }
}

/// Sources of the package `d` in a lockfile, and others, by lockfile.
const OTHER_SOURCES: &[(&str, &str, &[&str])] = &[
    (
        "package-lock.json",
        "\"resolved\": \"https://registry.npmjs.org/d/-/d-1.0.0.tgz\"",
        &[
            "\"resolved\":\"file:vendor.tgz\"",
            "\"re\\u0073olved\": \"file:vendor.tgz\"",
            "\"resolved\":\n\"file:vendor.tgz\"",
            "\"resolved\": \"\\u0066ile:vendor.tgz\"",
            "\"resolved\": \"vendor\", \"link\": true",
            "\"resolved\": \"git+ssh://git@github.com/x/y.git#1\"",
            "\"resolved\": \"https://evil.example/d.tgz\"",
            "\"resolved\": \"https://evil.example/https://registry.npmjs.org/d.tgz\"",
            "\"resolved\": \"https://registry.npmjs.org.evil.example/d.tgz\"",
            "\"resolved\": \"https://registry.npmjs.org/evil/-/evil-1.0.0.tgz\"",
            "\"resolved\": \"http://registry.npmjs.org/d/-/d-1.0.0.tgz\"",
        ],
    ),
    (
        "Cargo.lock",
        "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
        &[
            "\"source\" = \"git+https://evil.example/x?rev=1#aa\"",
            "\"sou\\u0072ce\" = \"git+https://evil.example/x#aa\"",
            "source = 'git+https://evil.example/x#aa'",
            "source = \"registry+https://evil.example/index\"",
        ],
    ),
    (
        "uv.lock",
        "source = { registry = \"https://pypi.org/simple\" }",
        &[
            "\"source\" = { \"direct\\u006fry\" = \"evil\" }",
            "source = { directory = \"evil\" }",
            "source = { editable = \"evil\" }",
            "source.path = 'evil.whl'",
            "source = { git = \"https://evil.example/x#1\" }",
            "source = { registry = \"https://evil.example/simple\" }",
        ],
    ),
    (
        "pnpm-lock.yaml",
        "resolution: {integrity: sha512-AA==}",
        &[
            "resolution: {\"tarball\": \"file:evil.tgz\", integrity: sha512-AA==}",
            "resolution:\n      \"tarb\\u0061ll\":\n        \"file:evil.tgz\"",
            "resolution: {directory: evil, type: directory}",
            "resolution: {tarball: https://evil.example/d.tgz, integrity: sha512-AA==}",
            "resolution:\n      tarball: >-\n        file:evil.tgz",
        ],
    ),
    (
        "yarn.lock",
        "resolved \"https://registry.yarnpkg.com/d/-/d-1.0.0.tgz#aa\"",
        &[
            "\"resolved\" \"file:vendor.tgz\"",
            "\"re\\u0073olved\" \"\\u0066ile:vendor.tgz\"",
            "resolved vendor",
            "resolved \"https://codeload.github.com/evil/d/tar.gz/1\"",
            "resolved:\n    \"file:vendor.tgz\"",
        ],
    ),
    (
        "berry/yarn.lock",
        "resolution: \"d@npm:1.0.0\"",
        &[
            "resolution: \"d@file:evil\"",
            "resolution: \"d@workspace:evil\"",
            "resolution: \"\\u0064@https://evil.example/d.tgz\"",
        ],
    ),
    (
        "bun.lock",
        "\"d@1.0.0\"",
        &[
            "\"d@file:evil\"",
            "\"d@\\u0066ile:evil\"",
            "\"d@./evil.tgz\"",
            "\"d@workspace:evil\"",
        ],
    ),
    (
        "Gemfile.lock",
        "GEM\n  remote: https://rubygems.org/",
        &[
            "PATH\n  remote: evil",
            "PATH\n  remote: ./evil",
            "GIT\n  remote: https://evil.example/d.git",
            "GEM\n  remote: https://evil.example/",
            "GEM\n  remote: http://rubygems.org/",
        ],
    ),
    (
        "Pipfile.lock",
        "\"index\": \"pypi\"",
        &[
            "\"path\": \"evil\"",
            "\"git\": \"https://evil.example/d\"",
            "\"f\\u0069le\": \"evil.whl\"",
        ],
    ),
];

/// The spelling of a source does not matter: the tool reads the parsed value.
#[test]
fn other_sources_need_approval_however_they_are_written() {
    for (path, source, others) in OTHER_SOURCES.iter().copied() {
        let text = lockfile(path);
        assert!(text.contains(source), "{path}");
        for other in others {
            // The same version, and a new one.
            for (from, to) in [("1.0.0", "1.0.0"), ("d", "zz")] {
                let changed = text
                    .replace(source, "@@")
                    .replace(from, to)
                    .replace("@@", other);
                let is_new_package = from == "d";
                let is_registry = other.contains("//registry.npmjs.org/evil");
                if !(is_new_package && (is_registry || !changed.contains("zz"))) {
                    assert!(
                        !is_allowed(path, text, &changed),
                        "{path}: {other}: {}",
                        part(path, &changed)
                    );
                }
            }
        }
    }
    let (npm, cargo) = (lockfile("package-lock.json"), lockfile("Cargo.lock"));
    let inline = "version = 4\npackage = [{name = \"d\", version = \"1.0.0\", source = \"git+https://evil.example/x#aa\"}]\n";
    assert!(!is_allowed("Cargo.lock", cargo, inline));
    let minified: serde_json::Value = serde_json::from_str(npm).unwrap();
    let minified = minified.to_string();
    assert!(is_allowed("package-lock.json", npm, &minified));
    assert!(!is_allowed(
        "package-lock.json",
        npm,
        &minified.replace("AA", "BB")
    ));
}

/// The second line of a file that is not parsed could imitate any line.
#[test]
fn lockfile_that_cannot_be_parsed_needs_approval() {
    for (path, text) in LOCKFILES {
        for broken in [
            format!("{text}\u{0}"),
            format!("<<<<<<< HEAD\n{text}"),
            format!("{}\n{{", part(path, text)),
            "[[[[".to_owned(),
            "a: &a [*a]".to_owned(),
        ] {
            assert!(!is_allowed(path, text, &broken), "{path}: {broken}");
            assert!(!is_allowed(path, "", &broken), "{path}: {broken}");
            assert!(is_allowed(path, &broken, &broken), "{path}: {broken}");
        }
    }
    let twice = "{\"packages\": {}, \"packages\": {}}";
    assert!(!is_allowed("package-lock.json", "", twice));
}

#[test]
fn deeply_nested_lockfiles_are_not_parsed() {
    for (path, open, close) in [
        ("package-lock.json", "{\"a\":", "}"),
        ("bun.lock", "[", "]"),
        ("Cargo.lock", "[", "]"),
        ("pnpm-lock.yaml", "[", "]"),
        ("berry/yarn.lock", "{__metadata: ", "}"),
        ("Cargo.lock", "a.", ""),
        ("pnpm-lock.yaml", "- ", ""),
    ] {
        let text = format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
        let text = if open == "[" {
            format!("a = {text}")
        } else {
            text
        };
        let _ = part(path, &text);
    }
    let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n";
    let _ = part("pnpm-lock.yaml", laughs);
}

proptest! {
    /// No mutation of a lockfile panics; one that is allowed has only known sources.
    #[test]
    fn mutated_lockfiles_are_read_without_a_panic(
        (at, cut, more) in (any::<prop::sample::Index>(), 0_usize..40, "\\PC{0,12}|[\\[\\]{}\":,=#\n -]{0,8}|file:x|\"resolved\": \"x\",")
    ) {
        for (path, text) in LOCKFILES {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, more.bytes());
            let rule = ToolFileKnowledge::built_in().rule_for(path);
            let after = rule.relevant_part(&bytes);
            let before = part(path, text);
            if rule.allows_change(&before, &after) {
                let sources = after.lines().filter(|line| line.starts_with("source "));
                for source in sources {
                    prop_assert!(before.lines().any(|line| line == source), "{}", source);
                }
            }
        }
    }
}
