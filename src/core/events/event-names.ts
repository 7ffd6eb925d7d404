// Names of events that have effects beyond their stored row.

/** Events with these names link distinct ids and may merge persons. Source: docs/wire/ingestion.md 6.4. */
export const mergeEventNames: ReadonlySet<string> = new Set(['$identify', '$create_alias', '$merge_dangerously'])

/**
 * SDKs send the first name; the service description has the second. Both events update the group. Source:
 * docs/wire/ingestion.md 6.7.
 */
export const groupEventNames: ReadonlySet<string> = new Set(['$groupidentify', '$group_identify'])
