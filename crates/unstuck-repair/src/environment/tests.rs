#![expect(clippy::disallowed_methods, reason = "a test makes files")]

use super::*;
use proptest::prelude::*;

const ROOT: &str = "/home/me/project";

fn rebuilt(owner: &[(&str, &str)], keep: &[&str]) -> RepairEnvironmentVariables {
    let owner = owner
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let keep: Vec<_> = keep.iter().map(|name| (*name).to_owned()).collect();
    RepairEnvironmentVariables::from_owner(owner, Path::new(ROOT), &keep)
}

/// S3-50: variables that could name a program, code to load or a secret do not reach a repair.
#[test]
fn variables_that_name_programs_code_or_secrets_are_removed() {
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "PS4",
        "IFS",
        "CDPATH",
        "BASH_FUNC_npm%%",
        "SHELL",
        "EDITOR",
        "PAGER",
        "NODE_OPTIONS",
        "NODE_PATH",
        "npm_config_script_shell",
        "npm_config_git",
        "NPM_CONFIG_USERCONFIG",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "MAVEN_OPTS",
        "GRADLE_OPTS",
        "CLASSPATH",
        "GOFLAGS",
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "CARGO_BUILD_RUSTC_WRAPPER",
        "CC",
        "MAKEFLAGS",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_COUNT",
        "GIT_DIR",
        "GIT_ASKPASS",
        "SSH_AUTH_SOCK",
        "SSH_ASKPASS",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DOCKER_HOST",
        "KUBECONFIG",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "NPM_TOKEN",
        "ANTHROPIC_API_KEY",
        "CARGO_REGISTRY_TOKEN",
        "UNSTUCK_STORE",
        "UNSTUCK_CONFIG",
    ] {
        let environment = rebuilt(&[(name, "/opt/x"), ("PATH", "/usr/bin")], &[]);
        assert_eq!(environment.get(name), None, "{name}");
    }
}

#[test]
fn variables_that_a_repair_needs_are_kept() {
    let owner = [
        ("HOME", "/home/me"),
        ("LANG", "de_DE.UTF-8"),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("https_proxy", "http://proxy:3128"),
        ("SSL_CERT_FILE", "/etc/ssl/ca.pem"),
        ("NODE_EXTRA_CA_CERTS", "/etc/ssl/ca.pem"),
        ("PYENV_ROOT", "/home/me/.pyenv"),
        ("CARGO_HOME", "/srv/cargo"),
        ("PIP_INDEX_URL", "https://pypi.example/simple"),
    ];
    let environment = rebuilt(&owner, &[]);
    for (name, value) in owner {
        assert_eq!(environment.get(name), Some(OsStr::new(value)), "{name}");
    }
    assert_eq!(environment.get("CI"), Some(OsStr::new("1")));
    assert_eq!(environment.get("TERM"), Some(OsStr::new("dumb")));
    assert_eq!(
        environment.get("PATH"),
        Some(OsStr::new(DEFAULT_SEARCH_PATH))
    );
}

#[test]
fn paths_inside_the_project_are_removed() {
    for value in [
        "ca.pem",
        "./ca.pem",
        "/home/me/project/ca.pem",
        "/srv/../home/me/project/ca.pem",
        "",
    ] {
        let environment = rebuilt(&[("SSL_CERT_FILE", value), ("CARGO_HOME", value)], &[]);
        assert_eq!(environment.get("SSL_CERT_FILE"), None, "{value}");
        assert_eq!(environment.get("CARGO_HOME"), None, "{value}");
    }
}

#[test]
fn search_path_keeps_its_order_and_drops_project_directories() {
    let search = ":.:bin:/usr/local/bin:/home/me/project/node_modules/.bin:/usr/bin:/home/me/project-tools:/usr/bin:\
                  /opt/../home/me/project/bin:";
    let environment = rebuilt(&[("PATH", search)], &[]);
    let expected = "/usr/local/bin:/usr/bin:/home/me/project-tools";
    assert_eq!(environment.get("PATH"), Some(OsStr::new(expected)));
}

#[test]
fn variables_listed_by_the_owner_are_kept_except_our_own_and_path() {
    let owner = [
        ("NPM_TOKEN", "t"),
        ("UNSTUCK_STORE", "s"),
        ("PATH", ".:/usr/bin"),
        ("TERM", "xterm"),
    ];
    let environment = rebuilt(
        &owner,
        &["NPM_TOKEN", "UNSTUCK_STORE", "PATH", "TERM", "ABSENT"],
    );
    assert_eq!(environment.get("NPM_TOKEN"), Some(OsStr::new("t")));
    assert_eq!(environment.get("UNSTUCK_STORE"), None);
    assert_eq!(environment.get("PATH"), Some(OsStr::new("/usr/bin")));
    assert_eq!(environment.get("TERM"), Some(OsStr::new("dumb")));
    assert_eq!(environment.get("ABSENT"), None);
}

#[test]
fn search_path_symlinks_into_the_project_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let [project, tools, link] = ["project", "tools", "link"].map(|name| path.join(name));
    std::fs::create_dir_all(project.join("bin")).unwrap();
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(project.join("bin"), &link).unwrap();
    let search = std::env::join_paths([&link, &tools]).unwrap();
    let environment =
        RepairEnvironmentVariables::from_owner([("PATH".into(), search)], &project, &[]);
    let environment = environment.without_links_into(&project);
    assert_eq!(environment.get("PATH"), Some(tools.as_os_str()));
}

proptest! {
    #[test]
    fn no_search_path_leads_into_the_project(parts in prop::collection::vec("[./a-z]{0,12}|/home/me/project[/a-z.]{0,8}", 0..8)) {
        let search = parts.join(":");
        let environment = rebuilt(&[("PATH", &search)], &[]);
        for folder in std::env::split_paths(environment.get("PATH").unwrap()) {
            prop_assert!(is_outside(&folder, Path::new(ROOT)), "{}", folder.display());
        }
    }
}
