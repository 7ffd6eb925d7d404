// Deterministic uuids, so that sending a record again never duplicates its events.
// Source: docs/wire/import.md §1.0 (sessions), §2.3.

import { hash } from 'node:crypto'
import { uuidV5 } from '#core/events/uuid-v5.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { toCanonicalJson } from './canonical-json.ts'

/** UUIDv5 of `historical-import.v1` in the DNS namespace. New rules for uuids require a new name and thus a new root. */
const root = parseNamespace('9b8097fb-81cb-5930-84dd-6d0df26c84cd')
/** The ASCII bytes of `posthog_mixpanel`, as in PostHog's own importer, so that its events and ours have the same uuids. */
const mixpanelNamespace = parseNamespace('706f7374-686f-675f-6d69-7870616e656c')

/** @param parts are joined by line feeds; pass an empty text for an absent part. */
export function deriveImportUuid(...parts: readonly string[]): string {
  return uuidV5(root, parts.join('\n'))
}

export function deriveMixpanelUuid(insertId: string): string {
  return uuidV5(mixpanelNamespace, insertId)
}

/** The uuid of a record without an id: depends on its content, not on the order of keys or on white space. */
export function deriveContentUuid(source: string, record: JsonObject): string {
  return deriveImportUuid(source, 'content', hashCanonicalContent(record))
}

/** The SHA-256, in hexadecimal, of the canonical JSON of a record, or of a group's properties. */
export function hashCanonicalContent(content: JsonValue): string {
  return hash('sha256', toCanonicalJson(content))
}

/**
 * The UUIDv7 of a session: the session's start, then the first ten bytes of the SHA-256 of `parts`. @param startMs when the
 * session began, whole ms, clamped to the range of a UUIDv7. Records with times beyond that range are refused elsewhere.
 * @param parts source, `session`, device or site, session id.
 */
export function deriveSessionUuid(startMs: number, ...parts: readonly string[]): string {
  const start = Math.max(0, Math.min(startMs, 2 ** 48 - 1))
    .toString(16)
    .padStart(12, '0')
  // The uuid is built as text, since filling a 16-byte buffer takes longer than computing the hash.
  const named = hash('sha256', parts.join('\n'))
  const variant = ((Number.parseInt(named[4]!, 16) & 0x3) | 0x8).toString(16)
  return `${start.slice(0, 8)}-${start.slice(8)}-7${named.slice(1, 4)}-${variant}${named.slice(5, 8)}-${named.slice(8, 20)}`
}

function parseNamespace(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}
