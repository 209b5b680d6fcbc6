// Signed campaigns and stages: nothing is computed from a document before its signature is checked.

import { checkInstructions, type Instructions } from "./mechanisms.js";
import { fromHex, toHex } from "./report.js";

/** A campaign whose signature is the coordinator's and whose numbers cost what it says. */
export interface Campaign {
  digest: string; // SHA-256 of the document, hexadecimal
  key: string; // the coordinator's public key, hexadecimal
  name: string;
  epsilon: number;
  protects: string;
  opens: number; // seconds since 1970
  closes: number;
  stages: number;
  firstTurns: number;
  report: Instructions;
}

/** What devices compute in a later stage. */
export interface Stage {
  campaign: string; // the campaign's digest
  stage: number;
  report: Instructions;
}

/** The campaign of a signed document. The key must have come another way than the document. */
export async function openCampaign(text: string, coordinator: string): Promise<Campaign> {
  const { content, bytes } = await verified(text, coordinator);
  if (content["format"] !== "tacit-campaign/1") {
    throw new RangeError(`the format must be tacit-campaign/1, got ${content["format"]}`);
  }
  const campaign = {
    digest: toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))),
    key: coordinator.toLowerCase(),
    name: String(content["name"]),
    epsilon: Number(content["epsilon"]),
    protects: String(content["protects"]),
    opens: Number(content["opens"]),
    closes: Number(content["closes"]),
    stages: Number(content["stages"]),
    firstTurns: Number(content["first_turns"]),
    report: content["report"] as Instructions,
  };
  checkPromise(campaign, campaign.report);
  return campaign;
}

/** The later stage of a campaign that a signed document describes. */
export async function openStage(text: string, campaign: Campaign): Promise<Stage> {
  const { content } = await verified(text, campaign.key);
  if (content["format"] !== "tacit-stage/1" || content["campaign"] !== campaign.digest) {
    throw new RangeError("the document is no stage of this campaign");
  }
  const stage = Number(content["stage"]);
  if (!(Number.isInteger(stage) && stage >= 1 && stage < campaign.stages)) {
    throw new RangeError(`stage must be from 1 to ${campaign.stages - 1}, got ${stage}`);
  }
  const report = content["report"] as Instructions;
  checkPromise(campaign, report);
  return { campaign: campaign.digest, stage, report };
}

/** Refuses instructions that cost more than the campaign says, or protect less. */
function checkPromise(campaign: Campaign, how: Instructions): void {
  const { protects, epsilon } = campaign;
  if (protects !== "replace" && protects !== "score") {
    throw new RangeError(`protects must be replace or score, got ${protects}`);
  }
  // this mechanism sends the label as it is
  if (how.kind === "hadamard" && protects !== "score") {
    throw new RangeError(`the campaign's mechanism sends the label, and protects is ${protects}`);
  }
  checkInstructions(how, epsilon);
}

async function verified(
  text: string,
  coordinator: string,
): Promise<{ content: Record<string, unknown>; bytes: Uint8Array<ArrayBuffer> }> {
  const entry = JSON.parse(text) as { document: string; signature: string };
  const bytes = new TextEncoder().encode(entry.document);
  const raw = Uint8Array.from(fromHex(coordinator));
  const key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
  const signature = Uint8Array.from(atob(entry.signature), (letter) => letter.charCodeAt(0));
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, key, signature, bytes))) {
    throw new RangeError("the document is not signed by the coordinator's key");
  }
  return { content: JSON.parse(entry.document) as Record<string, unknown>, bytes };
}
