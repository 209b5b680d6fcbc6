// What both builds of the library offer.

export { type Campaign, openCampaign, openStage, type Stage } from "./campaign.js";
export { type Answer, Device, type Sent } from "./device.js";
export { type Limits, MemoryStore, type Store } from "./ledger.js";
export { type DeviceRecord, type Instructions, payloadOf } from "./mechanisms.js";
export { systemBytes, wordsOf } from "./random.js";
export { decode, encode, fromHex, toHex } from "./report.js";
export { position } from "./scale.js";
