// Streams the body of a response into the file of a part, without parsing it.

import { createWriteStream } from 'node:fs'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { asFetchFault, BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import type { HttpAnswer } from '#importer/fetch/http-request.ts'
import { preparePartFile } from '#importer/fetch/part-file.ts'

/** Writes the body unchanged. @returns its size. @throws BrokenAnswer when it ends early. */
export async function downloadBody(body: Readable, tools: PartTools): Promise<number> {
  return writeBody([body], tools)
}

/** Writes the body as a gzip file, whether the source compressed it or not. @returns the bytes received. */
export async function downloadGzip({ headers, body }: HttpAnswer, tools: PartTools): Promise<number> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding === 'gzip') return writeBody([body], tools)
  if (encoding !== 'identity') throw new BrokenAnswer(`the answer has an encoding that was not requested (${encoding})`)
  return writeBody([body, createGzip()], tools)
}

async function writeBody([body, ...between]: readonly [Readable, ...Transform[]], tools: PartTools): Promise<number> {
  await preparePartFile(tools.file)
  let bytes = 0
  const count = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length
      tools.received(chunk.length)
      done(null, chunk)
    },
  })
  // Count bytes after compression: that is what the disk must hold.
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
