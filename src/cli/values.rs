//! What the values of options may be.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use walprobe_probes::request::{Beside, DropCaches, Profile, Selection};

use crate::{fail_on::FailOn, render::RENDERERS};

/// Formats that make no sense as the only output.
const FILE_FORMATS: &[&str] = &["conf"];

pub(super) fn formats() -> Vec<&'static str> {
    let names = RENDERERS.iter().map(|r| r.name());
    names.filter(|n| !FILE_FORMATS.contains(n)).collect()
}

pub(super) fn profiles() -> impl TypedValueParser<Value = Profile> {
    named([Profile::Quick, Profile::Normal, Profile::Thorough], |p| {
        p.as_str()
    })
}

pub(super) fn drops() -> impl TypedValueParser<Value = DropCaches> {
    named(DropCaches::ALL, |d| d.as_str())
}

pub(super) fn besides() -> impl TypedValueParser<Value = Beside> {
    named(Beside::ALL, |b| b.as_str())
}

/// Numbers of clients, in order, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients(pub Vec<u64>);

/// Most clients at the same time.
const MOST_CLIENTS: u64 = 256;
/// Most numbers of clients.
const MOST_COUNTS: usize = 12;

pub(super) fn clients(text: &str) -> Result<Clients, String> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        let count: u64 = part
            .trim()
            .parse()
            .map_err(|_| format!("'{part}' is not a number of clients"))?;
        if !(1..=MOST_CLIENTS).contains(&count) {
            return Err(format!("{count} is not from 1 to {MOST_CLIENTS}"));
        }
        counts.push(count);
    }
    counts.sort_unstable();
    counts.dedup();
    if counts.len() > MOST_COUNTS {
        return Err(format!("there are more than {MOST_COUNTS} numbers"));
    }
    Ok(Clients(counts))
}

pub(super) fn levels() -> impl TypedValueParser<Value = FailOn> {
    named([FailOn::Warning, FailOn::Critical], |l| l.as_str())
}

fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.map(name)).try_map(move |text| {
        let found = values.into_iter().find(|v| name(*v) == text);
        found.ok_or_else(|| format!("'{text}' is not known"))
    })
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    within(text, 1.0, 604_800.0)
}

/// A living worker says something every second.
pub(super) fn timeout(text: &str) -> Result<f64, String> {
    within(text, 2.0, 86_400.0)
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if !(least..=most).contains(&seconds) {
        return Err(format!("it must be from {least} to {most} seconds"));
    }
    Ok(seconds)
}

pub(super) fn glob(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty and matches nothing".to_owned());
    }
    let pattern = text.to_owned();
    Selection::new(std::slice::from_ref(&pattern), &[])?;
    Ok(pattern)
}
