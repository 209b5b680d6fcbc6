// Devices of one record each, from the library's bundle for Node: their reports go to standard output.
// node examples/phone/send.mjs CAMPAIGN.json < RECORDS, a line "token score label" for each device

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Device, fromHex, MemoryStore, openCampaign } from "../../devices/typescript/build/tacit-device-node.js";

const text = readFileSync(process.argv[2], "utf8");
const coordinator = Buffer.from(JSON.parse(text).key, "base64").toString("hex");
const campaign = await openCampaign(text, coordinator);
const parts = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [token, score, label] = line.split(" ");
  const device = new Device(new MemoryStore(), { epsilon: campaign.epsilon, days: 1 });
  const record = { score: Number(score), label: Number(label) };
  const { report } = await device.answer(campaign, [record], fromHex(token));
  parts.push(report);
}
process.stdout.write(Buffer.concat(parts));
