//! Effects of applying a preview, and the reasons to refuse it.

use std::os::unix::fs::symlink;

use unstuck_repair::preview::PreviewApplyError;

use super::*;

const PROJECT: &str = "mkdir -p d/inner e node_modules/a; echo a > a; echo x > d/x; echo i > d/inner/i; \
    echo y > e/y; ln -s d link; ln -s nowhere broken; echo k > node_modules/a/k; echo '#!/bin/sh' > run; chmod 755 run; \
    echo odd > \"$(printf 'new\\nline')\"; echo bytes > \"$(printf 'b\\377')\"; mkdir -m 700 secret; echo s > secret/s; \
    mkdir locked; echo l > locked/l; chmod 555 locked";

/// Lines whose applied preview must have the same result as the line itself.
const LINES: &[(&str, &str)] = &[
    (
        "whiteouts of files, links and folders",
        "rm a link broken; rm -rf d secret",
    ),
    (
        "a folder that is made anew is opaque",
        "rm -rf d; mkdir d; echo z > d/z",
    ),
    (
        "an opaque folder in an opaque folder",
        "rm -rf d; mkdir -p d/inner; echo z > d/inner/z",
    ),
    (
        "a reinstall with one difference",
        "cp -r node_modules n; rm -rf node_modules; cp -r n node_modules; rm -rf n; echo more >> node_modules/a/k",
    ),
    ("a file becomes a folder", "rm a; mkdir a; echo in > a/in"),
    ("a folder becomes a file", "rm -rf d; echo file > d"),
    ("a folder becomes a link", "rm -rf d; ln -s e d"),
    (
        "a link becomes a folder",
        "rm link; mkdir link; echo in > link/in",
    ),
    (
        "a link to somewhere else",
        "ln -sfn e link; ln -sf /etc/passwd broken",
    ),
    (
        "through a link",
        "echo through >> link/x; echo new > link/new",
    ),
    (
        "names with newlines and bytes that are no text",
        "n=$(printf 'new\\nline'); echo more >> \"$n\"; mv \"$(printf 'b\\377')\" \"$(printf 'c\\377\\n')\"; mkdir \"$(printf 'd\\ne')\"",
    ),
    ("a folder is moved", "mv d moved; echo more >> moved/x"),
    (
        "a folder is moved into another",
        "mv d e/; mv e/d/inner inner",
    ),
    ("a file is renamed over another", "mv a e/y"),
    (
        "permissions of files and folders",
        "chmod 600 run; chmod 750 d; chmod 711 d/inner; chmod 755 secret",
    ),
    (
        "permissions of a folder and what is in it",
        "chmod 755 secret; echo t > secret/t; rm secret/s",
    ),
    (
        "a folder that is opened and closed again",
        "chmod 755 locked; echo t > locked/t; rm locked/l; chmod 555 locked",
    ),
    ("permissions of the root", "chmod 750 ."),
    (
        "files that were linked together here",
        "echo t > t1; ln t1 t2; mkdir f; ln t1 f/t3",
    ),
    (
        "deep new folders",
        "mkdir -p n/e/w/d/e/e/p; echo deep > n/e/w/d/e/e/p/file; : > n/e/empty",
    ),
    ("a named pipe", "mkfifo pipe; chmod 622 pipe"),
    ("nothing", "cat a > /dev/null"),
    (
        "made and deleted again",
        "mkdir t; echo t > t/t; rm -rf t; echo b > a; echo a > a",
    ),
    ("everything is deleted", "chmod u+w locked; rm -rf ./*"),
    (
        "large and empty files",
        "head -c 300000 /dev/urandom > large; : > empty; : > a; rm large; seq 100000 > numbers",
    ),
    (
        "a closed folder",
        "mkdir closed; echo in > closed/in; chmod 500 closed",
    ),
];

#[test]
fn applied_is_what_the_command_itself_does() {
    for (what, line) in LINES {
        // The random file of the twin has another name, but it is removed.
        let place = Place::new(PROJECT);
        println!("{what}");
        place.applied_is_what_it_does(line, Marks::User);
    }
}

/// Tests that need root: they mount overlays or become another user, who must be able to run this program.
mod root {
    use super::*;

    /// Root may do everything, so the same test runs again as an ordinary user.
    #[test]
    fn applying_as_an_ordinary_user_has_the_same_result_as_the_command() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
        let output = command("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "preview::applying::applied_is_what_the_command_itself_does",
            ])
            .env("TMPDIR", folder.path())
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("1 passed"), "{output:?}");
    }

    #[test]
    fn overlay_marks_of_root_are_supported() {
        for (what, line) in LINES {
            println!("{what}");
            Place::new(PROJECT).applied_is_what_it_does(line, Marks::Root);
        }
    }

    #[test]
    fn a_metacopy_file_is_refused() {
        let place = Place::new(PROJECT);
        let refused = place.try_preview("chmod 600 run", Marks::Hollow);
        assert!(
            matches!(refused, Err(PreviewError::UnsupportedEntry { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn applying_keeps_the_timestamps_of_the_command() {
    let place = Place::new(PROJECT);
    let preview = place.preview(
        "rm -rf e; mkdir e; echo y2 > e/y; touch -d 2001-01-01 e/y e; echo a2 > a; touch -d 2002-02-02 a; \
         echo new > d/new; echo x2 > d/x; touch -d 2003-03-03 d",
    );
    preview.apply().unwrap();
    let seconds = |name: &str| place.project().join(name).metadata().unwrap().mtime();
    assert_eq!([seconds("e/y"), seconds("e")], [978_307_200; 2]);
    assert_eq!([seconds("a"), seconds("d")], [1_012_608_000, 1_046_649_600]);
}

#[test]
fn applying_is_refused_if_a_touched_path_changed() {
    let touched = [
        ("echo b > a", "echo mine > a", "a"),
        ("echo b > a", "rm a", "a"),
        ("echo b > a", "chmod 600 a", "a"),
        ("echo n > new", "echo mine > new", "new"),
        ("rm -rf d", "echo mine > d/inner/mine", "d/inner"),
        ("rm -rf d; mkdir d", "echo mine >> d/inner/i", "d/inner/i"),
        ("rm -rf d; mkdir d", "rm d/x", "d"),
        ("rm a", "touch a", "a"),
        ("echo n > d/new", "rm -rf d; ln -s /etc d", "d"),
        ("echo n > d/new", "mv d d2", "d"),
        ("chmod 700 d", "chmod 711 d", "d"),
    ];
    for (line, mine, path) in touched {
        let place = Place::new(PROJECT);
        let preview = place.preview(line);
        let id = preview.report().id.clone();
        place.sh(mine);
        let before = tree(&place.project());
        let refused = preview.apply();
        match refused {
            Err(PreviewApplyError::Changed { paths }) => {
                assert!(
                    paths.iter().any(|named| named.starts_with(path)),
                    "{line} / {mine}: {paths:?}"
                );
            }
            other => panic!("{line} / {mine}: {other:?}"),
        }
        assert_eq!(tree(&place.project()), before);
        assert!(
            place.previews().find(&id).is_ok(),
            "it is kept to be looked at"
        );
    }
}

#[test]
fn changes_elsewhere_do_not_prevent_applying() {
    let place = Place::new(PROJECT);
    let preview = place.preview("echo b > a; echo n > d/new");
    place.sh("echo mine > e/mine; echo mine >> d/x; rm -rf secret");
    preview.apply().unwrap();
    let read = |name: &str| fs::read_to_string(place.project().join(name)).unwrap();
    assert_eq!(
        [read("a"), read("d/new"), read("e/mine")],
        ["b\n", "n\n", "mine\n"]
    );
}

/// A reinstall recreates a directory; its unchanged files are not touched.
#[test]
fn only_differing_files_of_a_reinstall_are_replaced() {
    let place = Place::new(
        "mkdir -p n/a/lib n/b; for i in 1 2 3 4 5 6; do echo $i > n/a/lib/$i; echo $i > n/b/$i; done; chmod 700 n/b",
    );
    let number = |name: &str| place.project().join(name).metadata().unwrap().ino();
    let before = ["n", "n/a/lib/1", "n/b", "n/b/6"].map(number);
    let changed = number("n/b/1");
    let preview = place.preview(
        "cp -r n m; rm -rf n; cp -r m n; rm -rf m; echo other > n/b/1; rm n/b/2; mkdir n/c; echo c > n/c/c; chmod 755 n/b",
    );
    assert_eq!(
        rows(&preview),
        [
            "change n/b/ (mode 700 → 755)",
            "change n/b/1 (+1 -1)",
            "delete n/b/2 (2 B)",
            "add n/c/ (1 file, 2 B)",
        ]
    );
    preview.apply().unwrap();
    assert_eq!(["n", "n/a/lib/1", "n/b", "n/b/6"].map(number), before);
    assert_ne!(number("n/b/1"), changed);
    let read = |name: &str| fs::read_to_string(place.project().join(name)).unwrap_or_default();
    assert_eq!(
        [read("n/b/1"), read("n/b/2"), read("n/c/c")],
        ["other\n", "", "c\n"]
    );
    assert_eq!(tree(&place.project().join("n/b"))[b".".as_slice()], "40755");
}

#[test]
fn changes_during_the_run_prevent_applying() {
    let place = Place::new(PROJECT);
    let draft = place.draft();
    let changed = |path: &Path| {
        let data = path.metadata().unwrap();
        (data.ctime(), data.ctime_nsec())
    };
    let mine = place.project().join("e/y");
    // File system timestamps tick every few milliseconds.
    while changed(&mine) <= changed(&draft.upper()) {
        fs::write(&mine, "mine\n").unwrap();
    }
    place.overlaid(&draft, "echo mixed >> e/y", Marks::User);
    let preview = draft.finish(ran("x", 0), &[], now()).unwrap();
    assert_eq!(preview.report().changed_during_run, ["e/y"]);
    assert!(matches!(
        preview.apply(),
        Err(PreviewApplyError::ChangedDuringRun { .. })
    ));
}

#[test]
fn a_tampered_preview_is_not_applied() {
    let place = Place::new(PROJECT);
    let state = place.folder.path().join("state/previews");
    let id = place.preview("echo good > a").report().id.clone();
    fs::write(state.join(&id).join("upper/a"), "evil\n").unwrap();
    let refused = place.previews().find(&id).unwrap().apply();
    assert!(
        matches!(refused, Err(PreviewApplyError::Changed { .. })),
        "{refused:?}"
    );
    // Changing the record, too, makes it another preview.
    let touched = state.join(&id).join("touched.jsonl");
    let text = fs::read_to_string(&touched).unwrap();
    fs::write(&touched, text.replace("\"mode\":420", "\"mode\":511")).unwrap();
    assert!(matches!(
        place.previews().find(&id),
        Err(PreviewError::Damaged { .. })
    ));
    let id = place.preview("echo other > a").report().id.clone();
    let kept = state.join(&id).join("preview.json");
    let text = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, text.replace("echo other", "echo nicer")).unwrap();
    assert!(matches!(
        place.previews().find(&id),
        Err(PreviewError::Damaged { .. })
    ));
    assert_eq!(
        fs::read_to_string(place.project().join("a")).unwrap(),
        "a\n"
    );
}

#[test]
fn another_directory_at_the_same_path_is_not_touched() {
    let place = Place::new(PROJECT);
    let preview = place.preview("echo b > a");
    let elsewhere = place.folder.path().join("elsewhere");
    fs::rename(place.project(), &elsewhere).unwrap();
    fs::create_dir(place.project()).unwrap();
    let refused = preview.apply();
    assert!(matches!(
        refused,
        Err(PreviewApplyError::ProjectReplaced { .. })
    ));
    assert_eq!(tree(&place.project()).len(), 1);
}

#[test]
fn applying_never_writes_through_links_or_hard_links() {
    let place = Place::new(PROJECT);
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside\n").unwrap();
    fs::hard_link(outside.join("file"), place.project().join("second")).unwrap();
    symlink(&outside, place.project().join("out")).unwrap();
    symlink(outside.join("file"), place.project().join("outfile")).unwrap();
    let before = tree(&outside);
    let preview = place.preview(
        "echo changed > second; rm out; mkdir out; echo in > out/file; rm outfile; echo own > outfile",
    );
    preview.apply().unwrap();
    assert_eq!(
        fs::read_to_string(outside.join("file")).unwrap(),
        "outside\n"
    );
    assert_eq!(tree(&outside).len(), before.len());
    assert_eq!(
        fs::read_to_string(place.project().join("out/file")).unwrap(),
        "in\n"
    );
    assert_eq!(
        fs::read_to_string(place.project().join("second")).unwrap(),
        "changed\n"
    );
}

#[test]
fn a_directory_swapped_for_a_link_during_applying_is_not_followed() {
    let rounds = 60;
    let mut applied = 0;
    for _ in 0..rounds {
        let place = Place::new(PROJECT);
        let outside = place.folder.path().join("outside");
        fs::create_dir_all(outside.join("inner")).unwrap();
        let preview =
            place.preview("echo evil > d/x; echo evil > d/new; echo evil > d/inner/i; rm -rf e");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (d, aside) = (place.project().join("d"), place.folder.path().join("aside"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::rename(&d, &aside);
                    let _ = symlink(&outside, &d);
                    let _ = fs::remove_file(&d);
                    let _ = fs::rename(&aside, &d);
                }
            });
            applied += usize::from(preview.apply().is_ok());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let left = tree(&outside);
        let left: Vec<_> = left.keys().map(Vec::as_slice).collect();
        assert_eq!(left, [b".".as_slice(), b"inner"]);
    }
    println!("applied in {applied} of {rounds} rounds");
}
