//! How good rankings are: means over the groups that are ranked, each of them alike.

use serde::{Deserialize, Serialize};

/// What the order of a group's rows, or of those of all groups in the mean, is worth.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RankingScores {
    /// The discounted gain as a share of the largest that there could be; gains are 2^relevance - 1.
    pub ndcg: f64,
    /// The same of the first ten rows alone.
    pub ndcg10: f64,
    /// The mean precision at the ranks of relevant rows, which are those above 0.
    pub map: f64,
}

/// The numbers that say how good a ranking is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankingSummary {
    /// Rows of all groups.
    pub samples: u64,
    /// Groups that were ranked.
    pub groups: u64,
    /// How much the gain lacks: 1 less `ndcg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The means over the groups.
    #[serde(flatten)]
    pub scores: RankingScores,
}

/// Everything that is known about how good a ranking is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// What it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The numbers that say how good it is.
    #[serde(flatten)]
    pub summary: RankingSummary,
}

impl Ranking {
    /// What the groups come to, of so many rows together.
    pub fn of(samples: u64, groups: impl Iterator<Item = RankingScores>) -> Self {
        let (mut sums, mut count) = (RankingScores::default(), 0);
        for scores in groups {
            sums.ndcg += scores.ndcg;
            sums.ndcg10 += scores.ndcg10;
            sums.map += scores.map;
            count += 1;
        }
        let all = f64::max(count as f64, 1.0);
        let scores = RankingScores {
            ndcg: sums.ndcg / all,
            ndcg10: sums.ndcg10 / all,
            map: sums.map / all,
        };
        Self {
            set: None,
            summary: RankingSummary {
                samples,
                groups: count,
                loss: Some(1.0 - scores.ndcg),
                scores,
            },
        }
    }
}
