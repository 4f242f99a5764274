// SPDX-License-Identifier: BSD-2-Clause
//! The section of a page with the verdicts on a paper's claims.

use super::figure::Figure;
use super::judged::{Judged, Verdict, all};
use super::number::Numbers;
use super::paper::Says;
use super::reasons;
use crate::text::numbers::whole;

/// Sentence of how many claims came to what.
fn tally(judged: &[Judged<'_>]) -> String {
    let count = |of: fn(Verdict) -> bool| judged.iter().filter(|one| of(one.verdict)).count();
    format!(
        "Of {} numbers {} are reproduced, {} agree but are no test, {} differ, in {} rows the \
         algorithm was inactive, {} cannot be measured here, {} were not measured.",
        judged.len(),
        count(|verdict| verdict == Verdict::Reproduced),
        count(|verdict| matches!(verdict, Verdict::NoTest(_))),
        count(|verdict| matches!(verdict, Verdict::Differs(_))),
        count(|verdict| matches!(verdict, Verdict::Inactive(_))),
        count(|verdict| matches!(verdict, Verdict::NotMeasurable(_))),
        count(|verdict| verdict == Verdict::NotMeasured),
    )
}

/// The section of a page.
pub(super) fn figure(numbers: &Numbers) -> Figure {
    let judged = all(numbers);
    let mut figure = Figure::new(
        "Verdicts",
        format!(
            "Each number in the paper's text beside ours on the paper's own storage, linked \
             queues. *Reproduced* is within 30 % of the paper's, also where one of them is a little \
             faster than the list and the other a little slower; *no test* the same because it \
             was fitted or capped; otherwise it *differs by* the larger over the smaller. \"Up to\" is the largest median over processes at which \
             queues were made, \"about\" the median farthest from it; the range is over the \
             processes that the paper says it of and all seeds. Where no queue was made the *algorithm* was *inactive*. \
             Queues are collective + point-to-point ones. Where nothing else is said the number \
             is the speedup of searches over the list; *in all* that of a whole operation or \
             program. {}",
            tally(&judged)
        ),
        ["what", "said in", "paper", "ours", "n", "queues", "is", "verdict"],
    );
    for one in &judged {
        let paper = match (one.claim.metric, one.claim.says) {
            ("queues" | "longest", _) => whole(one.claim.figure as u64),
            (_, Says::UpTo) => format!("{}", one.claim.figure),
            (_, Says::About) => format!("about {}", one.claim.figure),
        };
        let mut verdict = one.verdict.text();
        if let Some(reason) = reasons::of(one) {
            let known = figure.footnotes.iter().position(|footnote| footnote == reason);
            let number = known.unwrap_or_else(|| {
                figure.footnotes.push(reason.to_owned());
                figure.footnotes.len() - 1
            });
            verdict += &format!(" [{}]", number + 1);
        }
        let made = one.made.map(|made| made.map(|made| whole(made as u64)).join(" + "));
        figure.row(vec![
            one.subject().into(),
            one.claim.at.into(),
            paper.into(),
            one.cell(),
            one.ours.map_or_else(String::new, |number| number.ranks.to_string()).into(),
            made.unwrap_or_default().into(),
            one.ours.map_or("", |number| number.is.name()).into(),
            verdict.into(),
        ]);
    }
    figure
}
