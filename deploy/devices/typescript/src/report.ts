// The bytes of a report: a header with campaign, stage and token, and the payload.

export const TOKEN_BYTES = 16;
const HEADER_BYTES = 30;
const MAGIC = [0x54, 0x52, 0x45, 0x50, 1]; // TREP, version 1

/** A report's fields. */
export interface Report {
  campaign: Uint8Array; // the first 8 bytes of the campaign's digest
  stage: number;
  token: Uint8Array;
  payload: Uint8Array;
}

/** A report as it is sent. */
export function encode(report: Report): Uint8Array {
  if (report.campaign.length !== 8 || report.token.length !== TOKEN_BYTES) {
    throw new RangeError(`a token must have ${TOKEN_BYTES} bytes, got ${report.token.length}`);
  }
  return Uint8Array.from([
    ...MAGIC,
    ...report.campaign,
    report.stage,
    ...report.token,
    ...report.payload,
  ]);
}

/** The fields of a report; refuses another format or version, or too few bytes. */
export function decode(bytes: Uint8Array): Report {
  if (bytes.length < HEADER_BYTES) {
    throw new RangeError(`a report of a device has at least ${HEADER_BYTES} bytes, got ${bytes.length}`);
  }
  if (MAGIC.slice(0, 4).some((byte, index) => bytes[index] !== byte)) {
    throw new RangeError("these bytes are not a report of a device");
  }
  if (bytes[4] !== 1) throw new RangeError(`version must be 1, got ${bytes[4]}`);
  return {
    campaign: bytes.slice(5, 13),
    stage: bytes[13] as number,
    token: bytes.slice(14, HEADER_BYTES),
    payload: bytes.slice(HEADER_BYTES),
  };
}

/** Bytes as hexadecimal digits. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of hexadecimal digits. */
export function fromHex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/i.test(text)) throw new RangeError("hexadecimal digits must come in pairs");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
