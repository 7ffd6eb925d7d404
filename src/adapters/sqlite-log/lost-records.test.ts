import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { LogLoss } from '#ports/event-log.ts'
import { openedReader } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { lostRecordsFile } from './lost-records.ts'

it('keeps thousands of records that are lost at once, each once', async t => {
  const folder = tempDir(t)
  const reader = openedReader(t, folder)
  const losses = Array.from(
    { length: 5_000 },
    (_, n): LogLoss => ({
      ...{ lane: n % 2 === 0 ? 'main' : 'historical', fromOffset: n, toOffset: n + 1 },
      ...{ file: null, noticedAtMs: 1_790_000_000_000, body: 'x'.repeat(500) },
    }),
  )
  await reader.keepLoss(...losses.slice(0, 3_000))
  await reader.keepLoss(...losses.slice(2_000))
  const { size } = statSync(join(folder, lostRecordsFile))
  await reader.keepLoss(...losses)
  assert.deepEqual(await reader.losses(), losses)
  assert.equal(statSync(join(folder, lostRecordsFile)).size, size)
})
