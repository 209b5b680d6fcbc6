// The files of vectors that Python passes, too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { openCampaign, openStage } from "../src/campaign.js";
import { checkInstructions, checkRecord, type Instructions, payloadOf } from "../src/mechanisms.js";
import { wordsOf } from "../src/random.js";
import { decode, encode, fromHex, toHex } from "../src/report.js";
import { position, scaleOf } from "../src/scale.js";

const folder = "../../tests/vectors";
const devices = JSON.parse(readFileSync(`${folder}/devices.json`, "utf8"));
const scales = JSON.parse(readFileSync(`${folder}/scales.json`, "utf8"));

/** Words from these bytes, and how many are left. */
function stream(hex: string): { words: () => bigint; left: () => number } {
  const bytes = fromHex(hex);
  let place = 0;
  const words = wordsOf((target) => {
    assert.ok(place + target.length <= bytes.length, "more randomness was drawn than Python draws");
    target.set(bytes.subarray(place, place + target.length));
    place += target.length;
  });
  return { words, left: () => bytes.length - place };
}

for (const vector of devices.payloads) {
  test(`payloads of ${vector.name}`, () => {
    const how = vector.instructions as Instructions;
    checkInstructions(how, vector.epsilon);
    assert.throws(() => checkInstructions(how, vector.epsilon * (1 - 1e-9)), /cost more/);
    for (const each of vector.cases) {
      checkRecord(how, each.record);
      const { words, left } = stream(each.randomness);
      assert.equal(toHex(payloadOf(how, each.record, words)), each.payload);
      assert.equal(left(), 0);
    }
  });
}

test("reports", () => {
  for (const each of devices.reports.valid) {
    const report = decode(fromHex(each.hex));
    assert.deepEqual(
      [toHex(report.campaign), report.stage, toHex(report.token), toHex(report.payload)],
      [each.campaign, each.stage, each.token, each.payload],
    );
    assert.equal(toHex(encode(report)), each.hex);
  }
  for (const each of devices.reports.refused) {
    assert.throws(() => decode(fromHex(each.hex)), { message: new RegExp(each.error) });
  }
});

test("campaigns", async () => {
  const { coordinator, ...vectors } = devices.campaigns;
  const campaign = await openCampaign(vectors.campaign, coordinator);
  assert.equal(campaign.digest, vectors.digest);
  assert.equal(campaign.name, vectors.name);
  const stage = await openStage(vectors.stage, campaign);
  assert.equal(stage.stage, 1);
  for (const each of vectors.refused) {
    await assert.rejects(openCampaign(each.campaign, coordinator), new RegExp(each.error));
  }
  for (const each of vectors["refused stages"]) {
    await assert.rejects(openStage(each.stage, campaign), new RegExp(each.error));
  }
});

const view = new DataView(new ArrayBuffer(8));
const number = (hex: string): number => {
  view.setBigUint64(0, BigInt(`0x${hex}`));
  return view.getFloat64(0);
};
const hexOf = (value: number): string => {
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
};

test("scales", () => {
  for (const name of ["probability", "log-odds", "real"]) {
    const { knots } = scaleOf({ name });
    const bytes = Buffer.from(knots.map(hexOf).join(""), "hex");
    const expected = scales.scales[name]["sha256 of the knots"];
    assert.equal(createHash("sha256").update(bytes).digest("hex"), expected);
  }
  for (const each of scales.valid) {
    const scale = scales.scales[each.scale];
    const entry = scale.listed
      ? {
          knots: scale.listed.map(number),
          low: scale.low === null ? null : number(scale.low),
          high: scale.high === null ? null : number(scale.high),
        }
      : { name: each.scale };
    assert.equal(hexOf(position(entry, number(each.score))), each.position, each.about);
  }
});
