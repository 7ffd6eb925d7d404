// Where each part of a log record lies, version 1. Numbers are little-endian. A fixed header is followed by texts in
// UTF-8: the head (token, uuid, name, distinct id, then ip of an event or reason and field of a reject, in one piece
// so that one call writes or reads them), the body (properties of an event, original body of a reject), `$set`
// of an event or the source of a reject (`reject-source.ts`), `$set_once`. A replay (`replay-record.ts`) has other texts in its head and packed bytes as its body. Lengths inside the head count UTF-16 units. A later version changes the version byte, never these places.

export const recordVersion = 1
export const kindEvent = 0
export const kindReject = 1
export const kindReplay = 2

/** The checksum covers everything behind itself; the size before it is checked by where it leads. */
export const checksumStart = 8

export const field = {
  /** Bytes of the whole record, this field included. */
  size: 0,
  /** CRC-32. */
  checksum: 4,
  version: checksumStart,
  kind: 9,
  /** Index into `lanes`, which therefore only ever grows at its end. */
  lane: 10,
  flags: 11,
  projectId: 12,
  importJobId: 16,
  /** A replay has the number of its items here. */
  itemCount: 16,
  tokenLength: 20,
  uuidLength: 24,
  nameLength: 28,
  distinctIdLength: 32,
  /** The length of an event's ip; in a reject, the length of its reason. */
  ipLength: 36,
  /** A reject has the length of its field here; an event has its notes, 0 in records from before there were any. */
  fieldLength: 40,
  notes: 40,
  headBytes: 44,
  bodyBytes: 48,
  setBytes: 52,
  receivedAtMs: 56,
  capturedAtMs: 64,
  timestampMs: 72,
  sentAtMs: 80,
  /** A replay has the bytes of its items here, as they were before packing. */
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
} as const
