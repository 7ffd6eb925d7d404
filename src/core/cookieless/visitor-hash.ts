// Who a visitor without cookies is for one day: a keyed hash of what the request shows. The key is the day's salt; once
// that is deleted, an id can no longer be traced to an address. Source: docs/wire/ingestion.md 13; PostHog's
// cookieless.

import { truncateToCodePoints } from '../code-points.ts'
import { sipHash128 } from './siphash.ts'

/** The distinct id that posthog-js sends without cookies. */
export const cookielessSentinel = '$posthog_cookieless'

export interface VisitorParts {
  readonly projectId: number
  /** As text: IPv6 in its shortest form, IPv4-mapped addresses as IPv4. */
  readonly address: string
  readonly userAgent: string
  /** What the page adds; the first 100 code points count. */
  readonly extra: string
}

const extraLengthMax = 100

/**
 * The base hash of a visitor, 16 bytes.
 * @param salt the day's salt, 16 bytes.
 * @param root the root domain of the page (`findRootDomain`).
 */
export function computeVisitorHash(salt: Uint8Array, parts: VisitorParts, root: string): Uint8Array<ArrayBuffer> {
  const { projectId, address, userAgent, extra } = parts
  return computeHash(
    salt,
    `${projectId}-${address}-${root}-${userAgent}-0-${truncateToCodePoints(extra, extraLengthMax)}`,
  )
}

/**
 * The hash of a visitor. @param identifies how often the visitor identified before on the same day; 0 gives the base hash.
 * May be -1, for a page that was left open over midnight.
 */
export function hashIdentifiedVisitor(salt: Uint8Array, hash: Uint8Array, identifies: number): Uint8Array {
  return identifies === 0 ? hash : computeHash(salt, `${encodeVisitorHash(hash)}-${identifies}`)
}

/** Standard base64 without `=`: 22 characters. */
export function encodeVisitorHash(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('base64').slice(0, 22)
}

/** @param hash the hash as text (`encodeVisitorHash`). */
export function buildHashedDistinctId(hash: string): string {
  return `cookieless_${hash}`
}

/** @param hash the text of the base hash. */
export function buildHashedDeviceId(hash: string): string {
  return `cookielessd_${hash}`
}

const userAgentLengthMax = 1_000

/** Truncated the way posthog-js does it: a user agent of more than 1,000 UTF-16 units keeps 997 and gets an ellipsis. */
export function truncateUserAgent(text: string): string {
  return text.length > userAgentLengthMax ? `${text.slice(0, userAgentLengthMax - 3)}...` : text
}

/** The order of the bytes is PostHog's: the second word first, each with its halves swapped. */
function computeHash(salt: Uint8Array, text: string): Uint8Array<ArrayBuffer> {
  const words = sipHash128(salt, Buffer.from(text))
  const hash = new Uint8Array(16)
  for (let at = 0; at < 16; at++) hash[at] = words[at ^ 12]!
  return hash
}
