// A device: it answers a campaign once, from one of its records, and sends the answer.

import { type Campaign, type Stage } from "./campaign.js";
import { type Entry, type Limits, type Memory, moment, spent, type Store } from "./ledger.js";
import { checkRecord, type DeviceRecord, type Instructions, payloadOf } from "./mechanisms.js";
import { below, type Fill, systemBytes, type Words, wordsOf } from "./random.js";
import { encode, fromHex, toHex } from "./report.js";

/** What came of asking a device: a report, or the stage that it waits for. */
export type Answer = { report: Uint8Array; again: boolean } | { waitsFor: number };

/** What a collector said. */
export type Sent = "stored" | "already" | "later";

const SLOTS = 256n;
const POOL = 64; // words of one call of the system

export class Device {
  readonly #words: Words;

  constructor(
    readonly store: Store,
    readonly limits: Limits,
    readonly now: () => number = () => Date.now() / 1000,
    fill: Fill = systemBytes,
  ) {
    if (!(limits.epsilon > 0 && limits.days > 0)) {
      throw new RangeError("limits must be an epsilon and days above 0");
    }
    this.#words = wordsOf(fill, POOL);
  }

  /**
   * The device's one report to a campaign. Asked again it is the same, byte for byte, whatever
   * the records are by then. Of several records of a person one is drawn.
   */
  answer(
    campaign: Campaign,
    records: DeviceRecord[],
    token: Uint8Array,
    stage: Stage | null = null,
  ): Promise<Answer> {
    if (stage && stage.campaign !== campaign.digest) {
      throw new RangeError("the stage is of another campaign, which may cost more");
    }
    const how = stage?.report ?? campaign.report;
    if (!records.length) throw new RangeError("a device answers with at least one record, got 0");
    for (const record of records) checkRecord(how, record);
    // a refusal is a value here, so that what was drawn or seen before it is remembered
    return this.store
      .update<Answer | RangeError>((memory) => {
        const entry = this.#entry(memory, campaign);
        if (entry.report !== null) return { report: fromHex(entry.report), again: true };
        const now = moment(memory, this.now());
        const refusal = outOfTime(campaign, now) ?? this.#tooMuch(memory, campaign, now);
        if (refusal) return refusal;
        const speaksIn = this.#speaksIn(campaign, entry);
        const open = stage?.stage ?? 0;
        if (open < speaksIn) return { waitsFor: speaksIn };
        if (open > speaksIn) return new RangeError("the stage in which this device reports is over");
        const report = this.#report(campaign, how, records, token, open);
        entry.time = now;
        entry.report = toHex(report);
        return { report, again: false };
      })
      .then((answer) => {
        if (answer instanceof RangeError) throw answer;
        return answer;
      });
  }

  /** Send the stored report, until it is acknowledged; never again afterwards. */
  async send(campaign: Campaign, url: string): Promise<Sent> {
    const entry = await this.store.update((memory) => memory.entries[campaign.digest]);
    if (!entry?.report) throw new RangeError("there is no report to this campaign to send");
    if (entry.acknowledged) return "already";
    const body = Uint8Array.from(fromHex(entry.report));
    const response = await fetch(url, { method: "POST", body, credentials: "omit", referrerPolicy: "no-referrer" });
    if (response.status === 503 || response.status === 429) return "later";
    // 409: the token is spent, so an earlier attempt arrived
    if (!response.ok && response.status !== 409) {
      throw new Error(`the collector refused the report: ${await response.text()}`);
    }
    await this.store.update((memory) => {
      (memory.entries[campaign.digest] as Entry).acknowledged = true;
    });
    return response.ok ? "stored" : "already";
  }

  #entry(memory: Memory, campaign: Campaign): Entry {
    const known = memory.entries[campaign.digest];
    if (known) return known;
    for (const entry of Object.values(memory.entries)) {
      if (entry.name === campaign.name && entry.key === campaign.key) {
        throw new RangeError(`the campaign ${campaign.name} changed under its name: it is refused`);
      }
    }
    const { name, key, epsilon } = campaign;
    const entry: Entry = {
      ...{ name, key, epsilon, turn: null, time: null },
      ...{ report: null, acknowledged: false },
    };
    memory.entries[campaign.digest] = entry;
    return entry;
  }

  /** The stage in which the device reports, by a turn that it draws once. */
  #speaksIn(campaign: Campaign, entry: Entry): number {
    if (campaign.firstTurns === 0) return 0;
    entry.turn ??= Number(below(this.#words, SLOTS));
    return entry.turn < campaign.firstTurns ? 0 : 1;
  }

  #tooMuch(memory: Memory, campaign: Campaign, now: number): RangeError | null {
    const { epsilon, days } = this.limits;
    const before = spent(memory, this.limits, now);
    if (before + campaign.epsilon <= epsilon) return null;
    return new RangeError(
      `this device gives at most epsilon ${epsilon} in ${days} days: ` +
        `${before} are spent, and the campaign asks for ${campaign.epsilon}`,
    );
  }

  #report(
    campaign: Campaign,
    how: Instructions,
    records: DeviceRecord[],
    token: Uint8Array,
    stage: number,
  ): Uint8Array {
    const index = records.length > 1 ? Number(below(this.#words, BigInt(records.length))) : 0;
    const payload = payloadOf(how, records[index] as DeviceRecord, this.#words);
    return encode({ campaign: fromHex(campaign.digest).slice(0, 8), stage, token, payload });
  }
}

function outOfTime(campaign: Campaign, now: number): RangeError | null {
  if (now >= campaign.opens && now < campaign.closes) return null;
  return new RangeError(`the campaign is not open at ${new Date(now * 1000).toISOString()}`);
}
