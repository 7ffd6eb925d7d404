// How a script goes out: packed as its client takes it, with an entity tag per packing, to pages of every origin.
// Which script it is, and how long it may be kept, is the caller's. Source: docs/wire/clients.md 10.1, 10.4.

import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BrowserScript, ScriptPacking } from '#ports/browser-scripts.ts'
import { matchesEtag } from '../shared/etag.ts'

/** One body, in pieces that nobody changes; or a stream that is opened when it is sent. */
export type ScriptBody = readonly Buffer[] | (() => NodeJS.ReadableStream)

/** A body in one packing, or as it is (null). */
export interface PackedScript {
  readonly packing: ScriptPacking | null
  readonly byteCount: number
  readonly body: ScriptBody
}

export interface ScriptHeaders {
  readonly contentType: string
  readonly cacheControl: string
  /** What the contents depend on, beside the packing. */
  readonly vary: 'Origin' | 'Origin, Referer'
  /** A hash of the contents, the same for every packing. */
  readonly hash: string
}

export const javascript = 'application/javascript; charset=utf-8'

/** Sends it, or says that the client has it; resolves when it is sent. HEAD gets the headers alone. */
export async function sendScript(
  request: FastifyRequest,
  reply: FastifyReply,
  script: PackedScript,
  headers: ScriptHeaders,
): Promise<void> {
  // Packings of one text differ in bytes, so their strong tags must differ too.
  const etag = `"${headers.hash}${script.packing === null ? '' : `-${script.packing}`}"`
  reply
    .header('cache-control', headers.cacheControl)
    .header('etag', etag)
    .header('vary', `${headers.vary}, Accept-Encoding`)
    .header('x-content-type-options', 'nosniff')
    // Pages that isolate themselves load only what allows it.
    .header('cross-origin-resource-policy', 'cross-origin')
  if (matchesEtag(request.headers['if-none-match'], etag)) {
    reply.code(304).send()
  } else {
    reply.header('content-type', headers.contentType).header('content-length', script.byteCount)
    if (script.packing !== null) reply.header('content-encoding', script.packing)
    reply.send(request.method === 'HEAD' ? undefined : payloadOf(script.body))
  }
  // A stream is still being sent: if the handler ended before it, Fastify would answer with an empty body.
  await reply
}

function payloadOf(body: ScriptBody): Buffer | NodeJS.ReadableStream {
  if (typeof body === 'function') return body()
  return body.length === 1 ? body[0]! : Readable.from(body)
}

/** The smallest form that the client takes, out of those that are there. */
export async function packedFor(request: FastifyRequest, script: BrowserScript): Promise<PackedScript> {
  for (const packing of acceptedPackings(request.headers['accept-encoding'])) {
    const packed = await script.packed(packing)
    if (packed !== null) return { packing, byteCount: packed.length, body: [packed] }
  }
  return { packing: null, byteCount: script.byteCount, body: script.stream }
}

/** The packings of an `Accept-Encoding` that we have, the smallest first. One with `q=0` is refused. */
export function acceptedPackings(header: string | string[] | undefined): ScriptPacking[] {
  const refused = /^\s*(?:br|gzip)\s*;\s*q=0(?:\.0*)?\s*$/i
  const offers = String(header ?? '')
    .split(',')
    .filter(offer => !refused.test(offer))
    .map(offer => offer.split(';', 1)[0]!.trim().toLowerCase())
  return (['br', 'gzip'] as const).filter(packing => offers.includes(packing))
}
