// Sends a script in a compression that the client accepts, with an entity tag per compression, to pages of every origin.
// The caller decides which script it is and how long it may be cached. Source: docs/wire/clients.md 10.1, 10.4.

import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BrowserScript, ScriptCompression } from '#ports/browser-scripts.ts'
import { listAcceptedCompressions } from '../shared/accepted-compressions.ts'
import { matchesEtag } from '../shared/etag.ts'

/** A body in one compression; `packing` is null when the body is uncompressed. */
export interface CompressedScript {
  readonly packing: ScriptCompression | null
  readonly byteCount: number
  /** The body as a list of buffers that must not change, since all answers share them. */
  readonly pieces: () => Promise<readonly Buffer[]>
}

export interface ScriptHeaders {
  readonly contentType: string
  readonly cacheControl: string
  /** The request headers on which the contents depend, apart from the compression. */
  readonly vary: 'Origin' | 'Origin, Referer'
  /** A hash of the contents, the same for every compression. */
  readonly hash: string
}

export const javascript = 'application/javascript; charset=utf-8'

/** Sends the script, or 304 when the client has it; HEAD gets only the headers. */
export async function sendScript(
  request: FastifyRequest,
  reply: FastifyReply,
  script: CompressedScript,
  headers: ScriptHeaders,
): Promise<void> {
  // The compressed forms of a text differ in bytes, so their strong entity tags must differ, too.
  const etag = `"${headers.hash}${script.packing === null ? '' : `-${script.packing}`}"`
  reply
    .header('cache-control', headers.cacheControl)
    .header('etag', etag)
    .header('vary', `${headers.vary}, Accept-Encoding`)
    .header('x-content-type-options', 'nosniff')
    // Cross-origin isolated pages load only scripts that allow it.
    .header('cross-origin-resource-policy', 'cross-origin')
  if (matchesEtag(request.headers['if-none-match'], etag)) return void reply.code(304).send()
  reply.header('content-type', headers.contentType).header('content-length', script.byteCount)
  if (script.packing !== null) reply.header('content-encoding', script.packing)
  if (request.method === 'HEAD') return void reply.send()
  const pieces = await script.pieces()
  if (pieces.length === 1) reply.send(pieces[0])
  else sendPieces(reply, pieces)
}

/**
 * Fastify takes one buffer or a stream; with many slow readers, a copy or a stream per request would take much memory.
 */
function sendPieces(reply: FastifyReply, pieces: readonly Buffer[]): void {
  const { raw, statusCode } = reply.hijack()
  raw.writeHead(statusCode, reply.getHeaders() as OutgoingHttpHeaders)
  for (const piece of pieces) raw.write(piece)
  raw.end()
}

/** The smallest available form of the script that the client accepts. */
export async function chooseCompressedScript(
  request: FastifyRequest,
  script: BrowserScript,
): Promise<CompressedScript> {
  for (const packing of listAcceptedCompressions(request.headers['accept-encoding'])) {
    const packed = await script.readCompressed(packing)
    if (packed !== null) return { packing, byteCount: packed.length, pieces: async () => [packed] }
  }
  return { packing: null, byteCount: script.byteCount, pieces: async () => [await script.readBytes()] }
}
