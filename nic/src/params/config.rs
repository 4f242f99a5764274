// SPDX-License-Identifier: BSD-2-Clause
//! Settings files (`FI_TCAM_CONFIG`).
//!
//! ```text
//! # thresholds of this machine
//! eager_size = 8192
//! FI_TCAM_IDLE = spin           the prefix is optional
//! ```
//!
//! The environment takes precedence over the file, and the file over presets and defaults.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::{PARAMS, PREFIX, ParamError, Params};

/// Name of the parameter that contains the path of the file.
pub const NAME: &str = "config";
/// Maximum size of a file in bytes.
const LARGEST: u64 = 64 * 1024;

/// The parameters that a file sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<&'static str, String>);

/// Why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is too long.
    #[error(
        "it has more than {LARGEST} bytes: a settings file has one line `name = value` per \
         parameter"
    )]
    TooLong,
    /// A line is not UTF-8 text.
    #[error("line {0} is not UTF-8 text: expected `name = value`, such as idle = spin")]
    NoText(usize),
    /// A line is neither a setting, a comment nor empty.
    #[error("line {line}: {text}: expected `name = value`, such as idle = spin")]
    NoSetting {
        /// Number of the line, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// A name or a value is not allowed.
    #[error("line {line}: {error}")]
    Param {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the error.
        error: ParamError,
    },
    /// The file sets `config` itself.
    #[error(
        "line {0}: {PREFIX}CONFIG: a settings file cannot name another; set {PREFIX}CONFIG in the \
         environment"
    )]
    Itself(usize),
    /// A name is set twice.
    #[error("line {line}: {name} is already set in line {first}: remove one of the two lines")]
    Twice {
        /// Number of the line, from 1.
        line: usize,
        /// Name in lower case, without the prefix.
        name: &'static str,
        /// Number of the line that sets it first.
        first: usize,
    },
}

impl Config {
    /// Reads a file and checks every name and value in it.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn read(file: &mut impl Read) -> Result<Self, ConfigError> {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(ConfigError::TooLong);
        }
        let text = str::from_utf8(&bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            ConfigError::NoText(1 + before.iter().filter(|&&byte| byte == b'\n').count())
        })?;
        Self::parse(text)
    }

    fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut settings = BTreeMap::new();
        let mut lines = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let parts = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty()) else {
                return Err(ConfigError::NoSetting { line, text: text.to_owned() });
            };
            let name = name.to_uppercase();
            let name = name.strip_prefix(PREFIX).unwrap_or(&name);
            let Some(param) = PARAMS.iter().find(|param| param.name.eq_ignore_ascii_case(name))
            else {
                let error = Params::unknown(format!("{PREFIX}{name}"));
                return Err(ConfigError::Param { line, error });
            };
            if param.name == NAME {
                return Err(ConfigError::Itself(line));
            }
            if !param.values.allows(value) {
                return Err(ConfigError::Param { line, error: param.refuses(value) });
            }
            if let Some(first) = lines.insert(param.name, line) {
                return Err(ConfigError::Twice { line, name: param.name, first });
            }
            settings.insert(param.name, value.to_owned());
        }
        Ok(Self(settings))
    }

    /// The value of a parameter by its lower-case name, or `None` if the file does not set it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Every parameter that the file sets, with its value.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::read(&mut text.as_bytes())
    }

    fn why(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn lines_set_parameters() {
        let text = "# of this machine\n\n  eager_size=8192\nFI_TCAM_IDLE = spin\r\njob_key = a;b\n\
                    report = a=b #1\nClusters =\nfi_tcam_net = tcp\n";
        let config = read(text).unwrap();
        let all: Vec<_> = config.all().collect();
        let expected = [
            ("clusters", ""),
            ("eager_size", "8192"),
            ("idle", "spin"),
            ("job_key", "a;b"),
            ("net", "tcp"),
            ("report", "a=b #1"),
        ];
        assert_eq!(all, expected);
        assert_eq!((config.get("idle"), config.get("poll")), (Some("spin"), None));
        assert_eq!(read("").unwrap(), Config::default());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, told) in [
            ("idle spin", "line 1: idle spin: expected `name = value`"),
            ("\n = spin", "line 2: = spin: expected `name = value`"),
            ("# x\nidel = spin", "line 2: FI_TCAM_IDEL is no parameter of tcam; there are"),
            (
                "eager_size = 16385",
                "line 1: FI_TCAM_EAGER_SIZE=16385: allowed is a whole number from 0",
            ),
            ("idle = spin # why", "line 1: FI_TCAM_IDLE=spin # why: allowed is auto, spin, yield"),
            ("FI_TCAM_CONFIG = x", "line 1: FI_TCAM_CONFIG: a settings file cannot name another"),
            ("idle=spin\nFI_TCAM_IDLE=spin", "line 2: idle is already set in line 1"),
        ] {
            assert!(why(text).starts_with(told), "{}", why(text));
        }
    }

    #[test]
    fn files_that_are_not_settings_are_refused() {
        let zeros = vec![b'#'; 64 * 1024 + 1];
        assert!(
            Config::read(&mut zeros.as_slice()).unwrap_err().to_string().contains("65536 bytes")
        );
        assert!(Config::read(&mut &zeros[1..]).is_ok());
        let error = Config::read(&mut &b"idle = spin\n\xff\xfe"[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 2 is not UTF-8 text"), "{error}");
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        assert_eq!(Config::read(&mut Broken).unwrap_err().to_string(), "the disk is gone");
    }
}
