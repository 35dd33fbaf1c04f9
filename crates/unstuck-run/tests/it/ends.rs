//! Tests of the exit status of a child.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use unstuck_run::process::{
    CheckShellCommand, ChildExitStatus, EnvInheritance, ProcessSpec, Stdin, run_check,
};

use crate::support::{again, run, supervisor};

#[tokio::test]
async fn child_without_inherited_env_has_only_the_variables_set_for_it() {
    let spec = ProcessSpec {
        env_inheritance: EnvInheritance::Nothing,
        env: vec![("ONLY".into(), "this".into())],
        ..ProcessSpec::new("/usr/bin/env")
    };
    let text = run(&spec).await.stdout.text();
    let mut names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["ONLY", "UNSTUCK_REAPER"]);
}

#[tokio::test]
async fn exit_codes_and_signals_are_distinguished() {
    let mut supervisor = supervisor();
    for (line, expected) in [
        ("exit 0", ChildExitStatus::Exited(0)),
        ("exit 137", ChildExitStatus::Exited(137)),
        ("kill -9 $$", ChildExitStatus::Signaled(9)),
        ("kill -TERM $$", ChildExitStatus::Signaled(15)),
    ] {
        let ended = again(
            &mut supervisor,
            &ProcessSpec::shell(line),
            &mut Stdin::null(),
        )
        .await
        .unwrap();
        assert_eq!(ended.status, expected, "{line}");
        assert!(!ended.was_stopped && ended.timed_out.is_none() && !ended.was_interrupted);
        assert_eq!(ended.leftover_count, 0);
    }
}

#[tokio::test]
async fn missing_program_is_not_found() {
    for program in ["no-such-program-here", "/no/such/program"] {
        let ended = run(&ProcessSpec::new(program)).await;
        assert!(
            matches!(ended.status, ChildExitStatus::NotFound(_)),
            "{:?}",
            ended.status
        );
    }
}

#[tokio::test]
async fn non_program_file_is_not_executable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain");
    std::fs::write(&file, "just text").unwrap();
    let ended = run(&ProcessSpec::new(&file)).await;
    assert!(
        matches!(ended.status, ChildExitStatus::NotExecutable(_)),
        "{:?}",
        ended.status
    );

    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = run(&ProcessSpec::new(&file)).await;
    let ChildExitStatus::CannotStart(why) = ended.status else {
        panic!("{:?}", ended.status)
    };
    assert!(why.contains("interpreter"), "{why}");
}

#[tokio::test]
async fn missing_directory_is_not_reported_as_a_missing_program() {
    let spec = ProcessSpec {
        folder: Some(PathBuf::from("/no/such/folder")),
        ..ProcessSpec::new("true")
    };
    let ChildExitStatus::CannotStart(why) = run(&spec).await.status else {
        panic!("it cannot have started")
    };
    assert!(why.contains("/no/such/folder"), "{why}");
}

#[tokio::test]
async fn variables_are_set_and_removed_and_the_directory_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let spec = ProcessSpec {
        folder: Some(folder.path().to_path_buf()),
        env: vec![("UNSTUCK_RUN".into(), "r1".into())],
        env_remove: vec!["HOME".into()],
        ..ProcessSpec::shell("echo \"$UNSTUCK_RUN ${HOME-none}\"; pwd -P")
    };
    let expected = folder.path().canonicalize().unwrap();
    assert_eq!(
        run(&spec).await.stdout.text(),
        format!("r1 none\n{}\n", expected.display())
    );
}

/// Returns the signals of a line in `/proc/…/status` as bits; without the real-time signals, which the C library uses.
fn signals(status: &str, line: &str) -> u64 {
    let found = status.lines().find_map(|one| one.strip_prefix(line));
    u64::from_str_radix(found.unwrap().trim(), 16).unwrap() & 0x7fff_ffff
}

#[tokio::test]
async fn child_starts_without_blocked_signals_and_with_default_handlers() {
    let status = run(&ProcessSpec::new("cat").with_args(["/proc/self/status"])).await;
    let status = status.stdout.text();
    assert_eq!(signals(&status, "SigBlk:"), 0);
    // SIGPIPE is ignored in this process, as in every Rust program; other ignored signals are inherited from outside.
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let sigpipe = 1 << 12;
    assert_eq!(signals(&own, "SigIgn:") & sigpipe, sigpipe);
    assert_eq!(
        signals(&status, "SigIgn:"),
        signals(&own, "SigIgn:") & !sigpipe
    );
}

#[tokio::test]
async fn exit_of_a_child_that_ended_by_itself_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("exit.json");
    let spec = ProcessSpec {
        exit_record: Some(record.clone()),
        ..ProcessSpec::shell("exit 7")
    };
    run(&spec).await;
    assert_eq!(
        ChildExitStatus::from_record(&record),
        Some(ChildExitStatus::Exited(7))
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn large_argument_and_large_environment_reach_the_child() {
    let large = "x".repeat(120_000);
    let spec = ProcessSpec {
        env: vec![("LARGE".into(), large.clone().into())],
        ..ProcessSpec::shell("echo ${#LARGE} ${#1}").with_args(["sh".to_owned(), large])
    };
    assert_eq!(run(&spec).await.stdout.text(), "120000 120000\n");
}

#[tokio::test]
async fn check_passes_or_fails_by_exit_code() {
    let mut supervisor = supervisor();
    let (_keep, stop) = tokio::sync::watch::channel(Default::default());
    let mut question = CheckShellCommand {
        line: "echo why >&2; test -d /proc".into(),
        folder: None,
        env: Vec::new(),
        timeout: std::time::Duration::from_secs(30),
    };
    let result = run_check(&mut supervisor, &question, stop.clone())
        .await
        .unwrap();
    assert!(result.passed());
    assert_eq!(result.stderr.text(), "why\n");
    question.line = "exit 4".into();
    let result = run_check(&mut supervisor, &question, stop).await.unwrap();
    assert!(!result.passed());
    assert_eq!(result.status, ChildExitStatus::Exited(4));
}
