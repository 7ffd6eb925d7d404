import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ExportStopped, runExport } from './run-export.ts'

it('an export that stops within a batch names the last row that its reader receives', async () => {
  for (const writesBefore of [0, 1, 3]) {
    const got: string[] = []
    const progress = { rowCount: 0, cursor: null as string | null }
    async function* batches() {
      for (const batch of [0, 1]) yield Array.from({ length: 100 }, (_, index) => batch * 100 + index)
    }
    const stopped = runExport<number>({
      batches: batches(),
      encoding: {
        begin: () => '',
        *encode(rows) {
          for (const row of rows) yield `${row} ${'x'.repeat(3_000)}\n`
        },
        *end() {},
      },
      target: {
        write: async bytes => {
          got.push(Buffer.from(bytes).toString())
          if (got.length > writesBefore) throw new ExportStopped('too_slow')
        },
      },
      limit: 1_000,
      cursorOf: String,
      findStopReason: async () => null,
      progress,
    })
    await assert.rejects(stopped, { code: 'too_slow' })
    const lines = got.join('').trimEnd().split('\n')
    assert.deepEqual(progress, { rowCount: lines.length, cursor: lines.at(-1)!.split(' ')[0] })
  }
})
