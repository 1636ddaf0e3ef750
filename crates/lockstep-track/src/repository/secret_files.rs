//! Files of a repository that hold secrets as a rule, by their names. What changed in them is not written down.

/// Their names, as patterns of `git`. Small letters stand for capital ones too.
const SECRET_FILES: [&str; 32] = [
    ".env*",
    "*.env",
    "*.envrc",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
    "*.asc",
    "*.age",
    "*.tfvars",
    "*.tfstate*",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*secret*",
    "*credential*",
    "*password*",
    "*service*account*.json",
    "*kubeconfig*",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
];
/// Folders all of whose files do.
const SECRET_FOLDERS: [&str; 7] = [
    ".ssh", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".gnupg",
];

/// These files, for `git`.
pub(super) fn all() -> Vec<String> {
    patterns("glob,icase").collect()
}

/// All files but these, for `git`.
pub(super) fn all_others() -> Vec<String> {
    let everything = std::iter::once(".".to_owned());
    everything.chain(patterns("exclude,glob,icase")).collect()
}

fn patterns(magic: &'static str) -> impl Iterator<Item = String> {
    let files = SECRET_FILES
        .iter()
        .map(move |name| format!(":({magic})**/{name}"));
    let folders = SECRET_FOLDERS.iter();
    files.chain(folders.map(move |name| format!(":({magic})**/{name}/**")))
}
