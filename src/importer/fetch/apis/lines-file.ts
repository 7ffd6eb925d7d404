// Writes the lines of a paged export as a gzip file.

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { asFetchFault } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { preparePartFile } from '#importer/fetch/part-file.ts'

/** @param pages lines without line breaks. @returns how many lines there are. */
export async function writeLines(
  pages: AsyncIterable<readonly string[]>,
  { file, willWrite, received }: Pick<PartTools, 'file' | 'willWrite' | 'received'>,
): Promise<number> {
  await preparePartFile(file)
  const gzip = createGzip()
  const written = createWriteStream(file.path, { flags: 'wx', mode: 0o600 })
  const done = finished(gzip.pipe(written))
  // The error is thrown again where `done` is awaited.
  done.catch(() => gzip.destroy())
  written.on('error', () => gzip.destroy())
  let lineCount = 0
  try {
    for await (const lines of pages) {
      lineCount += lines.length
      if (lines.length === 0) continue
      const text = `${lines.join('\n')}\n`
      willWrite(text.length)
      received(text.length)
      if (!gzip.write(text) && !gzip.destroyed) await Promise.race([once(gzip, 'drain'), done])
    }
    gzip.end()
    await done
  } catch (cause) {
    gzip.destroy()
    written.destroy()
    throw asFetchFault(written.errored ?? cause)
  }
  return lineCount
}
