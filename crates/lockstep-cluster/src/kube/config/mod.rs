//! Which cluster is meant, and who asks: contexts, namespaces and credentials as kubectl has them.
//!
//! A file is that of `--kubeconfig`, else those that `KUBECONFIG` names, else `~/.kube/config`; in a pod without any of
//! them, the account of the pod.

mod exec;
mod file;

use crate::kube::KubeError;
use base64::Engine;
use file::{Context, File, Named, User};
use std::path::{Path, PathBuf};

/// Where the account of a pod lies.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the command line says of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// A file.
    pub kubeconfig: Option<PathBuf>,
    /// A context in it.
    pub context: Option<String>,
    /// A namespace.
    pub namespace: Option<String>,
}

/// How a cluster is reached, and what is shown to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    pub(crate) server: String,
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) unchecked: bool,
    pub(crate) identity: Option<Vec<u8>>,
    pub(crate) token: Option<String>,
    pub(crate) basic: Option<(String, String)>,
    pub(crate) proxy: Option<String>,
}

/// A cluster, and who asks.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is sent where.
    pub(crate) access: Access,
    /// The namespace that is meant where a job names none.
    pub namespace: Option<String>,
    /// The context's name, where there is one.
    pub context: Option<String>,
    /// Where credentials come from that may run out.
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// They stay as they are.
    Fixed,
    /// A file is read again.
    TokenFile(PathBuf),
    /// A program is asked again.
    Exec(Box<exec::Exec>),
}

impl Config {
    /// The cluster that is meant.
    ///
    /// # Errors
    /// When there is no configuration, or it makes no sense, or a program that hands out credentials fails.
    pub fn find(wanted: &Wanted) -> Result<Self, KubeError> {
        let paths = match &wanted.kubeconfig {
            Some(path) => vec![path.clone()],
            None => default_paths(),
        };
        let there: Vec<PathBuf> = match wanted.kubeconfig {
            Some(_) => paths.clone(),
            None => paths.iter().filter(|path| path.exists()).cloned().collect(),
        };
        let mut config = match there.is_empty() {
            false => Self::of_files(&there, wanted.context.as_deref())?,
            true => Self::of_pod().ok_or_else(|| {
                let looked: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
                KubeError::NoConfig {
                    looked: looked.join(", "),
                }
            })?,
        };
        if let Some(namespace) = &wanted.namespace {
            config.namespace = Some(namespace.clone());
        }
        config.renew()?;
        Ok(config)
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        &self.access.server
    }

    /// Fetches credentials that may have run out. Says whether there are such.
    pub(crate) fn renew(&mut self) -> Result<bool, KubeError> {
        match &self.source {
            Source::Fixed => return Ok(false),
            Source::TokenFile(path) => {
                let token = read(path)?;
                let token = String::from_utf8_lossy(&token).trim().to_owned();
                self.access.token = Some(token);
            }
            Source::Exec(exec) => {
                let given = exec.run()?;
                self.access.token = given.token;
                self.access.identity = given.identity;
            }
        }
        Ok(true)
    }

    fn of_files(paths: &[PathBuf], wanted: Option<&str>) -> Result<Self, KubeError> {
        let mut files = Vec::new();
        for path in paths {
            files.push((path.clone(), File::read(path)?));
        }
        let first = &files[0].0;
        let wrong = |why: String| KubeError::Config {
            path: first.clone(),
            why,
        };
        let current = files
            .iter()
            .find_map(|(_, file)| file.current_context.clone())
            .filter(|name| !name.is_empty());
        let name = wanted.map(str::to_owned).or(current).ok_or_else(|| {
            wrong("it has no current-context; choose one with --context".to_owned())
        })?;
        let (_, context): (_, &Context) =
            find(&files, |file| &file.contexts, &name).ok_or_else(|| {
                let all = files.iter().flat_map(|(_, file)| &file.contexts);
                let all: Vec<&str> = all.map(|context| context.name.as_str()).collect();
                wrong(format!(
                    "there is no context {name:?}; there are: {}",
                    all.join(", ")
                ))
            })?;
        let (base, cluster) = find(&files, |file| &file.clusters, &context.cluster)
            .ok_or_else(|| wrong(format!("there is no cluster {:?}", context.cluster)))?;
        let mut access = Access {
            server: cluster.server.trim_end_matches('/').to_owned(),
            authority: data(
                &cluster.certificate_authority_data,
                &cluster.certificate_authority,
                base,
            )?,
            unchecked: cluster.insecure_skip_tls_verify,
            proxy: cluster.proxy_url.clone(),
            ..Access::default()
        };
        let nobody = User::default();
        let (base, user) = match context.user.is_empty() {
            true => (base, &nobody),
            false => find(&files, |file| &file.users, &context.user)
                .ok_or_else(|| wrong(format!("there is no user {:?}", context.user)))?,
        };
        let source = credentials(user, base, &mut access)?;
        Ok(Self {
            access,
            namespace: context.namespace.clone().filter(|n| !n.is_empty()),
            context: Some(name),
            source,
        })
    }

    fn of_pod() -> Option<Self> {
        let host = std::env::var("KUBERNETES_SERVICE_HOST").ok()?;
        let port = std::env::var("KUBERNETES_SERVICE_PORT").ok()?;
        let folder = Path::new(ACCOUNT);
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host,
        };
        let namespace = std::fs::read_to_string(folder.join("namespace")).ok();
        Some(Self {
            access: Access {
                server: format!("https://{host}:{port}"),
                authority: std::fs::read(folder.join("ca.crt")).ok(),
                ..Access::default()
            },
            namespace: namespace.map(|namespace| namespace.trim().to_owned()),
            context: None,
            source: Source::TokenFile(folder.join("token")),
        })
    }
}

/// What a user shows, and where it comes from.
fn credentials(user: &User, base: &Path, access: &mut Access) -> Result<Source, KubeError> {
    let certificate = data(
        &user.client_certificate_data,
        &user.client_certificate,
        base,
    )?;
    let key = data(&user.client_key_data, &user.client_key, base)?;
    if let (Some(mut certificate), Some(key)) = (certificate, key) {
        certificate.push(b'\n');
        certificate.extend(key);
        access.identity = Some(certificate);
    }
    access.token = user.token.clone().filter(|token| !token.is_empty());
    if let (Some(name), Some(password)) = (&user.username, &user.password) {
        access.basic = Some((name.clone(), password.clone()));
    }
    if let Some(exec) = &user.exec {
        return Ok(Source::Exec(Box::new(exec.clone())));
    }
    if user.auth_provider.is_some() {
        return Err(KubeError::Config {
            path: base.to_owned(),
            why: "its user has an auth-provider, which Kubernetes gave up in 1.26; sign in again to get an exec plugin".to_owned(),
        });
    }
    Ok(match &user.token_file {
        Some(path) if access.token.is_none() => Source::TokenFile(base.join(path)),
        _ => Source::Fixed,
    })
}

fn default_paths() -> Vec<PathBuf> {
    match std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        Some(paths) => std::env::split_paths(&paths).collect(),
        None => {
            let home = std::env::var_os("HOME").unwrap_or_default();
            vec![Path::new(&home).join(".kube/config")]
        }
    }
}

/// The first entry of that name, and the folder of its file, from which its paths start.
fn find<'f, T>(
    files: &'f [(PathBuf, File)],
    list: impl Fn(&'f File) -> &'f Vec<Named<T>>,
    name: &str,
) -> Option<(&'f Path, &'f T)> {
    files.iter().find_map(|(path, file)| {
        let found = list(file).iter().find(|named| named.name == name)?;
        Some((path.parent().unwrap_or(Path::new(".")), &found.value))
    })
}

/// What a file holds as text in base64, or else names by its path.
fn data(
    inline: &Option<String>,
    path: &Option<PathBuf>,
    base: &Path,
) -> Result<Option<Vec<u8>>, KubeError> {
    if let Some(text) = inline.as_ref().filter(|text| !text.is_empty()) {
        let text: String = text.split_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        return bytes.map(Some).map_err(|error| KubeError::Config {
            path: base.to_owned(),
            why: format!("a certificate or key in it is not base64: {error}"),
        });
    }
    match path.as_ref().filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => read(&base.join(path)).map(Some),
        None => Ok(None),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, KubeError> {
    std::fs::read(path).map_err(|error| KubeError::Config {
        path: path.to_owned(),
        why: error.to_string(),
    })
}
