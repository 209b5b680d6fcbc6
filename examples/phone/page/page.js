// Scores a message here, shows what a report of it says, and sends it.

import { BrowserStore, decode, Device, fromHex, openCampaign, openStage, toHex } from "./tacit-device.js";
import { score } from "./model.js";

const LIMITS = { epsilon: 4, days: 90 };

const find = (id) => document.getElementById(id);
const say = (text) => (find("status").textContent = text);

const device = new Device(new BrowserStore(), LIMITS);
const [campaign, messages] = await Promise.all([opened(), fetch("messages.json").then((r) => r.json())]);
const token = fromHex(location.hash.slice(1));
const chosen = crypto.getRandomValues(new Uint8Array(1))[0] % messages.length;
const record = { score: score(messages[chosen].text), label: 0 };

await begin();

/** The campaign; its key comes with it, so the page says that the collector is trusted with it. */
async function opened() {
  const text = await (await fetch("campaign")).text();
  const { key } = JSON.parse(text);
  return openCampaign(text, toHex(Uint8Array.from(atob(key), (letter) => letter.charCodeAt(0))));
}

async function begin() {
  find("message").textContent = messages[chosen].text;
  find("message").dataset.index = chosen;
  find("score").textContent = record.score.toFixed(3);
  find("terms").textContent =
    `Campaign “${campaign.name}”: epsilon ${campaign.epsilon}; this browser gives at most ` +
    `${LIMITS.epsilon} in ${LIMITS.days} days. Signed by ${campaign.key.slice(0, 16)}…`;
  if (token.length !== 16) return say("To answer you need an invitation: a link that ends in a token.");
  const before = await device.store.update((memory) => memory.entries[campaign.digest]);
  if (before?.acknowledged) return say("This browser has answered: its report is stored, and no other leaves.");
  for (const [id, label] of [["spam", 1], ["ham", 0]]) {
    find(id).disabled = false;
    find(id).addEventListener("click", () => answer(label));
  }
  find("send").addEventListener("click", send);
}

async function answer(label) {
  find("spam").disabled = find("ham").disabled = true;
  record.label = label;
  try {
    const made = await device.answer(campaign, [record], token, await laterStage());
    if ("waitsFor" in made) return say("This device speaks in a later stage: come back then.");
    show(decode(made.report), made.again);
    find("bytes").textContent = toHex(made.report);
    find("report").hidden = false;
    find("report").scrollIntoView();
  } catch (error) {
    say(error.message);
  }
}

async function laterStage() {
  if (campaign.stages === 1) return null;
  const response = await fetch("stage/1");
  return response.ok ? openStage(await response.text(), campaign) : null;
}

/** The bits of a unary report, and how likely it is under the opposite answer. */
function show(report, again) {
  if (campaign.report.kind !== "unary" || report.stage !== 0) {
    find("deniable").textContent = "A number that was drawn: any other could have come as well.";
    return;
  }
  const level = report.payload[0];
  const half = 2 ** (level - 1);
  const bits = Array.from({ length: 2 * half }, (_, cell) => (report.payload[1 + (cell >> 3)] >> (7 - (cell & 7))) & 1);
  const cell = Math.min(Math.floor(record.score * half), half - 1);
  const [own, other] = record.label ? [cell, half + cell] : [half + cell, cell];
  find("bits").replaceChildren();
  bits.forEach((bit, index) => {
    if (index === half) find("bits").append(document.createElement("hr"));
    const square = document.createElement("i");
    square.classList.toggle("set", bit === 1);
    square.classList.toggle("own", index === own && !again);
    find("bits").append(square);
  });
  find("bits").setAttribute("aria-label", `bits sent: ${bits.join(" ")}; above spam, below no spam`);
  const q = 1 / (1 + Math.exp(campaign.epsilon));
  const chance = (index) => 0.5 / (bits[index] ? q : 1 - q);
  const ratio = chance(other) / chance(own);
  const most = Math.exp(campaign.epsilon);
  find("deniable").textContent = again
    ? "This device answered before: its report stays the same, whatever you say now."
    : `Your square was filled by a fair coin, every other with a chance of ${(100 * q).toFixed(0)} %. ` +
      `Had you said the opposite, exactly this report would have been ${ratio.toFixed(2)} times as likely; ` +
      `for any answer and score it is between ${(1 / most).toFixed(2)} and ${most.toFixed(1)} times. ` +
      "So nobody can prove from it what you said.";
}

async function send() {
  find("send").disabled = true;
  try {
    const sent = await device.send(campaign, "reports");
    if (sent === "later") {
      find("send").disabled = false;
      return say("The collector is busy: try again, the same report will be sent.");
    }
    say(sent === "stored" ? "Your report is stored. Thank you." : "Your report arrived before.");
  } catch (error) {
    say(error.message);
  }
}
