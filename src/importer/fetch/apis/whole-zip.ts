// Checks that a zip of `.json.gz` files is complete: every entry unpacks to its checksum, and the directory behind the entries
// lists all of them.

import { createReadStream } from 'node:fs'
import { PassThrough, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { ByteReader } from '#importer/read/byte-reader.ts'
import { PackingDamage } from '#importer/read/decompress.ts'
import { readZipEntries, type ZipEntry } from '#importer/read/zip-entries.ts'
import { LastLine, toBrokenAnswer, type WholeLines } from './whole-lines.ts'

/** @returns the lines of all entries together. @throws BrokenAnswer when anything in it is missing or damaged. */
export async function checkZip(path: string): Promise<WholeLines> {
  const archive = new ByteReader(createReadStream(path))
  let lineCount = 0
  let place = ''
  try {
    for await (const entry of readZipEntries(archive, { checksDirectory: true })) {
      place = `${entry.name} in the zip: `
      lineCount += await countLines(entry)
      place = ''
    }
    return { lineCount }
  } catch (cause) {
    const fault = toBrokenAnswer(cause)
    if (!(fault instanceof PackingDamage || fault instanceof BrokenAnswer)) throw fault
    throw new BrokenAnswer(`${place}${fault.message}`)
  } finally {
    await archive.close()
  }
}

async function countLines({ name, bytes }: ZipEntry): Promise<number> {
  const lines = new LastLine()
  const discarded = new Writable({ write: (_chunk, _encoding, done) => done() })
  const unpacker = name.endsWith('.gz') ? createGunzip() : new PassThrough()
  await pipeline(bytes, unpacker, /\.jsonl?(\.gz)?$/.test(name) ? lines : discarded)
  return lines.checked().lineCount
}
