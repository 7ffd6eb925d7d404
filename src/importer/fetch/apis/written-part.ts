// Writes the file of a part: the body of a response as it is, or the lines of a paged export as gzip.

import { createWriteStream } from 'node:fs'
import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { asFetchFault, BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import type { HttpAnswer } from '#importer/fetch/http-request.ts'
import { preparePartFile } from '#importer/fetch/part-file.ts'

/** Writes the body as a gzip file, whether the source compressed it or not. @returns the bytes received. */
export async function downloadGzip({ headers, body }: HttpAnswer, tools: PartTools): Promise<number> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding === 'gzip') return writeBody(body, tools)
  if (encoding !== 'identity') throw new BrokenAnswer(`the answer has an encoding that was not requested (${encoding})`)
  return writeBody(body, tools, createGzip())
}

/** @param pages lines without line breaks. @returns how many lines there are. */
export async function writeLines(pages: AsyncIterable<readonly string[]>, tools: PartTools): Promise<number> {
  let lineCount = 0
  const encodePages = async function* () {
    for await (const lines of pages) {
      lineCount += lines.length
      if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`)
    }
  }
  await writeBody(Readable.from(encodePages()), tools, createGzip())
  return lineCount
}

/** Writes the body, as these streams convert it. @returns its size. @throws BrokenAnswer when it ends early. */
export async function writeBody(body: Readable, tools: PartTools, ...between: Transform[]): Promise<number> {
  await preparePartFile(tools.file)
  let bytes = 0
  const count = createTap(chunkBytes => {
    bytes += chunkBytes
    tools.received(chunkBytes)
  })
  const file = createWriteStream(tools.file.path, { flags: 'wx', mode: 0o600 })
  try {
    // Space is needed for the bytes after compression.
    await pipeline([body, count, ...between, createTap(tools.willWrite), file], { signal: tools.signal })
  } catch (cause) {
    throw asFetchFault(cause)
  }
  return bytes
}

/** Passes bytes on unchanged after `observe`, which may throw. */
function createTap(observe: (bytes: number) => void) {
  return async function* (bytes: AsyncIterable<Buffer>) {
    for await (const chunk of bytes) {
      observe(chunk.length)
      yield chunk
    }
  }
}
