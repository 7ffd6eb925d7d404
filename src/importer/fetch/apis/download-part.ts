// Brings the body of one answer into the file of a part: nothing of it is parsed, and nothing but a block is in memory.

import { createWriteStream } from 'node:fs'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { asFetchFault, BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import type { HttpAnswer } from '#importer/fetch/http-request.ts'
import { beginPart } from '#importer/fetch/part-file.ts'

/** Writes the body as it came. @returns its bytes. @throws BrokenAnswer when it broke off. */
export async function downloadBody(body: Readable, tools: PartTools): Promise<number> {
  return writeBody([body], tools)
}

/** Writes the body as a gzip file, whether the source packed it or not. @returns the bytes that came. */
export async function downloadGzip({ headers, body }: HttpAnswer, tools: PartTools): Promise<number> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding === 'gzip') return writeBody([body], tools)
  if (encoding !== 'identity')
    throw new BrokenAnswer(`the answer is packed in a way that was not asked for (${encoding})`)
  return writeBody([body, createGzip()], tools)
}

async function writeBody([body, ...between]: readonly [Readable, ...Transform[]], tools: PartTools): Promise<number> {
  await beginPart(tools.file)
  let bytes = 0
  const count = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length
      tools.received(chunk.length)
      done(null, chunk)
    },
  })
  // Behind the packing, since the disk has to hold what comes out of it.
  const space = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      try {
        tools.willWrite(chunk.length)
        done(null, chunk)
      } catch (problem) {
        done(problem as Error)
      }
    },
  })
  try {
    const file = createWriteStream(tools.file.path, { flags: 'wx', mode: 0o600 })
    await pipeline([body, count, ...between, space, file], { signal: tools.signal })
  } catch (cause) {
    throw asFetchFault(cause)
  }
  return bytes
}
