use super::*;

fn uses(text: &str) -> (Vec<&'static str>, Vec<String>) {
    let known = ToolFileKnowledge::built_in();
    let (mut tools, mut files) = (Vec::new(), Vec::new());
    for step in split_commands(text) {
        let found = step.usage(known);
        tools.extend(found.tools.iter().map(|tool| tool.names[0].as_str()));
        files.extend(found.executes);
    }
    (tools, files)
}

fn part(path: &str, text: &str) -> String {
    ToolFileKnowledge::built_in()
        .rule_for(path)
        .relevant_part(text.as_bytes())
}

#[test]
fn tools_are_found_in_any_call() {
    for (text, tool) in [
        ("npm install", "npm"),
        ("rm -rf node_modules && bun install", "bun"),
        ("CI=1 NODE_ENV=x /usr/bin/npm ci", "npm"),
        ("sudo -u x npm i", "npm"),
        ("timeout 60 npm i", "npm"),
        ("sh -c 'cd web && npm ci'", "npm"),
        ("bash -lc \"pnpm i\"", "pnpm"),
        ("echo $(make all)", "make"),
        ("if true; then cargo build; fi", "cargo"),
        ("python3 -m pip install -r requirements.txt", "pip"),
        ("python3.11 -m pip install x", "pip"),
        ("pip3 install x", "pip"),
        (".venv/bin/pip install -q -r requirements.txt", "pip"),
        ("./gradlew build", "gradle"),
        ("poetry run pytest", "pytest"),
        ("npx vite build", "vite"),
        ("xvfb-run npm test", "npm"),
        ("find . -name x -exec make {} \\;", "make"),
        ("env -S 'npm install'", "npm"),
        ("pm2 restart all", "overmind"),
        ("go generate ./...", "go"),
    ] {
        assert!(uses(text).0.contains(&tool), "{text}: {:?}", uses(text));
    }
}

#[test]
fn harmless_commands_use_nothing() {
    for text in [
        "mkdir -p out/reports",
        "cp .env.example .env",
        "sed -i 's/\\r$//' scripts/run-tests.sh",
        "rm -rf npm make",
        "kill -0 \"$(cat run/app.pid)\" 2>/dev/null || rm -f run/app.pid",
    ] {
        assert_eq!(uses(text), (vec![], vec![]), "{text}");
    }
}

#[test]
fn executed_files_are_found() {
    for (text, file) in [
        ("sh ./fix.sh", "./fix.sh"),
        ("./fix.sh", "./fix.sh"),
        ("bash -e tools/fix.sh all", "tools/fix.sh"),
        ("python3 migrate.py", "migrate.py"),
        ("python3 -m tools.migrate", "tools/migrate.py"),
        ("node scripts/gen", "scripts/gen.js"),
        ("node -r ./hook.js app.js", "./hook.js"),
        ("node -r ./hook.js app.js", "app.js"),
        ("node --import=./hook.mjs app.js", "./hook.mjs"),
        ("deno run -A gen.ts", "gen.ts"),
        ("uv run tool.py", "tool.py"),
        ("poetry run python tool.py", "tool.py"),
        (". ./env.sh && make", "./env.sh"),
        ("make -f build/x.mk", "build/x.mk"),
        ("docker compose --file=ci.yml up", "ci.yml"),
        ("sh -c 'cd a && ./b.sh'", "./b.sh"),
        ("npx tsx gen.ts", "gen.ts"),
    ] {
        let (_, files) = uses(text);
        assert!(files.iter().any(|one| one == file), "{text}: {files:?}");
    }
}

#[test]
fn data_of_inline_programs_is_not_executed() {
    let (_, files) = uses("perl -pi -e 's/a/b/' data.txt");
    assert_eq!(files, [""; 0]);
    let (_, files) = uses("python3 load.py data.csv");
    assert!(!files.iter().any(|file| file.starts_with("data")));
}

#[test]
fn dependency_versions_are_irrelevant_and_scripts_are_relevant() {
    let json = |scripts: &str, dependencies: &str| {
        let text = format!(
            "{{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{{{scripts}}},\"dependencies\":{{{dependencies}}}}}"
        );
        part("package.json", &text)
    };
    let before = json("\"a\":\"b\"", "\"x\":\"^1.0.0\"");
    for usual in [
        "\"x\":\"^2.0.0\"",
        "\"x\":\"1\",\"y\":\"latest\"",
        "\"x\":\"npm:@a/b@^1.2\"",
        "\"x\":\">=1 <2 || 3.x\"",
        "\"x\":\"workspace:*\"",
    ] {
        assert_eq!(json("\"a\":\"b\"", usual), before, "{usual}");
    }
    for unusual in [
        "\"x\":\"file:./evil\"",
        "\"x\":\"git+https://example.com/x.git\"",
        "\"x\":\"https://example.com/x.tgz\"",
        "\"x\":\"someone/else\"",
        "\"x\":\"exec:./gen.js\"",
        "\"x\":\"./evil\"",
    ] {
        assert_ne!(json("\"a\":\"b\"", unusual), before, "{unusual}");
    }
    assert_ne!(json("\"a\":\"c\"", ""), before);
    assert_eq!(part("package.json", "{\"version\":\"1\"}"), "");
}

#[test]
fn duplicate_key_makes_the_whole_file_relevant() {
    let text = r#"{"scripts": {"a": "b"}, "scripts": {}}"#;
    assert_eq!(part("package.json", text), text);
    assert_eq!(part("package.json", "{ broken"), "{ broken");
}

#[test]
fn only_executed_parts_of_cargo_files_are_relevant() {
    let base = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n[dependencies]\n";
    let read = |more: &str| part("Cargo.toml", &format!("{base}{more}"));
    assert_eq!(
        read("serde = \"1\"\nb = { version = \"2\", features = [\"x\"] }\n"),
        ""
    );
    for more in [
        "b = { path = \"b\" }",
        "b = { git = \"https://example.com/b\" }",
        "b = { version = \"1\", registry = \"other\" }",
        "[target.'cfg(unix)'.build-dependencies]\nb = { path = \"b\" }",
        "[patch.crates-io]\nserde = { path = \"s\" }",
        "[lib]\nproc-macro = true",
    ] {
        assert_ne!(read(more), "", "{more}");
    }
}

#[test]
fn only_executed_parts_of_python_files_are_relevant() {
    let requirements = "six==1.16\nrequests[socks]>=2,<3 ; python_version > '3'\n# a comment\n\
        a==1.0 \\\n    --hash=sha256:0123abcd \\\n    --hash=sha256:0123\n";
    assert_eq!(part("requirements-dev.txt", requirements), "");
    for line in [
        "--index-url https://example.com",
        "-e ./evil",
        "evil @ https://example.com/x.whl",
        "git+https://example.com/x",
        "./evil",
        "evil.whl",
    ] {
        let text = format!("{requirements}{line}\n");
        assert_eq!(part("requirements.txt", &text), format!("{line}\n"));
    }
    let project = "[project]\nname = \"a\"\nversion = \"1\"\ndependencies = [\"six>=1\", \"b[x]~=2 ; python_version < '3'\"]\n";
    assert_eq!(part("pyproject.toml", project), "");
    for more in [
        "[build-system]\nrequires = [\"evil\"]",
        "[tool.uv]\nindex-url = \"https://example.com\"",
        "[tool.poetry.dependencies]\nb = { path = \"b\" }",
        "[project.optional-dependencies]\nx = [\"b @ file:///tmp/b\"]",
    ] {
        assert_ne!(
            part("pyproject.toml", &format!("{project}{more}\n")),
            "",
            "{more}"
        );
    }
}

#[test]
fn plain_git_config_runs_nothing() {
    let plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
        [remote \"origin\"]\n\turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
        [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\temail = dev@example.com\n\tname = Dev\n\
        [pull]\n\trebase = true\n";
    assert_eq!(part(".git/config", plain), "");
    for url in [
        "https://github.com/a/b",
        "/srv/b.git",
        "ssh://git@host:22/a",
        "../b",
    ] {
        let text = format!("[remote \"o\"]\n\turl = {url}\n");
        assert_eq!(part(".git/config", &text), "", "{url}");
    }
    for line in [
        "[core]\n\tfsmonitor = ./x",
        "[core] sshCommand = x",
        "[core]\n\thooksPath = .hooks",
        "[core]\n\tbare = false\\\n\tfsmonitor = x",
        "[alias]\n\tst = !x",
        "[include]\n\tpath = ../evil",
        "[filter \"x\"]\n\tclean = x",
        "[remote \"o\"]\n\turl = ext::sh -c x",
        "[remote \"o\"]\n\tuploadpack = x",
        "[core]\n\tgitproxy = x",
        "[diff \"x\"]\n\ttextconv = x",
        "[submodule \"x\"]\n\tupdate = !x",
    ] {
        let text = format!("{plain}{line}\n");
        assert_ne!(part(".git/config", &text), "", "{line}");
    }
}

#[test]
fn harmless_changes_of_other_tools_are_ignored() {
    for (path, plain, other) in [
        (
            "go.mod",
            "module a\n\ngo 1.22\n\nrequire (\n\tb/c v1.2.3\n)\n",
            "replace b/c => ./evil\n",
        ),
        (
            "Gemfile",
            "gem 'rails', '~> 7.0'\ngem \"pg\"\ngroup :test do\n  gem 'x'\nend\n",
            "gem 'evil', path: 'evil'\n",
        ),
        (
            ".gitattributes",
            "*.png binary\n*.sh text eol=lf\n",
            "*.x filter=evil\n",
        ),
        (
            ".gitmodules",
            "[submodule \"a\"]\n\tpath = a\n",
            "\turl = ext::sh\n",
        ),
    ] {
        assert_eq!(part(path, plain), "", "{path}");
        assert_ne!(part(path, &format!("{plain}{other}")), "", "{path}");
    }
    let pom = |version: &str, plugin: &str| {
        part(
            "pom.xml",
            &format!(
                "<project><version>{version}</version><dependencies><dependency><version>{version}</version></dependency></dependencies><build><plugins><plugin>{plugin}</plugin></plugins></build></project>"
            ),
        )
    };
    assert_eq!(pom("1", "a"), pom("2", "a"));
    assert_ne!(pom("1", "a"), pom("1", "b"));
    assert_ne!(part(".npmrc", "script-shell=./x\n"), "");
    assert_eq!(part(".npmrc", "; nothing\n\n"), "");
}

#[test]
fn files_reference_others_of_their_kind() {
    let known = ToolFileKnowledge::built_in();
    for (path, text, named) in [
        (
            "requirements.txt",
            "six\n-r base/more.txt\n",
            "base/more.txt",
        ),
        ("Makefile", "-include config/settings\n", "config/settings"),
        ("justfile", "import 'more.just'\n", "more.just"),
        (
            "compose.yaml",
            "services:\n  a:\n    build:\n      dockerfile: ci/Dockerfile\n",
            "ci/Dockerfile",
        ),
        (
            "app/build.gradle",
            "apply from: '../x.gradle'\n",
            "../x.gradle",
        ),
    ] {
        assert_eq!(
            known.rule_for(path).referenced_files(text.as_bytes()),
            [named],
            "{path}"
        );
    }
}

#[test]
fn line_ends_are_ignored_and_invalid_utf8_is_relevant() {
    assert_eq!(
        part("Makefile", "a:\r\n\tb\r\n"),
        part("Makefile", "a:\n\tb\n")
    );
    let rule = ToolFileKnowledge::built_in().rule_for("x.jar");
    assert_ne!(
        rule.relevant_part(b"\xff\xfe"),
        rule.relevant_part(b"\xff\xfd")
    );
}

#[test]
fn scripts_are_read_by_name() {
    let known = ToolFileKnowledge::built_in();
    let text = br#"{"scripts": {"build": "node build.js", "x": 5}, "workspaces": ["a"]}"#;
    let rule = known.rule_for("package.json");
    assert_eq!(rule.scripts(text)["build"], "node build.js");
    assert_eq!(rule.members(text, "workspaces"), Some(vec!["a".to_owned()]));
    assert_eq!(rule.members(text, "pnpm"), None);
    assert_eq!(rule.members(b"{ broken", "workspaces"), Some(vec![]));
    let pnpm = known.rule_for("pnpm-workspace.yaml");
    let yaml = b"packages:\n  - 'packages/*'\n  - web # the shop\n";
    assert_eq!(
        pnpm.members(yaml, ""),
        Some(vec!["packages/*".to_owned(), "web".to_owned()])
    );
    let composer = known.rule_for("composer.json");
    let scripts = composer.scripts(br#"{"scripts": {"test": ["a", "b"]}}"#);
    assert_eq!(scripts["test"], "a\nb");
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    /// Generates paths similar to those of watched files.
    fn path() -> impl Strategy<Value = String> {
        let names = ToolFileKnowledge::built_in().file.iter();
        let names: Vec<_> = names
            .flat_map(|rule| &rule.names)
            .map(|name| name.replace('*', "x"))
            .collect();
        prop::sample::select(names)
    }

    /// Generates texts that mix the markers of all formats.
    fn text() -> impl Strategy<Value = String> {
        let pieces = [
            "{", "}", "[", "]", "\"", "'", "<", ">", "</", "/>", "<!--", "-->", "=", ":", ",",
            "\n", " ", "\\", "$(", ")", "`", "scripts", "é", "#", "!", "&&", "a", "1", "-m", "./",
        ];
        let pieces = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..60);
        pieces.prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// Reading any file or command terminates, and is deterministic.
        #[test]
        fn reading_any_input_terminates_and_is_deterministic(path in path(), text in text(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let known = ToolFileKnowledge::built_in();
            let rule = known.rule_for(&path);
            prop_assert_eq!(rule.relevant_part(text.as_bytes()), rule.relevant_part(text.as_bytes()));
            let _ = (rule.relevant_part(&bytes), rule.scripts(&bytes), rule.referenced_files(&bytes), rule.members(&bytes, "a"));
            for step in split_commands(&text) {
                let _ = step.usage(known);
            }
        }

        /// A file that cannot be parsed is relevant as a whole: no two such texts are equal.
        #[test]
        fn broken_file_is_relevant_as_a_whole(one in text(), other in text()) {
            let broken = |text: &str| format!("{{{text}");
            let rule = ToolFileKnowledge::built_in().rule_for("package.json");
            let (first, second) = (broken(&one), broken(&other));
            let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
            if first != second && !is_json(&first) && !is_json(&second) {
                prop_assert_ne!(rule.relevant_part(first.as_bytes()), rule.relevant_part(second.as_bytes()));
            }
        }
    }
}
