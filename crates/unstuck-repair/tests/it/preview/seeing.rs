//! The report of a preview.

use super::*;

/// Returns a project with some files that were not written just now.
fn shop() -> Place {
    Place::new(
        "mkdir -p src node_modules/a/lib node_modules/b; \
         printf 'one\\ntwo\\nthree\\n' > src/main.js; echo '{}' > package.json; \
         for n in 1 2 3 4 5; do echo a$n > node_modules/a/lib/$n.js; echo b$n > node_modules/b/$n.js; done; \
         ln -s a node_modules/link; head -c 3000 /dev/zero > data.bin",
    )
}

#[test]
fn a_reinstall_without_changes_shows_no_changes() {
    let place = shop();
    let preview = place.preview("cp -a node_modules x; rm -rf node_modules; mkdir node_modules; cp -r x/. node_modules; rm -rf x");
    assert_eq!(rows(&preview), [""; 0]);
    assert!(preview.report().is_empty());
    assert_eq!(preview.report().rewritten_unchanged, 10);
    // Rewritten in place, with another time.
    let preview = place.preview("cp src/main.js x; cat x > src/main.js; rm x; touch package.json");
    assert_eq!(
        (rows(&preview).len(), preview.report().rewritten_unchanged),
        (0, 2)
    );
}

#[test]
fn added_changed_and_deleted_files_are_reported_by_content() {
    let place = shop();
    let preview = place.preview(
        "sed -i s/two/TWO/ src/main.js; echo new > src/new.js; rm package.json; \
         rm -rf node_modules/b; mkdir -p node_modules/c/lib; echo c > node_modules/c/lib/c.js; \
         ln -sfn c node_modules/link; chmod 755 data.bin; mkdir empty",
    );
    assert_eq!(
        rows(&preview),
        [
            "change data.bin (mode 644 → 755)",
            "add empty/ (empty directory)",
            "delete node_modules/b/ (5 files)",
            "add node_modules/c/ (1 file, 2 B)",
            "change node_modules/link (link to c, was a)",
            "delete package.json (3 B)",
            "change src/main.js (+1 -1)",
            "add src/new.js (4 B)",
        ]
    );
    let report = preview.report();
    let counts = (
        report.counts.added,
        report.counts.changed,
        report.counts.deleted,
    );
    assert_eq!(counts, (2, 3, 6));
    let texts: Vec<_> = report
        .texts
        .iter()
        .map(|text| text.lines.join("|"))
        .collect();
    assert_eq!(
        texts,
        [
            "@@ -1,3 +1,3 @@| one|-two|+TWO| three",
            "@@ -1,0 +1,1 @@|+new"
        ]
    );
}

#[test]
fn binary_files_are_reported_by_size() {
    let place = shop();
    let preview = place.preview("head -c 5000 /dev/zero > data.bin");
    assert_eq!(rows(&preview), ["change data.bin (3 KB → 5 KB)"]);
    assert!(preview.report().texts.is_empty());
}

#[test]
fn type_changes_are_reported() {
    let place = shop();
    let preview = place.preview(
        "rm package.json; mkdir package.json; echo x > package.json/inner; \
         rm -rf src; ln -s /etc src; rm data.bin; mkfifo data.bin",
    );
    assert_eq!(
        rows(&preview),
        [
            "change data.bin (a file becomes a named pipe)",
            "change package.json/ (a file becomes a directory)",
            "change src (a directory becomes a link to /etc)",
        ]
    );
}

#[test]
fn many_changes_are_folded_by_directory() {
    let place = shop();
    let preview = place.preview(
        "for n in $(seq 60); do mkdir -p node_modules/p$n; echo $n > node_modules/p$n/index.js; done; \
         echo x >> node_modules/a/lib/1.js; rm node_modules/b/2.js; echo y > src/y; echo z > src/z",
    );
    assert_eq!(
        rows(&preview),
        [
            "mixed node_modules/ (60 added, 1 changed, 1 deleted)",
            "add src/y (2 B)",
            "add src/z (2 B)",
        ]
    );
    // The root of a project cannot be folded any further.
    let preview = place.preview("for n in $(seq 10 60); do echo $n > file$n; done");
    assert_eq!((rows(&preview).len(), preview.report().more_rows), (40, 11));
}

#[test]
fn report_texts_contain_no_terminal_controls() {
    let place = shop();
    let preview = place.preview(
        "printf 'x\\033[2Jy\\n' > \"$(printf 'a\\nb\\033]0;t\\007')\"; echo > \"$(printf 'g\\377')\"; \
         ln -s \"$(printf '\\342\\200\\256x')\" link",
    );
    assert_eq!(
        rows(&preview),
        [
            r"add a\nb\u{1b}]0;t\u{7} (7 B)",
            r"add g\xff (1 B)",
            r"add link (link to \u{202e}x)",
        ]
    );
    assert_eq!(preview.report().texts[0].lines[1], r"+x\u{1b}[2Jy");
    let json = serde_json::to_string(preview.report()).unwrap();
    assert!(
        !json.contains(['\u{1b}', '\u{202e}']) && !json.contains("\\u001b"),
        "{json}"
    );
}

#[test]
fn secrets_in_diffs_are_redacted() {
    let place = shop();
    let preview = place
        .preview("echo 'key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ' > .env");
    let line = &preview.report().texts[0].lines[1];
    assert!(!line.contains("abcdefghijklmnop"), "{line}");
}

#[test]
fn a_preview_is_found_by_an_id_prefix_and_can_be_discarded() {
    let place = shop();
    let id = {
        let preview = place.preview("echo x > x; exit 7");
        preview.report().id.clone()
    };
    let previews = place.previews();
    let kept = previews.find(&id[..6]).unwrap();
    assert_eq!(kept.report().execution.exit_code, 7);
    assert!(matches!(previews.find(&id), Err(PreviewError::Busy { .. })));
    drop(kept);
    assert!(matches!(
        previews.find("zz"),
        Err(PreviewError::NotFound { .. })
    ));
    assert!(matches!(
        previews.find(""),
        Err(PreviewError::NotFound { .. })
    ));
    previews.find(&id).unwrap().discard().unwrap();
    assert!(previews.list().is_empty());
    assert!(!place.project().join("x").exists());
}

#[test]
fn only_expired_and_abandoned_previews_are_removed() {
    let place = shop();
    let ids: Vec<_> = (0..10)
        .map(|n| place.preview(&format!("echo {n} > x")).report().id.clone())
        .collect();
    assert_eq!(place.previews().list().len(), 8);
    assert!(place.previews().find(&ids[9]).is_ok());
    // A pending preview of a killed process has left its directory, but not its lock.
    let abandoned = place.folder.path().join("state/previews/draft-77");
    fs::create_dir_all(abandoned.join("work/work")).unwrap();
    fs::set_permissions(
        abandoned.join("work/work"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    let held = place.draft();
    let later = Timestamp::from_seconds(1_794_777_000 + 25 * 3600);
    let other = place
        .previews()
        .prepare(&place.project(), PreviewLimits::default(), later);
    assert!(!abandoned.exists() && place.previews().list().is_empty());
    assert!(held.upper().exists() && other.unwrap().upper().exists());
}

#[test]
fn previews_are_accessible_by_their_owner_only() {
    let place = shop();
    let draft = place.draft();
    for folder in draft.upper().ancestors().skip(1).take(2) {
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
    let upper = draft.upper();
    drop(draft);
    assert!(!upper.exists());
}

#[test]
fn unsupported_previews_are_refused_with_a_reason() {
    let place = shop();
    let inside = PreviewStore::in_state_dir(&place.project().join(".state"));
    let refused = inside.prepare(&place.project(), PreviewLimits::default(), now());
    assert!(matches!(
        refused,
        Err(PreviewError::StateInsideProject { .. })
    ));
    let missing = place
        .previews()
        .prepare(Path::new("/nowhere"), PreviewLimits::default(), now());
    assert!(matches!(missing, Err(PreviewError::NoProject { .. })));
    let root = place
        .previews()
        .prepare(Path::new("/"), PreviewLimits::default(), now());
    assert!(root.is_err());
}

#[test]
fn too_large_or_deep_previews_are_refused_and_removed() {
    let place = shop();
    let bounds = PreviewLimits {
        bytes: 100_000,
        entries: 50,
    };
    for script in [
        "head -c 200000 /dev/zero > large",
        "for n in $(seq 60); do echo > f$n; done",
        "for n in $(seq 200); do mkdir d && cd d; done",
    ] {
        let draft = place
            .previews()
            .prepare(&place.project(), bounds, now())
            .unwrap();
        assert!(!draft.is_full());
        place.overlaid(&draft, script, Marks::User);
        assert!(draft.is_full(), "{script}");
        let refused = draft.finish(ran(script, 0), &[], now());
        assert!(matches!(refused, Err(PreviewError::TooMuch(_))), "{script}");
    }
    let left = fs::read_dir(place.folder.path().join("state/previews")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn injected_configuration_is_reported_but_never_applied() {
    let place = Place::new("mkdir .git; echo x > x");
    let draft = place.draft();
    place.overlaid(
        &draft,
        "echo evil > unstuck.toml; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; echo y > x",
        Marks::User,
    );
    let kept = ["unstuck.toml", ".git/hooks"].map(PathBuf::from);
    let preview = draft.finish(ran("x", 0), &kept, now()).unwrap();
    assert_eq!(rows(&preview), ["change x (+1 -1)"]);
    assert_eq!(preview.report().protected, [".git/hooks", "unstuck.toml"]);
    preview.apply().unwrap();
    let names: Vec<_> = tree(&place.project()).into_keys().collect();
    assert_eq!(names, [b".".to_vec(), b".git".to_vec(), b"x".to_vec()]);
}
