// How long a distinct id may be, and why the limits differ. Source: docs/wire/ingestion.md 2.5, 4.3, 9.

/**
 * Protocol v0 truncates a longer id, counting code points as PostHog's capture does. SDKs generate far shorter ids; a
 * longer one is a mistake, and would be a key in the state store and in every row.
 */
export const capturedDistinctIdLengthMax = 200

/** Protocol v1 counts bytes and drops an event with a longer id, since it promises to change nothing silently. */
export const capturedDistinctIdBytesMax = 200

/**
 * The longest id that is stored, in UTF-16 units, as the state store's columns count. 200 code points are at most 400
 * units, so an id truncated by v0 always fits; a longer id arrived another way.
 */
export const storedDistinctIdLengthMax = 400
