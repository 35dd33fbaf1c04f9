//! Repairs that root runs for the owner of a project, who can replace every path of it.

/// Tests that only root can run: a project that belongs to somebody else.
mod root {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use unstuck_repair::project_dir::ProjectRoot;
    use unstuck_repair::sandbox::run_as_user;

    const OWNER: u32 = 65534;

    /// For a moment, the owner puts a link to a directory of root in the place of the project: the repair would run as
    /// root.
    #[test]
    fn the_owner_of_the_open_project_counts_and_not_that_of_its_path() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        fs::create_dir(&project).unwrap();
        chown(&project, Some(OWNER), Some(OWNER)).unwrap();
        let root = ProjectRoot::open(&project).unwrap();
        fs::rename(&project, home.path().join("aside")).unwrap();
        symlink("/etc", &project).unwrap();
        let user = run_as_user(&root).unwrap();
        assert_eq!((user.uid, user.gid), (OWNER, OWNER));
    }
}
