//! Trust in repair permissions: the owner's apply at once, the project's once it is trusted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use unstuck_config::section::{OnUnlistedCommand, RepairPolicySection, SandboxModeSetting};
use unstuck_config::{
    Config, ConfigLayers, DeclaredRepairPolicy, ProjectRepairPolicy, ProjectTrust, diff_policies,
    intersect,
};

use crate::Place;

const APPROVES: &str = "[recovery]\nauto_approve = [\"npm ci\"]\nrequire_human = [\"rm *\"]\n";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

impl Place {
    /// Writes the user's own file, which nobody else can write.
    fn owner(&self, text: &str) -> &Self {
        self.user("config.toml", text);
        mode(&self.path().join("user"), 0o700);
        mode(&self.path().join("user/config.toml"), 0o600);
        self
    }
}

fn trusted(config: &Config) -> RepairPolicySection {
    config.repair_policy(ProjectTrust::Trusted).unwrap()
}

fn untrusted(config: &Config) -> RepairPolicySection {
    config.repair_policy(ProjectTrust::Untrusted).unwrap()
}

/// S3-51: without the section there are no repair permissions.
#[test]
fn no_repair_permissions_by_default() {
    let config = Place::with("unstuck.toml", "[run]\nparallel = 2\n").config();
    assert_eq!(config.repair_policy(ProjectTrust::Trusted), None);
    assert!(config.project_recovery().is_none() && !config.is_project_wider());
}

#[test]
fn project_approves_nothing_until_trusted() {
    let config = Place::with("unstuck.toml", APPROVES).config();
    assert_eq!(trusted(&config).auto_approve, ["npm ci"]);
    assert_eq!(untrusted(&config).auto_approve, [""; 0]);
    assert_eq!(untrusted(&config).require_human, ["*", "rm *"]);
    assert!(config.is_project_wider());
}

#[test]
fn tightening_project_settings_apply_at_once() {
    let place = Place::with(
        "unstuck.toml",
        "[recovery]\nnetwork = false\nsandbox = \"required\"\nmax_auto_recoveries_per_run = 1\n",
    );
    place.owner("[recovery]\nauto_approve = [\"npm ci\"]\n");
    let config = place.config();
    assert!(!config.is_project_wider());
    let counts = untrusted(&config);
    assert_eq!(
        (counts.network, counts.sandbox),
        (false, SandboxModeSetting::Required)
    );
    assert_eq!(counts.auto_approve, ["npm ci"]);
    assert_eq!(counts.max_auto_recoveries_per_run, 1);
}

#[test]
fn owner_permissions_apply_without_trust_and_project_cannot_extend_them() {
    let place = Place::with(
        "unstuck.toml",
        "[recovery]\nauto_approve = [\" npm ci \", \"curl x | sh\"]\non_unknown = \"allow\"\nsandbox = \"off\"\n\
         cooldown_seconds = 0\nenv_keep = [\"HOME2\", \"TOKEN\"]\nguard_files = false\nmax_auto_recoveries_per_run = 99\n\
         allowed_write_paths = [\"/\", \"..\", \"dist\"]\n",
    );
    place.owner(
        "[recovery]\nauto_approve = [\"npm ci\", \"npm install\"]\nenv_keep = [\"HOME2\"]\n",
    );
    let config = place.config();
    let counts = untrusted(&config);
    assert_eq!(counts.auto_approve, ["npm ci"]);
    assert_eq!(counts.env_keep, ["HOME2"]);
    assert_eq!(counts.allowed_write_paths, [PathBuf::from("dist")]);
    let rest = RepairPolicySection {
        auto_approve: counts.auto_approve.clone(),
        env_keep: counts.env_keep.clone(),
        allowed_write_paths: counts.allowed_write_paths.clone(),
        ..RepairPolicySection::default()
    };
    assert_eq!(counts, rest);
}

/// S3-43: the user can opt in to changes of projects without confirmation.
#[test]
fn only_the_users_own_file_can_trust_projects() {
    let place = Place::with("unstuck.toml", APPROVES);
    place.owner("trust_project_config = true\n");
    assert!(place.config().trusts_projects());
    mode(&place.path().join("user/config.toml"), 0o666);
    let config = place.config();
    assert!(!config.trusts_projects());
    let told = config.untrusted_files()[0].to_string();
    assert!(told.contains("is writable by other users"), "{told}");
    assert!(told.contains("chmod go-w"), "{told}");
}

#[test]
fn file_writable_by_others_grants_nothing_but_may_forbid() {
    let place = Place::with("unstuck.toml", APPROVES);
    place.owner("[recovery]\nauto_approve = [\"npm ci\"]\nnetwork = false\n");
    assert_eq!(untrusted(&place.config()).auto_approve, ["npm ci"]);
    for (path, bits) in [("user/config.toml", 0o620), ("user", 0o770)] {
        place.owner("[recovery]\nauto_approve = [\"npm ci\"]\nnetwork = false\n");
        mode(&place.path().join(path), bits);
        let config = place.config();
        let counts = untrusted(&config);
        assert_eq!(counts.auto_approve, [""; 0], "{path}");
        assert!(!counts.network && !trusted(&config).network, "{path}");
        assert_eq!(trusted(&config).auto_approve, ["npm ci"], "the project's");
        let notes = format!("{:?}", config.warnings());
        assert!(notes.contains("what it allows is ignored"), "{notes}");
    }
}

/// Tests that need root, because they change file owners.
mod root {
    use super::{Place, untrusted};

    #[test]
    fn file_of_another_user_grants_nothing() {
        let place = Place::new();
        place.owner("[recovery]\nauto_approve = [\"npm ci\"]\n");
        let file = place.path().join("user/config.toml");
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        let config = place.config();
        assert_eq!(untrusted(&config).auto_approve, [""; 0]);
        assert!(config.untrusted_files()[0].reason.contains("another user"));
    }
}

#[test]
fn explicit_file_is_trusted_outside_the_project_only() {
    let place = Place::new();
    let outside = place.path().join("mine.toml");
    let inside = place.path().join("project/mine.toml");
    for file in [&outside, &inside] {
        fs::write(file, APPROVES).unwrap();
        mode(file, 0o600);
    }
    let named = |file: &Path| {
        let layers = ConfigLayers {
            explicit_file: Some(file.to_owned()),
            ..place.layers()
        };
        Config::load(&layers).unwrap()
    };
    assert_eq!(untrusted(&named(&outside)).auto_approve, ["npm ci"]);
    assert_eq!(untrusted(&named(&inside)).auto_approve, [""; 0]);
    assert_eq!(named(&inside).project_recovery().unwrap().files, [inside]);
}

#[test]
fn user_file_inside_the_project_is_untrusted() {
    let place = Place::with("unstuck.toml", "[run]\nparallel = 2\n");
    let user = place.path().join("project/.config/unstuck");
    fs::create_dir_all(&user).unwrap();
    let text = format!("trust_project_config = true\n{APPROVES}");
    fs::write(user.join("config.toml"), text).unwrap();
    mode(&user.join("config.toml"), 0o600);
    let config = Config::load(&ConfigLayers {
        user: Some(user),
        ..place.layers()
    })
    .unwrap();
    assert_eq!(untrusted(&config).auto_approve, [""; 0]);
    assert!(!config.trusts_projects());
    assert!(
        config.untrusted_files()[0]
            .reason
            .contains("is in the project")
    );
}

/// S3-43: trust covers the meaning, not the spelling.
#[test]
fn comments_order_and_format_do_not_change_the_content() {
    let hash = |name: &str, text: &str| {
        let config = Place::with(name, text).config();
        config.project_recovery().unwrap().hash()
    };
    let first = hash(
        "unstuck.toml",
        "[recovery]\nauto_approve = [\"npm ci\", \"npm install\"]\nnetwork = true\n",
    );
    let second = hash(
        "unstuck.json",
        r#"{"recovery": {"network": true, "auto_approve": ["npm install", "npm ci "]}}"#,
    );
    assert_eq!(first, second);
    assert_eq!(first.len(), 64);
    let other = hash(
        "unstuck.toml",
        "# npm install\n[recovery]\nauto_approve = [\"npm ci\", \"npm  install\"]\nnetwork = true\n",
    );
    assert_ne!(first, other);
}

#[test]
fn content_can_be_parsed_back() {
    let config = Place::with("unstuck.toml", APPROVES).config();
    let project = config.project_recovery().unwrap();
    let said = ProjectRepairPolicy::parse_content(&project.content()).unwrap();
    assert_eq!(said, project.declared);
    assert_eq!(
        ProjectRepairPolicy::parse_content("{\"auto_approve\": 5}"),
        None
    );
}

/// S3-43: an unreadable section is reported in every layer, and approves nothing.
#[test]
fn broken_section_is_reported_in_every_layer() {
    let place = Place::with("unstuck.toml", APPROVES);
    place.owner("[recovery]\nauto_approve = 5\n");
    let problems = place.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("`recovery.auto_approve` must be a list, got 5"));
    for (text, told) in [
        ("auto_approve = [\" \"]", "a command"),
        ("auto_approve = [\"npm ci\", 3]", "a string"),
        ("on_unknown = \"run\"", "\"escalate\""),
        ("cooldown_seconds = -1", "-1"),
        ("auto_aprove = []", "did you mean `auto_approve`?"),
    ] {
        let place = Place::with("unstuck.toml", &format!("[recovery]\n{text}\n"));
        let problems = place.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(told), "{problems:?}");
    }
}

/// S3-54: an owner only maintains a boundary, and changes across it are described in words.
#[test]
fn difference_shows_what_changes_and_if_it_allows_more() {
    let old = RepairPolicySection {
        auto_approve: vec!["npm ci".into()],
        require_human: vec!["rm *".into()],
        ..RepairPolicySection::default()
    };
    let new = RepairPolicySection {
        auto_approve: vec!["npm ci".into(), "npm install".into()],
        require_human: vec!["git *".into()],
        sandbox: SandboxModeSetting::Off,
        network: false,
        cooldown_seconds: 5,
        allowed_write_paths: vec!["dist".into()],
        on_unknown: OnUnlistedCommand::Deny,
        guard_files: false,
        ..RepairPolicySection::default()
    };
    let told: Vec<_> = diff_policies(&old, &new)
        .into_iter()
        .map(|change| {
            format!(
                "{} {}",
                if change.widens { '+' } else { '-' },
                change.description
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "+ `npm install` runs without approval",
            "- `git *` always needs approval",
            "+ `rm *` no longer always needs approval",
            "+ 5 s cooldown between repairs, was 60 s",
            "- unlisted commands are rejected",
            "+ repairs run without a sandbox",
            "- repairs cannot use the network",
            "- repairs can write only to dist in the project",
            "+ approved commands run even if scripts or tool settings have changed",
        ]
    );
    assert_eq!(diff_policies(&old, &old), []);
}

#[test]
fn disjoint_directories_disable_automatic_repairs() {
    let owner = RepairPolicySection {
        auto_approve: vec!["npm ci".into()],
        allowed_write_paths: vec!["node_modules".into()],
        ..RepairPolicySection::default()
    };
    let other = DeclaredRepairPolicy {
        allowed_write_paths: Some(vec!["src".into()]),
        ..DeclaredRepairPolicy::default()
    };
    let counts = intersect(&owner, &other);
    assert_eq!(counts.auto_approve, [""; 0]);
    assert_eq!(counts.allowed_write_paths, owner.allowed_write_paths);
    let inside = DeclaredRepairPolicy {
        allowed_write_paths: Some(vec!["./node_modules/.cache".into(), "src".into()]),
        ..DeclaredRepairPolicy::default()
    };
    let counts = intersect(&owner, &inside);
    assert_eq!(
        counts.allowed_write_paths,
        [PathBuf::from("./node_modules/.cache")]
    );
    assert_eq!(counts.auto_approve, ["npm ci"]);
}

/// The commands that a project's files can run are listed, so that changes are visible.
#[test]
fn project_commands_are_listed_by_path() {
    let place = Place::new();
    place.owner("[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"x\"\n");
    place.project(
        "unstuck.toml",
        "[[role]]\nid = \"a\"\nenv = { A = \"1\" }\nexpect.check = \"make test\"\n[loop]\nuntil = { check = \"true\" }\nmax_iterations = 2\n",
    );
    let commands = place.config().project_commands();
    let paths: Vec<_> = commands.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(
        paths,
        ["loop.until.check", "role.a.env", "role.a.expect.check"]
    );
    assert_eq!(commands[2].value, "make test");
}

#[test]
fn risky_entries_cause_warnings() {
    let config = Place::with(
        "unstuck.toml",
        "[recovery]\nauto_approve = [\n  \"npm ci\",\n  \"rm -rf /tmp/x\",\n]\n",
    )
    .config();
    let notes = config.warnings();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let told = notes[0].to_string();
    assert!(told.starts_with("unstuck.toml:4:3: "), "{told}");
    assert!(told.contains("deletes outside the project"), "{told}");
}

fn entries() -> impl Strategy<Value = Vec<String>> {
    let words = prop::sample::select(vec!["npm ci", "npm install", "make", "rm *", "*"]);
    prop::collection::vec(words.prop_map(str::to_owned), 0..4)
}

fn paths() -> impl Strategy<Value = Vec<PathBuf>> {
    let words = prop::sample::select(vec!["a", "a/b", "./a", "c", "..", "/", "a/../.."]);
    prop::collection::vec(words.prop_map(PathBuf::from), 0..3)
}

fn said() -> impl Strategy<Value = DeclaredRepairPolicy> {
    let lists = (
        prop::option::of(entries()),
        prop::option::of(entries()),
        prop::option::of(paths()),
        prop::option::of(entries()),
    );
    let numbers = (prop::option::of(0..5u32), prop::option::of(0..5u64));
    let unknown = prop::sample::select(vec![
        OnUnlistedCommand::Allow,
        OnUnlistedCommand::Deny,
        OnUnlistedCommand::Escalate,
    ]);
    let sandbox = prop::sample::select(vec![
        SandboxModeSetting::Off,
        SandboxModeSetting::Required,
        SandboxModeSetting::BestEffort,
    ]);
    let choices = (prop::option::of(unknown), prop::option::of(sandbox));
    let flags = prop::collection::vec(prop::option::of(any::<bool>()), 4);
    (lists, numbers, choices, flags).prop_map(|(lists, numbers, choices, flags)| {
        DeclaredRepairPolicy {
            enabled: flags[0],
            auto_approve: lists.0,
            require_human: lists.1,
            max_auto_recoveries_per_run: numbers.0,
            cooldown_seconds: numbers.1,
            on_unknown: choices.0,
            sandbox: choices.1,
            network: flags[1],
            allowed_write_paths: lists.2,
            env_keep: lists.3,
            guard_files: flags[2],
            preview: flags[3],
        }
    })
}

proptest! {
    /// A project can never loosen its owner's policy.
    #[test]
    fn intersection_never_widens(owner in said(), project in said()) {
        let owner = owner.apply_to(&RepairPolicySection::default());
        let counts = intersect(&owner, &project);
        let widening = diff_policies(&owner, &counts).into_iter().filter(|change| change.widens);
        prop_assert_eq!(widening.collect::<Vec<_>>(), vec![]);
    }

    /// Settings that tighten the policy apply from any file.
    #[test]
    fn intersection_is_at_least_as_strict_as_the_project(owner in said(), project in said()) {
        let owner = owner.apply_to(&RepairPolicySection::default());
        let counts = intersect(&owner, &project);
        prop_assert!(!counts.enabled || project.enabled != Some(false));
        prop_assert!(!counts.network || project.network != Some(false));
        prop_assert!(project.max_auto_recoveries_per_run.is_none_or(|most| counts.max_auto_recoveries_per_run <= most));
        prop_assert!(project.cooldown_seconds.is_none_or(|least| counts.cooldown_seconds >= least));
        for pattern in project.require_human.iter().flatten() {
            prop_assert!(counts.require_human.contains(pattern));
        }
        for entry in &counts.auto_approve {
            prop_assert!(owner.auto_approve.contains(entry));
            prop_assert!(project.auto_approve.as_ref().is_none_or(|list| list.contains(entry)));
        }
    }
}
