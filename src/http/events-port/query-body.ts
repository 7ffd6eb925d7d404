// Reads SQL from a body, compressed or not, up to the maximum length of a query.

import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { err, ok, type Result } from '#core/result.ts'
import { sqlLengthMax } from '#core/sql/check-sql.ts'

/** A character of SQL may have four bytes. */
const bytesMax = 4 * sqlLengthMax

const decoders: Readonly<Record<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
}

/** @returns why it cannot be read; the rest of the body is then not read either. */
export async function readQueryBody(request: IncomingMessage): Promise<Result<string, string>> {
  if (/^multipart\//i.test(request.headers['content-type'] ?? ''))
    return err('Send the query as the request body, and its parameters as param_… in the URL.')
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > bytesMax) return err(`The query exceeds ${sqlLengthMax} characters.`)
      chunks.push(chunk)
    }
  } catch {
    return err('The request body ended early.')
  }
  const body = Buffer.concat(chunks)
  const encoding = String(request.headers['content-encoding'] ?? 'identity').toLowerCase()
  if (encoding === 'identity') return ok(body.toString())
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (decode === undefined) return err(`Unsupported Content-Encoding ${encoding.slice(0, 40)}. Use gzip.`)
  try {
    return ok((await decode(body, { maxOutputLength: bytesMax })).toString())
  } catch {
    return err(`The body is not valid ${encoding}, or the decompressed query is too long.`)
  }
}
