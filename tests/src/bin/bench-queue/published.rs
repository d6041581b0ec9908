//! The draw, checked from what the hub publishes, as anybody could.

use anyhow::{Context, ensure};
use fullhouse::waiting_room::draw::{self, Hash, Published, Terms};
use fullhouse_protocol::line::{Draws, Entry, InclusionProof};

use super::{bytes, client};

/// Recomputes the places of everybody.
pub async fn check(port: u16, event: i64) -> anyhow::Result<Vec<u32>> {
    let draws: Draws = client::get(port, &format!("/api/events/{event}/queue/draws"), None).await?;
    let facts = draws.draws.last().context("there is a draw")?;
    let leaves = client::get_bytes(port, &format!("/api/events/{event}/queue/draws/{}/leaves", facts.no), None).await?;
    ensure!(leaves.len() % 32 == 0, "whole leaves");
    let leaves: Vec<Hash> = leaves.as_chunks::<32>().0.to_vec();
    let published = Published {
        terms: Terms { event_id: event, draw_no: facts.no.try_into()?, public: None },
        commitment: bytes(&facts.commitment)?,
        count: facts.entry_count.context("it is closed")?.try_into()?,
        root: bytes(facts.root.as_deref().context("it has a root")?)?,
        public_value: None,
        secret: bytes(facts.secret.as_deref().context("its secret is published")?)?,
    };
    Ok(draw::check(&published, leaves)?)
}

/// Some people ask where they stand and for their proof; both have to be what was recomputed.
pub async fn look(
    port: u16,
    event: i64,
    places: &[u32],
    entries: &[(usize, i64, String)],
    looks: usize,
) -> anyhow::Result<usize> {
    let step = (entries.len() / looks).max(1);
    let mut looked = 0;
    for (person, number, key) in entries.iter().step_by(step) {
        let entry: Entry = client::get(port, &format!("/api/events/{event}/queue/entry"), Some(*person)).await?;
        let place = places[usize::try_from(*number)?];
        ensure!(entry.number == *number && entry.place == Some(place.into()), "{entry:?} is not at {place}");
        let path = format!("/api/events/{event}/queue/proof/{number}");
        let proof: InclusionProof = client::get(port, &path, None).await?;
        let leaf = draw::leaf(event, (*number).try_into()?, &bytes(key)?);
        let path = proof.path.iter().map(|hash| bytes(hash)).collect::<anyhow::Result<Vec<Hash>>>()?;
        let proven = draw::proves(&bytes(&proof.root)?, proof.count.try_into()?, (*number).try_into()?, &leaf, &path);
        ensure!(proven, "number {number} is not proven");
        looked += 1;
    }
    Ok(looked)
}
