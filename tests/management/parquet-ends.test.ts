import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { openParquetFile } from '#adapters/parquet-thread/parquet-file.ts'
import { isParquetExportComplete } from '../../src/commands/events/parquet-footer.ts'
import { createParquetEncoder } from '../../src/http/management/exports/parquet-encoder.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A file as an instance sends it, of rows that have the words of the footer among their texts. */
async function sent(next: string | null): Promise<Buffer> {
  const encoder = createParquetEncoder<string>([{ name: 'event', kind: 'text', read: text => text }], openParquetFile)
  const pieces: Uint8Array[] = []
  const take = async (some: ReturnType<typeof encoder.end>) => {
    for await (const piece of some) pieces.push(Buffer.from(piece as Uint8Array))
  }
  try {
    await take(encoder.encode(['pennon.export.complete\u0018\u0004true', 'pennon.export.complete\u0018\u0005false']))
    await take(encoder.end(next))
  } finally {
    encoder.close!()
  }
  return Buffer.concat(pieces)
}

async function isWhole(t: TestContext, bytes: Buffer): Promise<boolean> {
  const file = join(tempDir(t), 'events.parquet')
  writeFileSync(file, bytes)
  return isParquetExportComplete(file)
}

it('a Parquet file is complete only if its footer says that no rows remain', async t => {
  assert.equal(await isWhole(t, await sent(null)), true)
  assert.equal(await isWhole(t, await sent('1_0195a000-0000-7000-8000-000000000001_2')), false)
})

it('a truncated Parquet file is incomplete', async t => {
  const bytes = await sent(null)
  for (let length = 0; length < bytes.length; length += 7)
    assert.equal(await isWhole(t, bytes.subarray(0, length)), false, `${length} bytes`)
})
