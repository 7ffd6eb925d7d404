// The layout of a log record, version 1. Numbers are little-endian. A fixed header is followed by four parts in UTF-8:
// - the head: token, uuid, name, distinct id, then an event's ip or a reject's reason and field, contiguous so that one call
// reads or writes them; lengths inside the head count UTF-16 units;
// - the body: an event's properties, a reject's original body;
// - an event's `$set`, or a reject's source (`reject-source.ts`);
// - an event's `$set_once`. A recording (`recording-codec.ts`) has different texts in its head and compressed bytes as its
// body. A later version must change the version byte and never the offsets of these fields.

export const recordVersion = 1
export const kindEvent = 0
export const kindReject = 1
export const kindRecording = 2

/** The checksum covers everything after it. The size, which precedes it, is checked against the end of the record. */
export const checksumStart = 8

export const field = {
  /** Bytes of the whole record, this field included. */
  size: 0,
  /** CRC-32. */
  checksum: 4,
  version: checksumStart,
  kind: 9,
  /** Index into `lanes`: new lanes may therefore only be appended. */
  lane: 10,
  flags: 11,
  projectId: 12,
  importJobId: 16,
  /** In a recording, the number of its items. */
  itemCount: 16,
  tokenLength: 20,
  uuidLength: 24,
  nameLength: 28,
  distinctIdLength: 32,
  /** In an event, the length of its ip, or of its visitor's text; in a reject, the length of its reason. */
  ipLength: 36,
  /** In a reject, the length of its field; in an event, its notes. */
  fieldLength: 40,
  notes: 40,
  headBytes: 44,
  bodyBytes: 48,
  setBytes: 52,
  receivedAtMs: 56,
  capturedAtMs: 64,
  timestampMs: 72,
  sentAtMs: 80,
  /** In a recording, the size of its items before packing. */
  itemsBytes: 80,
} as const

export const headerBytes = 88

export const flag = {
  historicalMigration: 1,
  protocolV1: 2,
  personProcessingForcedOff: 4,
  hasSentAt: 8,
  hasSet: 16,
  hasSetOnce: 32,
  /** The event has a visitor and therefore no ip: the visitor's text (`visitor-text.ts`) takes the place of the ip. */
  hasVisitor: 64,
} as const
