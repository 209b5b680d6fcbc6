// What a coordinator that signs false numbers may not get from a device.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openCampaign } from "../src/campaign.js";
import { checkInstructions, checkRecord, type Instructions, payloadOf } from "../src/mechanisms.js";
import { toHex } from "../src/report.js";

const vectors = JSON.parse(readFileSync("../../tests/vectors/devices.json", "utf8")).payloads;
type Fields = Record<string, unknown>;
const of = (kind: string): { instructions: Fields; epsilon: number } =>
  vectors.find((each: { instructions: Fields }) => each.instructions["kind"] === kind);

const [labels, values] = of("symbol").instructions["axes"] as [Fields, Fields];

/** Each keeps the ratio of the mechanism's integers, and gives some records outputs of their own. */
const DISHONEST: [string, Fields][] = [
  ["window", { positives_from: 100 }],
  ["window", { cells: 4000 }],
  ["window", { cells: 0.5 }],
  ["window", { scale: { knots: [0.5, 0.5], low: null, high: null } }],
  ["window", { scale: { knots: [0.5], low: 0.4, high: 1 } }],
  ["window", { scale: { name: "even", knots: [0, 0.5], low: null, high: null } }],
  ["window", { scale: { knots: [0, 0.5], low: 0, high: 1 } }],
  ["influence", { grid: Array.from({ length: 200 }, (_, index) => index) }],
  ["influence", { grid: [0, 0] }],
  ["influence", { knots: [[1e308, -1e308], [0, 1]] }],
  ["influence", { knots: [[0, 1]] }],
  ["symbol", { axes: [{ ...values, bins: 0.5 }, { ...values, bins: 200 }] }],
  ["symbol", { axes: [{ ...values, high: 0 }] }],
  ["symbol", { axes: [{ ...labels, grid: [1] }, values] }],
  ["unary", { scale: { knots: [0.5], low: 0.5, high: 1 } }],
  ["unary", { height: 60 }],
];

for (const [kind, change] of DISHONEST) {
  test(`a device refuses a ${kind} with ${JSON.stringify(change).slice(0, 60)}`, () => {
    const { instructions, epsilon } = of(kind);
    checkInstructions(instructions as unknown as Instructions, epsilon);
    const dishonest = { ...instructions, ...change } as unknown as Instructions;
    assert.throws(() => checkInstructions(dishonest, epsilon), RangeError);
  });
}

/** Weights the other way round: a small ratio, under which an output says what a record is not. */
const TURNED: [string, Fields][] = [
  ["window", { inside: "1", outside: String(2n ** 50n) }],
  ["influence", { inside: "1", outside: String(2n ** 50n) }],
  ["unary", { set_words: String(2n ** 64n - 2n ** 20n) }],
  ["hadamard", { set_words: String(2n ** 64n - 2n ** 20n) }],
  ["symbol", { other_words: String(2n ** 65n), others_rarer: true }],
];

for (const [kind, change] of TURNED) {
  test(`a device refuses a ${kind} whose rarer outputs are the likelier ones`, () => {
    const { instructions, epsilon } = of(kind);
    const turned = { ...instructions, ...change } as unknown as Instructions;
    assert.throws(() => checkInstructions(turned, epsilon), /cost more/);
  });
}

test("a range or values that the coordinator chose decide nothing about an answer", () => {
  const { instructions, epsilon } = of("symbol");
  const [least, most] = [0n, 2n ** 64n - 1n];
  const symbolOf = (axis: Fields, score: number): number => {
    const how = { ...instructions, axes: [axis], other_words: String(2n ** 62n), others_rarer: true };
    checkInstructions(how as unknown as Instructions, 10 * epsilon);
    checkRecord(how as unknown as Instructions, { score, label: 0 });
    const words = [most, least];
    return payloadOf(how as unknown as Instructions, { score, label: 0 }, () => words.shift() as bigint)[0] as number;
  };
  const narrow = { ...values, low: 0.6, high: 0.7, bins: 4 };
  assert.deepEqual([-9, 0.1, 0.61, 0.9, 1e300].map((score) => symbolOf(narrow, score)), [0, 0, 0, 3, 3]);
  const listed = { ...values, grid: [0, 0.25, 1], bins: 0 };
  assert.deepEqual([-9, 0, 0.1, 0.25, 0.9, 7].map((score) => symbolOf(listed, score)), [0, 0, 1, 1, 2, 2]);
  for (const score of [Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => symbolOf(narrow, score), RangeError);
  }
  assert.throws(() => symbolOf({ ...values, bins: 4 }, 1.1), /a number of the scale/);
});

test("weights above 2**64 are refused: no word would ever be drawn", () => {
  const { instructions, epsilon } = of("window");
  const [inside, outside] = [String(2n ** 64n + 1n), String(2n ** 64n)];
  const endless = { ...instructions, inside, outside } as unknown as Instructions;
  assert.throws(() => checkInstructions(endless, epsilon), /2\*\*64/);
});

test("a mechanism that sends the label is refused where labels are protected", async () => {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const key = toHex(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)));
  const { instructions: report, epsilon } = of("hadamard");
  const signed = async (protects: string): Promise<string> => {
    const times = { opens: 0, closes: 9e9, stages: 1, first_turns: 0 };
    const fields = { format: "tacit-campaign/1", name: "x", epsilon, protects, ...times, report };
    const document = JSON.stringify(fields);
    const made = await crypto.subtle.sign("Ed25519", pair.privateKey, new TextEncoder().encode(document));
    return JSON.stringify({ document, signature: Buffer.from(made).toString("base64") });
  };
  assert.equal((await openCampaign(await signed("score"), key)).protects, "score");
  await assert.rejects(openCampaign(await signed("replace"), key), /sends the label/);
  await assert.rejects(openCampaign(await signed("nothing"), key), /protects must be/);
});
