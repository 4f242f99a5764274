// SPDX-License-Identifier: BSD-2-Clause
//! What was meant by a word that is none of those there are.

use nic::params::{PARAMS, PREFIX, ParamError, Values};
use nic::report::ReportError;
use nic::trace::TraceError;
use strsim::damerau_levenshtein;

/// Letters a word must have to be looked for inside of others.
const PART: usize = 3;

/// The words that contain this one, or else the nearest if it is near.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let word = word.to_lowercase();
    if word.len() >= PART {
        let containing: Vec<_> = known.clone().filter(|one| one.contains(&word)).collect();
        if !containing.is_empty() {
            return containing;
        }
    }
    let nearest = known
        .map(|one| (damerau_levenshtein(&word, one), one))
        .filter(|(distance, one)| *distance <= one.len().max(word.len()) / 3)
        .min();
    nearest.map(|(_, one)| one).into_iter().collect()
}

/// `a`, `a or b`, `a, b or c`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// What can be done about a trace.
pub(crate) fn of_trace(error: &TraceError) -> &'static str {
    match error {
        TraceError::Cut(_) => "; with --cut-off what is before is taken",
        _ => "",
    }
}

/// What is wrong with a report.
pub(crate) fn of_report(error: &ReportError) -> String {
    match error {
        ReportError::Json(json) if json.is_eof() && json.column() == 0 => {
            "not a tcam report: the file is empty, its rank did not come to an end".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The error, with what was meant as far as that can be guessed.
pub(crate) fn explained(error: &ParamError) -> String {
    match error {
        ParamError::Name { name, .. } => {
            let names = meant(name, PARAMS.iter().map(|param| param.name));
            let names: Vec<_> =
                names.iter().map(|name| format!("{PREFIX}{}", name.to_uppercase())).collect();
            if names.is_empty() {
                return error.to_string();
            }
            format!("{PREFIX}{name} is no parameter of tcam; did you mean {}?", list(&names))
        }
        ParamError::Value { name, value, .. } => {
            let param = PARAMS.iter().find(|param| param.name.eq_ignore_ascii_case(name));
            let words = match param.map(|param| param.values) {
                Some(Values::Words(words) | Values::Set(words)) => words,
                _ => &[],
            };
            let words: Vec<_> =
                meant(value, words.iter().copied()).into_iter().map(str::to_owned).collect();
            if words.is_empty() {
                return error.to_string();
            }
            format!("{error}; did you mean {}?", list(&words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::params::Params;

    fn value(name: &str, value: &str) -> String {
        let set = |of: &str| (of == name).then(|| value.to_owned());
        explained(&Params::from_lookup(set).unwrap_err())
    }

    fn name(name: &str) -> String {
        explained(&Params::check_names([format!("{PREFIX}{name}")]).unwrap_err())
    }

    #[test]
    fn what_was_meant_is_named() {
        for (told, end) in [
            (
                value("device", "cassini"),
                "did you mean cassini-hybrid, cassini-hardware or cassini-software?",
            ),
            (value("device", "conectx"), "did you mean connectx?"),
            (value("kernel", "AVX512"), "did you mean avx512?"),
            (value("refuse", "any_source"), "did you mean any-source?"),
            (name("PRQ_ENTRY"), "is no parameter of tcam; did you mean FI_TCAM_PRQ_ENTRIES?"),
            (name("KERNELS"), "did you mean FI_TCAM_KERNEL?"),
            (name("ENTRIES"), "UMQ_ENTRIES or FI_TCAM_POOL_ENTRIES?"),
        ] {
            assert!(told.ends_with(end), "{told}");
        }
    }

    #[test]
    fn empty_reports_are_told_from_others() {
        let told = |text| of_report(&nic::report::Report::from_json(text).unwrap_err());
        for empty in ["", "\n"] {
            assert!(told(empty).contains("the file is empty"), "{}", told(empty));
        }
        assert!(told("{\"format\"").contains("EOF while parsing an object"));
        assert!(told("{}").contains("missing field"));
    }

    #[test]
    fn far_words_get_the_list() {
        assert!(value("device", "abacus").ends_with("alpu, ideal"));
        assert!(value("prq_entries", "many").ends_with("from 0 to 65536"));
        assert!(name("XYZZY").contains("there are FI_TCAM_DEVICE, "));
    }
}
