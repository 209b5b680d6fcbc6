// A device: one answer a campaign, limits over all campaigns, and statistics with power.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { expFloor } from "../src/budget.js";
import { type Campaign, openCampaign, openStage, type Stage } from "../src/campaign.js";
import { Device } from "../src/device.js";
import { MemoryStore } from "../src/ledger.js";
import { type Instructions, payloadOf } from "../src/mechanisms.js";
import { FileStore } from "../src/node.js";
import { systemBytes, wordsOf } from "../src/random.js";
import { toHex } from "../src/report.js";
import { position } from "../src/scale.js";

const vectors = JSON.parse(readFileSync("../../tests/vectors/devices.json", "utf8"));
const { coordinator, campaign: twoStages, stage: second } = vectors.campaigns;

const TOKEN = new Uint8Array(16);
const RECORD = { score: 0.25, label: 1 as const };
const LIMITS = { epsilon: 2, days: 30 };
const NOW = 1_780_000_000;
const DAY = 86_400;

const unary = vectors.payloads[0];
const single = (name: string, epsilon: number = unary.epsilon): Campaign => ({
  ...{ digest: Buffer.from(`${name} ${epsilon}`.padEnd(32)).toString("hex"), key: coordinator, name },
  ...{ epsilon, protects: "replace", opens: 10, closes: NOW + 1e8, stages: 1, firstTurns: 0 },
  report: unary.instructions as Instructions,
});

test("a second ask gets the identical report, whatever the records are by then", async () => {
  const device = new Device(new MemoryStore(), LIMITS, () => NOW);
  const campaign = single("a");
  const first = await device.answer(campaign, [RECORD], TOKEN);
  const other = [{ score: 0.9, label: 0 as const }];
  const again = await device.answer(campaign, other, TOKEN.map(() => 7));
  assert.ok("report" in first && "report" in again);
  assert.deepEqual([first.again, again.again], [false, true]);
  assert.equal(toHex(again.report), toHex(first.report));
  assert.equal(first.report.length, 39);
});

test("epsilon is limited over all campaigns of a period", async () => {
  let now = NOW;
  const device = new Device(new MemoryStore(), LIMITS, () => now);
  await device.answer(single("a"), [RECORD], TOKEN);
  await device.answer(single("b"), [RECORD], TOKEN);
  await assert.rejects(device.answer(single("c"), [RECORD], TOKEN), /2 are spent/);
  now += 31 * DAY;
  await device.answer(single("c"), [RECORD], TOKEN);
});

test("a clock that is set back frees no budget", async () => {
  let now = NOW;
  const device = new Device(new MemoryStore(), { epsilon: 1, days: 30 }, () => now);
  await device.answer(single("a"), [RECORD], TOKEN);
  now -= 365 * DAY;
  await assert.rejects(device.answer(single("b"), [RECORD], TOKEN), /1 are spent/);
});

test("a campaign is refused before it opens and after it closed", async () => {
  for (const now of [-1, NOW + 1e8, Number.NaN]) {
    const device = new Device(new MemoryStore(), LIMITS, () => now);
    await assert.rejects(device.answer(single("a"), [RECORD], TOKEN), RangeError);
  }
});

test("a campaign that changed under its name is refused", async () => {
  const device = new Device(new MemoryStore(), { epsilon: 9, days: 1 }, () => NOW);
  await device.answer(single("a"), [RECORD], TOKEN);
  await assert.rejects(device.answer(single("a", 1.5), [RECORD], TOKEN), /changed under its name/);
  await device.answer({ ...single("a", 1.5), key: "00" }, [RECORD], TOKEN);
});

test("scores outside the domain are refused before anything is drawn", async () => {
  const device = new Device(new MemoryStore(), LIMITS, () => NOW);
  for (const score of [-0.1, 1.1, Number.NaN, Number.POSITIVE_INFINITY]) {
    const record = { score, label: 0 as const };
    assert.throws(() => device.answer(single("a"), [record], TOKEN), /score must be/);
  }
  const label = 2 as unknown as 0;
  assert.throws(() => device.answer(single("a"), [{ score: 0, label }], TOKEN), /label/);
});

/** A device whose first word, its turn, is chosen. */
function withTurn(turn: number): Device {
  let drawn = false;
  const fill = (bytes: Uint8Array): void => {
    systemBytes(bytes);
    if (!drawn) bytes.set([turn, 0, 0, 0, 0, 0, 0, 0]);
    drawn = true;
  };
  return new Device(new MemoryStore(), LIMITS, () => NOW, fill);
}

test("a device speaks in the stage of its turn, and keeps it", async () => {
  const campaign = await openCampaign(twoStages, coordinator);
  const stage: Stage = await openStage(second, campaign);
  const early = withTurn(campaign.firstTurns - 1);
  const late = withTurn(campaign.firstTurns);
  const first = await early.answer(campaign, [RECORD], TOKEN);
  assert.ok("report" in first && first.report[13] === 0);
  assert.deepEqual(await late.answer(campaign, [RECORD], TOKEN), { waitsFor: 1 });
  const then = await late.answer(campaign, [RECORD], TOKEN, stage);
  assert.ok("report" in then && then.report[13] === 1);
  const other = { ...campaign, digest: "00".repeat(32) };
  assert.throws(() => withTurn(255).answer(other, [RECORD], TOKEN, stage), /of another campaign/);
  const missed = withTurn(0);
  for (let ask = 0; ask < 20; ask++) {
    await assert.rejects(missed.answer(campaign, [RECORD], TOKEN, stage), /is over/);
  }
});

test("memory in a file outlives the process, and is written whole", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "ledger.json");
  const campaign = single("a");
  const first = await new Device(new FileStore(path), LIMITS, () => NOW).answer(campaign, [RECORD], TOKEN);
  const again = await new Device(new FileStore(path), LIMITS, () => NOW).answer(campaign, [RECORD], TOKEN);
  assert.deepEqual(again, { ...first, again: true });
  const before = readFileSync(path, "utf8");
  await assert.rejects(new FileStore(path).update(() => { throw new Error("stop"); }), /stop/);
  assert.equal(readFileSync(path, "utf8"), before);
  writeFileSync(`${path}.lock`, "");
  await assert.rejects(new FileStore(path).update(() => 0), /another process.*remove .*\.lock/);
});

test("a report is sent until it is acknowledged, and never again", async () => {
  const received: string[] = [];
  const statuses = [503, 429, 200];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      received.push(Buffer.concat(parts).toString("hex"));
      response.writeHead(statuses.shift() ?? 500).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const device = new Device(new MemoryStore(), LIMITS, () => NOW);
  const campaign = single("a");
  const answer = await device.answer(campaign, [RECORD], TOKEN);
  const outcomes = [];
  for (let ask = 0; ask < 5; ask++) outcomes.push(await device.send(campaign, `http://127.0.0.1:${port}`));
  server.close();
  assert.deepEqual(outcomes, ["later", "later", "stored", "already", "already"]);
  assert.ok("report" in answer);
  assert.deepEqual(received, Array(3).fill(toHex(answer.report)));
});

test("exp is bounded from below, and closely", () => {
  for (const epsilon of [1e-3, 0.5, 1, Math.LN2, 8, 36]) {
    const found = Number(expFloor(epsilon)) / 2 ** 160;
    assert.ok(Math.abs(found / Math.exp(epsilon) - 1) < 1e-14);
  }
  // ln 2 as a double is below the number: its exp is below 2
  assert.ok(expFloor(Math.LN2) < 2n << 160n);
  for (const epsilon of [0, -1, 51, Number.NaN]) assert.throws(() => expFloor(epsilon), RangeError);
});

/** The sum of (seen - expected)^2 / expected over the outputs. */
function chiSquare(seen: number[], chances: number[], count: number): number {
  return seen.reduce((sum, n, index) => {
    const expected = count * (chances[index] as number);
    return sum + (n - expected) ** 2 / expected;
  }, 0);
}

const COUNT = Number(process.env["TACIT_REPORTS"] ?? 100_000);

/**
 * The bits of unary reports against their exact chances. The sum over 4 + ... + 64 cells has 124
 * degrees of freedom: above 230 it comes with a probability of 2e-8. Log odds that are 30 % off give
 * 13,000 or more of 50,000 reports, fifty standard deviations above the limit.
 */
test(`${COUNT} reports have the exact chances, and others are noticed`, () => {
  const how = unary.instructions as Extract<Instructions, { kind: "unary" }>;
  const words = wordsOf(systemBytes, 512);
  const sets = new Map<number, number[]>();
  const counts = new Map<number, number>();
  for (let made = 0; made < COUNT; made++) {
    const payload = payloadOf(how, RECORD, words);
    const level = payload[0] as number;
    counts.set(level, (counts.get(level) ?? 0) + 1);
    const bits = sets.get(level) ?? Array<number>(1 << level).fill(0);
    for (let cell = 0; cell < 1 << level; cell++) {
      bits[cell] = (bits[cell] as number) + (((payload[1 + (cell >> 3)] as number) >> (7 - (cell & 7))) & 1);
    }
    sets.set(level, bits);
  }
  const levels = [...sets.keys()].sort((a, b) => a - b);
  assert.deepEqual(levels, [2, 3, 4, 5, 6]);
  const total = how.level_units.reduce((sum, unit) => sum + unit, 0);
  const seen = levels.map((level) => counts.get(level) as number);
  // 4 degrees of freedom: above 33 with a probability of 1e-6
  assert.ok(chiSquare(seen, how.level_units.map((unit) => unit / total), COUNT) < 33);
  const distance = (epsilon: number): number =>
    levels.reduce((sum, level) => {
      const own = Math.floor(0.25 * 32) >> (6 - level);
      return (sets.get(level) as number[]).reduce((inner, set, cell) => {
        const chance = cell === own ? 0.5 : 1 / (1 + Math.exp(epsilon));
        const n = counts.get(level) as number;
        return inner + (set - n * chance) ** 2 / (n * chance * (1 - chance));
      }, sum);
    }, 0);
  assert.ok(distance(unary.epsilon) < 230, `got ${distance(unary.epsilon)}`);
  assert.ok(distance(unary.epsilon * 0.7) > 1000);
  assert.ok(distance(unary.epsilon / 0.7) > 1000);
});

/**
 * Every other mechanism's outputs against the chances that its integers say.
 *
 * Of the mechanisms here, 0.3 of the way to even chances moves the window of 25 among 88 outputs at
 * epsilon 0.5 least: 100,000 outputs then give a sum about 87 + 480, eight standard deviations above
 * the limit of 178. An influence draws from the same windows; a bit of the Hadamard matrix is below.
 */
for (const vector of vectors.payloads) {
  const how = vector.instructions as Instructions;
  if (how.kind !== "window" && how.kind !== "symbol") continue;
  test(`outputs of ${vector.name} have the exact chances`, () => {
    const record = how.kind === "symbol" ? { score: 0.25, label: 1 as const, second: 0.25 } : RECORD;
    const count = Math.max(COUNT, 100_000);
    const seen: number[] = [];
    const words = wordsOf(systemBytes, 512);
    for (let made = 0; made < count; made++) {
      const payload = payloadOf(how, record, words);
      const output = (payload[0] as number) + 256 * (payload[1] as number);
      seen[output] = (seen[output] ?? 0) + 1;
    }
    const chances = chancesOf(how, seen);
    const freedom = chances.length - 1;
    const filled = chances.map((_, index) => seen[index] ?? 0);
    // mean + 6 standard deviations + 12: a probability of at most 2e-6 for 4 to 164 outputs
    assert.ok(chiSquare(filled, chances, count) < freedom + 6 * Math.sqrt(2 * freedom) + 12);
    const even = chances.map((chance) => 0.7 * chance + 0.3 / chances.length);
    assert.ok(chiSquare(filled, even, count) > freedom + 6 * Math.sqrt(2 * freedom) + 12);
  });
}

/** The flips of hadamard reports: of 100,000 a chance whose log odds are 30 % off is 60 errors away. */
test("the entries of a Hadamard matrix are flipped as often as the integers say", () => {
  const vector = vectors.payloads.find((each: { instructions: Instructions }) => each.instructions.kind === "hadamard");
  const how = vector.instructions as Extract<Instructions, { kind: "hadamard" }>;
  const cell = Math.floor(position(how.scale, RECORD.score) * 2 ** how.height);
  const words = wordsOf(systemBytes, 512);
  const count = 100_000;
  let flips = 0;
  for (let made = 0; made < count; made++) {
    const payload = payloadOf(how, RECORD, words);
    const output = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
    const node = output >>> 2;
    const level = Math.floor(Math.log2(node));
    let ones = 0;
    for (let bit = node & (2 ** level - 1) & (cell >> (how.height - level)); bit; bit >>= 1) ones += bit & 1;
    flips += (ones & 1) ^ (output & 1);
  }
  const errorsFrom = (chance: number): number =>
    Math.abs(flips - count * chance) / Math.sqrt(count * chance * (1 - chance));
  // 5.5 standard errors: a probability of 4e-8
  assert.ok(errorsFrom(Number(how.set_words) / 2 ** 64) < 5.5);
  for (const factor of [0.7, 1 / 0.7]) assert.ok(errorsFrom(1 / (1 + Math.exp(vector.epsilon * factor))) > 15);
});

function chancesOf(how: Instructions, seen: number[]): number[] {
  if (how.kind === "window") {
    const [inside, outside] = [Number(how.inside), Number(how.outside)];
    const total = how.width * inside + (how.inputs - 1) * outside;
    const input = Math.floor(how.cells * placeOf(how)) + how.positives_from;
    return Array.from({ length: how.inputs + how.width - 1 }, (_, output) =>
      (output >= input && output < input + how.width ? inside : outside) / total,
    );
  }
  if (how.kind !== "symbol") throw new Error("no other kinds here");
  const symbols = how.axes.reduce((product, axis) => product * (axis.grid.length || axis.bins), 1);
  const rarer = Number(how.other_words) / 2 ** 64;
  const replaced = how.others_rarer ? rarer : 1 - rarer;
  const own = seen.indexOf(Math.max(...seen.map((n) => n ?? 0)));
  return Array.from({ length: symbols }, (_, symbol) => replaced / symbols + (symbol === own ? 1 - replaced : 0));
}

/** The position of the record: a quarter on even cells; elsewhere between the knots. */
function placeOf(how: Extract<Instructions, { kind: "window" }>): number {
  const scale = how.scale as { name: string };
  return scale.name === "even" ? 0.25 : position(how.scale, RECORD.score);
}
